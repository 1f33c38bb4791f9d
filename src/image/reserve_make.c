/*
 * The making of a reserve; see reserve.h. Files are allocated in steps, so that a full file system is an error
 * before anything is touched, and an end that is asked for comes soon.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "image/io.h"
#include "image/owner.h"
#include "image/reserve.h"

#define STEP_BYTES (32 * STASIS_MIB)

struct making {
	const char *path;
	const struct stasis_image_reserve_plan *plan;
	int parent_fd;
	int dir_fd;
	char name[NAME_MAX + 1]; /* while it is not whole */
	bool is_in_memory;
	uint64_t done_bytes;
};

/* Touches what was allocated: memory has no pages before somebody wants them. */
static int step_touch(int fd, uint64_t offset, uint64_t bytes)
{
	void *base =
		mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	if (base == MAP_FAILED)
		return errno;
	/* It is all allocated, so that no access can fail. */
	for (uint64_t at = 0; at < bytes; at += page_bytes)
		((volatile uint8_t *)base)[at] = 0;
	(void)munmap(base, (size_t)bytes);
	return 0;
}

/* File systems that cannot allocate ahead are written to. */
static int step_write(int fd, uint64_t offset, uint64_t bytes)
{
	CLEANUP(free) void *zeros = calloc(1, (size_t)bytes);

	if (!zeros)
		return ENOMEM;
	return stasis_pwrite_all(fd, zeros, (size_t)bytes, offset, "image_reserve_write");
}

static int step_allocate(int fd, uint64_t offset, uint64_t bytes)
{
	int code = stasis_fault_point("image_reserve_allocate");

	while (!code || code == EINTR) {
		if (fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0)
			return 0;
		code = errno;
	}
	return code == EOPNOTSUPP ? step_write(fd, offset, bytes) : code;
}

static int step_report(struct making *making, struct stasis_error *err)
{
	const struct stasis_image_reserve_plan *plan = making->plan;

	if (plan->progress && !plan->progress(plan->progress_data, making->done_bytes,
					      plan->file_count * plan->file_bytes))
		return stasis_fail(err, STASIS_REFUSED,
				   "the reserve in '%.200s' was given up; nothing is left of it",
				   making->path);
	return 0;
}

static int file_fill(struct making *making, int fd, struct stasis_error *err)
{
	uint64_t bytes = making->plan->file_bytes;

	for (uint64_t at = 0; at < bytes; at += STEP_BYTES) {
		uint64_t step = stasis_min_u64(STEP_BYTES, bytes - at);
		int code = step_allocate(fd, at, step);

		if (!code && making->is_in_memory)
			code = step_touch(fd, at, step);
		if (code)
			return stasis_fail_code(
				err, STASIS_REFUSED, code,
				"reserve in '%.200s': after %llu MiB; nothing is left of it",
				making->path, (unsigned long long)(making->done_bytes >> 20));
		making->done_bytes += step;
		if (step_report(making, err) != 0)
			return -1;
	}
	return 0;
}

static int files_make(struct making *making, struct stasis_error *err)
{
	for (uint32_t i = 0; i < making->plan->file_count; i++) {
		CLEANUP(fd) int fd = -1;
		char name[16];
		int code;

		(void)snprintf(name, sizeof(name), "%u", i);
		code = stasis_image_io_create(making->dir_fd, name, &fd);
		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code,
						"reserve in '%.200s': create a file", making->path);
		if (file_fill(making, fd, err) != 0)
			return -1;
		code = stasis_image_io_sync(fd, "image_reserve_sync");
		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code,
						"reserve in '%.200s': sync a file", making->path);
	}
	return 0;
}

static int record_write(const struct making *making, struct stasis_error *err)
{
	const struct stasis_image_reserve_record record = {
		.file_count = making->plan->file_count,
		.file_bytes = making->plan->file_bytes,
	};
	CLEANUP(free) char *text = NULL;

	if (stasis_image_reserve_record_encode(&record, &text, err) != 0)
		return -1;
	return stasis_file_write_whole(making->dir_fd, STASIS_IMAGE_RESERVE_RECORD_NAME, text,
				       strlen(text), err);
}

/* The owner record lets gc tell an unfinished reserve from one that is being made. */
static int owner_write(const struct making *making, struct stasis_error *err)
{
	const struct stasis_image_manifest manifest = {.process_count = 0};
	CLEANUP(image_owner) struct stasis_image_owner owner = {0};

	if (stasis_image_owner_init(&owner, err) != 0)
		return -1;
	return stasis_image_owner_write(making->dir_fd, &owner, &manifest, err);
}

static int reserve_fill(struct making *making, struct stasis_error *err)
{
	struct statfs info;

	if (fstatfs(making->dir_fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "find the file system of '%.200s'",
					 making->path);
	making->is_in_memory = info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
	if (owner_write(making, err) != 0 || files_make(making, err) != 0 ||
	    record_write(making, err) != 0)
		return -1;
	(void)unlinkat(making->dir_fd, STASIS_IMAGE_OWNER_NAME, 0);
	if (stasis_dir_rename_exclusive(making->parent_fd, making->name, making->parent_fd,
					STASIS_IMAGE_RESERVE_NAME, err) != 0)
		return -1;
	return stasis_dir_sync(making->parent_fd, making->path, err);
}

static int plan_check(const char *path, const struct stasis_image_reserve_plan *plan,
		      struct stasis_error *err)
{
	struct stasis_image_reserve_info info;

	if (plan->file_count == 0 || plan->file_count > STASIS_IMAGE_RESERVE_FILES_MAX ||
	    plan->file_bytes == 0 || plan->file_bytes % STASIS_STORED_ALIGNMENT != 0 ||
	    plan->file_bytes > STASIS_IMAGE_BYTES_MAX / plan->file_count)
		return stasis_fail(err, STASIS_REFUSED,
				   "a reserve of %u files of %llu bytes is out of range",
				   plan->file_count, (unsigned long long)plan->file_bytes);
	if (stasis_image_reserve_look(path, &info, err) != 0)
		return -1;
	if (info.state != STASIS_IMAGE_RESERVE_NONE)
		return stasis_fail(err, STASIS_REFUSED,
				   "there is a reserve in '%.200s' already; 'stasis reserve "
				   "--remove' gives it back",
				   path);
	return 0;
}

static int name_make(struct making *making, struct stasis_error *err)
{
	char digits[STASIS_ID_TEXT_BYTES];
	struct stasis_id id;

	if (stasis_id_random(&id, err) != 0)
		return -1;
	(void)snprintf(making->name, sizeof(making->name), "%s%s%.*s", STASIS_IMAGE_RESERVE_NAME,
		       STASIS_IMAGE_PARTIAL_MARK, STASIS_IMAGE_PARTIAL_DIGITS,
		       stasis_id_format(&id, digits));
	return 0;
}

int stasis_image_reserve_make(const char *path, const struct stasis_image_reserve_plan *plan,
			      struct stasis_error *err)
{
	CLEANUP(fd) int parent_fd = -1;
	CLEANUP(fd) int dir_fd = -1;
	struct making making = {.path = path, .plan = plan};
	struct stasis_error why = STASIS_ERROR_INIT;
	int code;

	if (plan_check(path, plan, err) != 0 || name_make(&making, err) != 0)
		return -1;
	parent_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open the directory '%.200s'", path);
	code = stasis_image_io_mkdir(parent_fd, making.name, &dir_fd);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "reserve in '%.200s'", path);
	making.parent_fd = parent_fd;
	making.dir_fd = dir_fd;
	if (reserve_fill(&making, err) == 0)
		return 0;
	if (stasis_tree_remove(parent_fd, making.name, &why) != 0)
		stasis_log_warn("image: %s; `stasis gc` removes it", why.text);
	return -1;
}
