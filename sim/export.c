/* Export descriptors; see export.h. */

#include "export.h"

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC 0x534d4958u
#define DESCRIPTORS_MAX 2

struct message {
	uint32_t magic;
	uint32_t padding;
	struct sim_export export;
};

union control {
	char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	struct cmsghdr header; /* for its alignment */
};

int sim_export_make(const struct sim_export *export, int memory_fd, int claim_fd, int *ret_fd)
{
	struct message message = {.magic = MAGIC, .export = *export};
	const int fds[DESCRIPTORS_MAX] = {memory_fd, claim_fd};
	size_t fd_bytes = (claim_fd >= 0 ? 2 : 1) * sizeof(int);
	struct iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
	union control control = {.bytes = {0}};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.bytes,
				.msg_controllen = CMSG_SPACE(fd_bytes)};
	int ends[2];
	int error = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return errno;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(fd_bytes);
	memcpy(CMSG_DATA(&control.header), fds, fd_bytes);
	if (sendmsg(ends[0], &header, MSG_NOSIGNAL) < 0)
		error = errno;
	(void)close(ends[0]);
	if (error != 0)
		(void)close(ends[1]);
	else
		*ret_fd = ends[1];
	return error;
}

static void close_all(const int fds[DESCRIPTORS_MAX])
{
	for (int i = 0; i < DESCRIPTORS_MAX; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static void take_descriptors(struct msghdr *header, int ret_fds[DESCRIPTORS_MAX])
{
	struct cmsghdr *control = CMSG_FIRSTHDR(header);
	size_t bytes;

	ret_fds[0] = -1;
	ret_fds[1] = -1;
	if (control == NULL || control->cmsg_type != SCM_RIGHTS)
		return;
	bytes = control->cmsg_len - CMSG_LEN(0);
	memcpy(ret_fds, CMSG_DATA(control),
	       bytes < DESCRIPTORS_MAX * sizeof(int) ? bytes : DESCRIPTORS_MAX * sizeof(int));
}

int sim_export_open(int fd, enum sim_export_kind kind, struct sim_export *ret_export,
		    int *ret_memory_fd, int *ret_claim_fd)
{
	struct message message = {.magic = 0};
	struct iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
	union control control = {.bytes = {0}};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = control.bytes,
				.msg_controllen = sizeof(control.bytes)};
	int fds[DESCRIPTORS_MAX];
	int peek = sim_breaks("import_shows_bytes") ? 0 : MSG_PEEK;
	/*
	 * The kernel's own call: a checkpoint looks through the program's descriptors, which to a race detector
	 * would be a race with the program's closing them.
	 */
	long got = syscall(SYS_recvmsg, fd, &header, peek | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return EINVAL;
	take_descriptors(&header, fds);
	if (got != (long)sizeof(message) || message.magic != MAGIC ||
	    message.export.kind != (uint32_t)kind || fds[0] < 0) {
		close_all(fds);
		return EINVAL;
	}
	*ret_export = message.export;
	*ret_memory_fd = fds[0];
	*ret_claim_fd = fds[1];
	return 0;
}

static bool is_multicast(int fd)
{
	struct sim_export export;
	int type = 0;
	socklen_t type_bytes = sizeof(type);
	int memory_fd = -1;
	int claim_fd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 ||
	    type != SOCK_SEQPACKET ||
	    sim_export_open(fd, SIM_EXPORT_MEMORY, &export, &memory_fd, &claim_fd) != 0)
		return false;
	close_all((int[DESCRIPTORS_MAX]){memory_fd, claim_fd});
	return sim_export_describes_multicast(&export);
}

bool sim_export_is_multicast_held(void)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	bool is_found = false;

	if (directory == NULL)
		sim_die("cannot read /proc/self/fd: errno %d", errno);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the directory is this call's own */
	while (!is_found && (entry = readdir(directory)) != NULL)
		if (entry->d_name[0] != '.')
			is_found = is_multicast((int)strtol(entry->d_name, NULL, 10));
	(void)closedir(directory);
	return is_found;
}
