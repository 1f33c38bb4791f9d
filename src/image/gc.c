/*
 * Partial directories that captures left behind: which are garbage, and their removal. See image.h.
 *
 * A partial may be the only copy of a suspended process's memory, so that whatever cannot be judged stays.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "image/image.h"
#include "image/names.h"
#include "image/owner.h"
#include "image/reserve.h"
#include "image/writer.h"

struct gc {
	const char *path;
	int dir_fd;
	const struct stasis_image_gc_options *options;
	struct stasis_image_owner self; /* boot and pid namespace to compare with */
	struct stasis_image_partial *partials;
	size_t count;
	struct stasis_error first; /* the first removal that failed */
};

/*
 * Bytes of the regular files in a directory, and how many entries it has; -1: it cannot be listed. An owner
 * record that a kill kept from being renamed does not count.
 */
static long directory_measure(int parent_fd, const char *name, uint64_t *io_bytes)
{
	static const char unfinished[] = "." STASIS_IMAGE_OWNER_NAME "-";
	CLEANUP(dir) DIR *dir = NULL;
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	long count = 0;

	if (fd >= 0)
		dir = fdopendir(fd);
	if (!dir) {
		cleanup_fd(&fd);
		return -1;
	}
	while ((entry = stasis_dir_next(dir)) != NULL) {
		struct stat info;

		count += strncmp(entry->d_name, unfinished, sizeof(unfinished) - 1) != 0;
		if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(info.st_mode))
			*io_bytes += (uint64_t)info.st_size;
	}
	return errno ? -1 : count;
}

static bool is_suspended(const struct gc *gc, const struct stasis_image_owner_process *process)
{
	if (!stasis_image_owner_process_lives(process))
		return false;
	return !gc->options->is_still_suspended ||
	       gc->options->is_still_suspended(gc->options->context, process->pid,
					       process->start_ticks);
}

static enum stasis_image_partial_state
owner_judge(const struct gc *gc, const struct stasis_image_owner *owner, pid_t *ret_pid)
{
	if (strcmp(owner->boot_id, gc->self.boot_id) != 0 ||
	    strcmp(owner->pid_namespace, gc->self.pid_namespace) != 0)
		return STASIS_IMAGE_PARTIAL_FOREIGN;
	if (stasis_image_owner_process_lives(&owner->capturer)) {
		*ret_pid = owner->capturer.pid;
		return STASIS_IMAGE_PARTIAL_RUNNING;
	}
	for (size_t i = 0; i < owner->process_count; i++) {
		if (is_suspended(gc, &owner->processes[i])) {
			*ret_pid = owner->processes[i].pid;
			return STASIS_IMAGE_PARTIAL_SUSPENDED;
		}
	}
	return STASIS_IMAGE_PARTIAL_GARBAGE;
}

static enum stasis_image_partial_state partial_judge(const struct gc *gc, int fd, long entry_count,
						     pid_t *ret_pid)
{
	CLEANUP(image_owner) struct stasis_image_owner owner = {0};
	CLEANUP(free) char *text = NULL;
	struct stat info;
	size_t bytes = 0;

	if (fstat(fd, &info) != 0)
		return STASIS_IMAGE_PARTIAL_UNKNOWN;
	if (info.st_uid != geteuid() && geteuid() != 0)
		return STASIS_IMAGE_PARTIAL_FOREIGN;
	/* Killed between making the directory and its record: nothing was touched yet. */
	if (entry_count == 0)
		return STASIS_IMAGE_PARTIAL_GARBAGE;
	if (stasis_file_read(fd, STASIS_IMAGE_OWNER_NAME, STASIS_IMAGE_OWNER_BYTES_MAX,
			     STASIS_REFUSED, &text, &bytes, NULL) != 0 ||
	    stasis_image_owner_decode(text, bytes, &owner, NULL) != 0)
		return STASIS_IMAGE_PARTIAL_UNKNOWN;
	return owner_judge(gc, &owner, ret_pid);
}

static bool can_remove(const struct gc *gc, enum stasis_image_partial_state state)
{
	switch (state) {
	case STASIS_IMAGE_PARTIAL_GARBAGE:
		return !gc->options->is_dry_run;
	case STASIS_IMAGE_PARTIAL_FOREIGN:
	case STASIS_IMAGE_PARTIAL_UNKNOWN:
		return !gc->options->is_dry_run && gc->options->can_remove_unjudged;
	case STASIS_IMAGE_PARTIAL_RUNNING:
	case STASIS_IMAGE_PARTIAL_SUSPENDED:
		break;
	}
	return false;
}

static void partial_remove(struct gc *gc, struct stasis_image_partial *partial)
{
	struct stasis_error why = STASIS_ERROR_INIT;
	int code = stasis_fault_point("image_gc_remove");

	if (code)
		(void)stasis_fail_code(&why, STASIS_REFUSED, code, "remove '%s'", partial->name);
	else if (stasis_tree_remove(gc->dir_fd, partial->name, &why) == 0)
		partial->was_removed = true;
	stasis_error_context(&why, "directory '%.200s'", gc->path);
	stasis_error_take(&gc->first, &why);
}

/* Looks at one name; what is no directory, or is gone by now, is no partial. */
static int partial_handle(struct gc *gc, const char *name, struct stasis_error *err)
{
	CLEANUP(fd)
	int fd = openat(gc->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stasis_image_partial *partial;
	long entry_count;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	partial = stasis_image_list_grow(&gc->partials, gc->count, sizeof(*partial));
	if (!partial)
		return stasis_fail_errno(err, STASIS_REFUSED, "list '%.200s'", gc->path);
	gc->count++;
	memcpy(partial->name, name, strlen(name) + 1);
	partial->state = STASIS_IMAGE_PARTIAL_UNKNOWN;
	if (fd < 0)
		return 0;
	entry_count = directory_measure(gc->dir_fd, name, &partial->bytes);
	(void)directory_measure(fd, STASIS_IMAGE_GPU_DIR_NAME, &partial->bytes);
	(void)directory_measure(fd, STASIS_IMAGE_RESERVE_TAKEN_NAME, &partial->bytes);
	partial->state = partial_judge(gc, fd, entry_count, &partial->pid);
	if (can_remove(gc, partial->state))
		partial_remove(gc, partial);
	return 0;
}

static int directory_walk(struct gc *gc, struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = NULL;
	struct dirent *entry;
	int copy;

	gc->dir_fd = open(gc->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	copy = gc->dir_fd < 0 ? -1 : fcntl(gc->dir_fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		dir = fdopendir(copy);
	if (!dir) {
		cleanup_fd(&copy);
		return stasis_fail_errno(err, STASIS_REFUSED, "open the directory '%.200s'",
					 gc->path);
	}
	while ((entry = stasis_dir_next(dir)) != NULL) {
		if (stasis_image_partial_name_is(entry->d_name) &&
		    partial_handle(gc, entry->d_name, err) != 0)
			return -1;
	}
	if (errno)
		return stasis_fail_errno(err, STASIS_REFUSED, "list '%.200s'", gc->path);
	return 0;
}

int stasis_image_gc(const char *path, const struct stasis_image_gc_options *options,
		    struct stasis_image_partial **ret_partials, size_t *ret_count,
		    struct stasis_error *err)
{
	struct gc gc = {.path = path, .dir_fd = -1, .options = options};
	int failed = stasis_image_owner_init(&gc.self, err);

	gc.first = (struct stasis_error)STASIS_ERROR_INIT;
	if (!failed)
		failed = directory_walk(&gc, err);
	if (!failed && stasis_error_is_set(&gc.first)) {
		stasis_error_take(err, &gc.first);
		failed = -1;
	}
	*ret_partials = gc.partials;
	*ret_count = gc.count;
	cleanup_fd(&gc.dir_fd);
	stasis_image_owner_fini(&gc.self);
	return failed;
}

const char *stasis_image_partial_state_name(enum stasis_image_partial_state state)
{
	static const char *const names[] = {
		[STASIS_IMAGE_PARTIAL_GARBAGE] = "garbage",
		[STASIS_IMAGE_PARTIAL_RUNNING] = "running",
		[STASIS_IMAGE_PARTIAL_SUSPENDED] = "suspended",
		[STASIS_IMAGE_PARTIAL_FOREIGN] = "foreign",
		[STASIS_IMAGE_PARTIAL_UNKNOWN] = "unknown",
	};

	return names[state];
}
