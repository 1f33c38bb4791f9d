/*
 * See file.h.
 */

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/id.h"

/* Not in the headers of older C libraries. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* One read or write of a loop; the count moved, or -1 with errno. */
typedef ssize_t move_function(int fd, char *buffer, size_t bytes, uint64_t offset);

static ssize_t move_pread(int fd, char *buffer, size_t bytes, uint64_t offset)
{
	return pread(fd, buffer, bytes, (off_t)offset);
}

static ssize_t move_pwrite(int fd, char *buffer, size_t bytes, uint64_t offset)
{
	return pwrite(fd, buffer, bytes, (off_t)offset);
}

static ssize_t move_read(int fd, char *buffer, size_t bytes, uint64_t offset)
{
	(void)offset;
	return read(fd, buffer, bytes);
}

static ssize_t move_write(int fd, char *buffer, size_t bytes, uint64_t offset)
{
	(void)offset;
	return write(fd, buffer, bytes);
}

static int move_all(move_function *move, int fd, char *buffer, size_t bytes, uint64_t offset,
		    const char *point)
{
	size_t moved = 0;

	while (moved < bytes) {
		size_t want = bytes - moved;
		int code = point ? stasis_fault_point_io(point, &want) : 0;
		ssize_t count = -1;

		if (code)
			errno = code;
		else
			count = move(fd, buffer + moved, want, offset + moved);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno;
		if (count == 0)
			return ENODATA;
		moved += (size_t)count;
	}
	return 0;
}

int stasis_pread_all(int fd, void *buffer, size_t bytes, uint64_t offset, const char *point)
{
	return move_all(move_pread, fd, buffer, bytes, offset, point);
}

int stasis_pwrite_all(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *point)
{
	/* One loop serves both directions; the write never touches the buffer. */
	return move_all(move_pwrite, fd, (char *)(uintptr_t)buffer, bytes, offset, point);
}

int stasis_read_all(int fd, void *buffer, size_t bytes)
{
	return move_all(move_read, fd, buffer, bytes, 0, NULL);
}

int stasis_write_all(int fd, const void *buffer, size_t bytes)
{
	return move_all(move_write, fd, (char *)(uintptr_t)buffer, bytes, 0, NULL);
}

int stasis_file_open_regular(int dir_fd, const char *name, enum stasis_status status, int *ret_fd,
			     uint64_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	struct stat info;

	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ELOOP)
		return stasis_fail(err, status, "open '%s': it is a symbolic link", name);
	if (fd < 0)
		return stasis_fail_errno(err, status, "open '%s'", name);
	if (fstat(fd, &info) != 0)
		return stasis_fail_errno(err, status, "stat '%s'", name);
	if (!S_ISREG(info.st_mode))
		return stasis_fail(err, status, "open '%s': it is not a regular file", name);
	*ret_bytes = (uint64_t)info.st_size;
	*ret_fd = fd_steal(&fd);
	return 0;
}

int stasis_file_read(int dir_fd, const char *name, size_t max_bytes, enum stasis_status status,
		     char **ret_text, size_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	CLEANUP(free) char *text = NULL;
	uint64_t bytes = 0;
	int code;

	if (stasis_file_open_regular(dir_fd, name, status, &fd, &bytes, err) != 0)
		return -1;
	if (bytes > max_bytes)
		return stasis_fail(err, status,
				   "read '%s': %llu bytes are more than the %zu allowed", name,
				   (unsigned long long)bytes, max_bytes);
	text = malloc((size_t)bytes + 1);
	if (!text)
		return stasis_fail_errno(err, status, "read '%s'", name);
	code = stasis_pread_all(fd, text, (size_t)bytes, 0, "file_read");
	if (code)
		return stasis_fail_code(err, status, code, "read '%s'", name);
	text[bytes] = '\0';
	*ret_text = ptr_steal(&text);
	*ret_bytes = (size_t)bytes;
	return 0;
}

/* fsync, repeated where a signal interrupts it (network and FUSE file systems); 0, or an errno. */
static int sync_repeat(int fd, const char *point)
{
	int code;

	do {
		code = stasis_fault_point(point);
		if (!code && fsync(fd) != 0)
			code = errno;
	} while (code == EINTR);
	return code;
}

static int temporary_fill(int fd, const char *name, const void *data, size_t bytes,
			  struct stasis_error *err)
{
	int code = stasis_pwrite_all(fd, data, bytes, 0, "file_write");

	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "write '%s'", name);
	code = sync_repeat(fd, "file_sync");
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "fsync '%s'", name);
	return 0;
}

int stasis_file_write_whole(int dir_fd, const char *name, const void *data, size_t bytes,
			    struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	struct stasis_id id;
	char id_text[STASIS_ID_TEXT_BYTES];
	char temporary[NAME_MAX + 1];
	int code;

	if (stasis_id_random(&id, err) != 0)
		return -1;
	if (snprintf(temporary, sizeof(temporary), ".%s-%.8s", name,
		     stasis_id_format(&id, id_text)) >= (int)sizeof(temporary))
		return stasis_fail_code(err, STASIS_REFUSED, ENAMETOOLONG, "create '%s'", name);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "create '%s'", name);
	if (temporary_fill(fd, name, data, bytes, err) != 0)
		goto remove_temporary;
	code = stasis_fault_point("file_rename");
	if (code || renameat(dir_fd, temporary, dir_fd, name) != 0) {
		(void)stasis_fail_code(err, STASIS_REFUSED, code ? code : errno, "rename to '%s'",
				       name);
		goto remove_temporary;
	}
	return stasis_dir_sync(dir_fd, name, err);

remove_temporary:
	(void)unlinkat(dir_fd, temporary, 0);
	return -1;
}

/*
 * A read access suffices: a shared page is mapped as it may be used, and pages around it with it, which takes a
 * third of the time of write accesses. Linux before 5.14 faults them in one by one when they are used.
 */
static int map_populate(void *base, uint64_t bytes)
{
	while (madvise(base, (size_t)bytes, MADV_POPULATE_READ) != 0) {
		if (errno == EINVAL)
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return errno == EFAULT ? EIO : errno;
	}
	return 0;
}

int stasis_file_map(int fd, uint64_t bytes, void **ret_base)
{
	int code = stasis_fault_point("file_map");
	void *base;

	while (!code && fallocate(fd, 0, 0, (off_t)bytes) != 0) {
		if (errno != EINTR)
			code = errno;
	}
	if (code)
		return code;
	base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return errno;
	code = map_populate(base, bytes);
	if (code)
		(void)munmap(base, (size_t)bytes);
	else
		*ret_base = base;
	return code;
}

int stasis_dir_sync(int dir_fd, const char *name, struct stasis_error *err)
{
	int code = sync_repeat(dir_fd, "dir_sync");

	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "fsync the directory of '%s'",
					name);
	return 0;
}
