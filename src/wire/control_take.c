/*
 * The coordinator's way to a participant's control file and door, see session.h. Not for participants: it
 * walks a directory, which allocates.
 */

#include "wire/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process.h"

static const char control_link[] = "/memfd:stasis-control (deleted)";

static int descriptor_take(pid_t pid, int pidfd, int fd, int *ret_fd, struct stasis_error *err)
{
	const struct stasis_process process = {.pid = pid, .pidfd = pidfd};

	if (stasis_process_take_descriptor(&process, fd, ret_fd, err) != 0)
		return -1;
	if (*ret_fd < 0)
		return stasis_fail_code(err, STASIS_REFUSED, EBADF,
					"process %d: take its descriptor %d", (int)pid, fd);
	return 0;
}

/* The number that a name of /proc/PID/fd is; -1: it is none. */
static int fd_number(const char *name)
{
	int number = 0;

	if (!*name)
		return -1;
	for (; *name; name++) {
		if (*name < '0' || *name > '9' || number > INT32_MAX / 10 - 1)
			return -1;
		number = number * 10 + (*name - '0');
	}
	return number;
}

static bool is_control(int dir_fd, const char *name)
{
	char target[sizeof(control_link) + 1];
	ssize_t length = readlinkat(dir_fd, name, target, sizeof(target));

	return length == (ssize_t)sizeof(control_link) - 1 &&
	       memcmp(target, control_link, sizeof(control_link) - 1) == 0;
}

/* Where the process has the control file: -1 for nowhere. */
static int control_find(pid_t pid, int *ret_fd, struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = NULL;
	char path[32];
	int found = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return stasis_fail_errno(err, STASIS_REFUSED, "process %d: list its descriptors",
					 (int)pid);
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		int number = fd_number(entry->d_name);

		if (number < 0 || !is_control(dirfd(dir), entry->d_name))
			continue;
		if (found >= 0)
			return stasis_fail(err, STASIS_REFUSED,
					   "process %d: it has two control files, descriptors %d "
					   "and %d",
					   (int)pid, found, number);
		found = number;
	}
	*ret_fd = found;
	return 0;
}

static bool is_door(int fd)
{
	int domain = 0;
	int type = 0;
	socklen_t domain_bytes = sizeof(domain);
	socklen_t type_bytes = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 && domain == AF_UNIX &&
	       type == SOCK_SEQPACKET;
}

int stasis_wire_control_take(pid_t pid, int pidfd, bool *ret_is_participant,
			     struct stasis_wire_control *ret_control, int *ret_door_fd,
			     struct stasis_error *err)
{
	CLEANUP(fd) int control_fd = -1;
	CLEANUP(fd) int door_fd = -1;
	int number = -1;

	if (control_find(pid, &number, err) != 0)
		return -1;
	*ret_is_participant = number >= 0;
	if (number < 0)
		return 0;
	if (descriptor_take(pid, pidfd, number, &control_fd, err) != 0)
		return -1;
	if (stasis_wire_control_read(control_fd, ret_control, err) != 0) {
		stasis_error_context(err, "process %d", (int)pid);
		return -1;
	}
	if (descriptor_take(pid, pidfd, ret_control->door_fd, &door_fd, err) != 0)
		return -1;
	if (!is_door(door_fd))
		return stasis_fail(err, STASIS_REFUSED,
				   "process %d: its descriptor %d is not the door that its control "
				   "file says it is",
				   (int)pid, (int)ret_control->door_fd);
	*ret_door_fd = fd_steal(&door_fd);
	return 0;
}
