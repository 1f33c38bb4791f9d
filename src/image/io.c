/*
 * See io.h.
 */

#include "image/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"

/* A call that is interrupted this often in a row is not interrupted by chance. */
#define INTERRUPTS_MAX 1000

static bool is_interrupted(int code, unsigned int *interrupts)
{
	return code == EINTR && ++*interrupts < INTERRUPTS_MAX;
}

static int mkdir_once(int dir_fd, const char *name)
{
	int code = stasis_fault_point("image_mkdir");

	if (!code && mkdirat(dir_fd, name, 0700) != 0)
		code = errno;
	return code;
}

int stasis_image_io_mkdir(int dir_fd, const char *name, int *ret_fd)
{
	CLEANUP(fd) int fd = -1;
	unsigned int interrupts = 0;
	int code;

	do {
		code = mkdir_once(dir_fd, name);
	} while (is_interrupted(code, &interrupts));
	if (code)
		return code;
	/* The umask can only have taken our own rights away; give them back. */
	if (fchmodat(dir_fd, name, 0700, 0) == 0)
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		code = errno;
		(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
		return code;
	}
	*ret_fd = fd_steal(&fd);
	return 0;
}

static int create_once(int dir_fd, const char *name, int *ret_fd)
{
	int code = stasis_fault_point("image_open");

	if (code)
		return code;
	*ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret_fd < 0 ? errno : 0;
}

int stasis_image_io_create(int dir_fd, const char *name, int *ret_fd)
{
	CLEANUP(fd) int fd = -1;
	unsigned int interrupts = 0;
	int code;

	do {
		code = create_once(dir_fd, name, &fd);
	} while (is_interrupted(code, &interrupts));
	if (code)
		return code;
	if (fchmod(fd, 0600) != 0) {
		code = errno;
		(void)unlinkat(dir_fd, name, 0);
		return code;
	}
	*ret_fd = fd_steal(&fd);
	return 0;
}

int stasis_image_io_truncate(int fd, uint64_t bytes)
{
	unsigned int interrupts = 0;
	int code;

	do {
		code = stasis_fault_point("image_truncate");
		if (!code && ftruncate(fd, (off_t)bytes) != 0)
			code = errno;
	} while (is_interrupted(code, &interrupts));
	return code;
}

int stasis_image_io_sync(int fd, const char *point)
{
	unsigned int interrupts = 0;
	int code;

	do {
		code = stasis_fault_point(point);
		if (!code && fdatasync(fd) != 0)
			code = errno;
	} while (is_interrupted(code, &interrupts));
	return code;
}
