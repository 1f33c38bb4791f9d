#include "peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "compiler.h"

#define NAME_BYTES 64
#define BACKLOG 32
#define START_FIELD 22 /* of /proc/PID/stat */

static bool read_proc(pid_t pid, const char *name, char *ret_text, size_t text_size)
{
	char path[64];
	CLEANUP(fd) int fd = -1;
	ssize_t got;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, ret_text, text_size - 1);
	if (got <= 0)
		return false;
	ret_text[got] = '\0';
	return true;
}

static bool start_time(pid_t pid, unsigned long long *ret_ticks)
{
	char text[1024];
	char *field;

	if (!read_proc(pid, "stat", text, sizeof(text)))
		return false;
	/* The name before it may hold blanks and parentheses; what follows its last one does not. */
	field = strrchr(text, ')');
	for (int i = 2; field != NULL && i < START_FIELD; i++)
		field = strchr(field + 1, ' ');
	if (field == NULL)
		return false;
	*ret_ticks = strtoull(field, NULL, 10);
	return true;
}

/* The process that a thread belongs to. */
static bool thread_leader(pid_t pid, pid_t *ret_leader)
{
	static const char key[] = "\nTgid:";
	char text[4096];
	char *found;

	if (!read_proc(pid, "status", text, sizeof(text)))
		return false;
	found = strstr(text, key);
	if (found == NULL)
		return false;
	*ret_leader = (pid_t)strtol(found + strlen(key), NULL, 10);
	return true;
}

void sim_peer_name(char *ret_name, size_t name_size)
{
	unsigned long long ticks = 0;

	if (!start_time(getpid(), &ticks))
		sim_die("cannot read /proc/self/stat: errno %d", errno);
	(void)snprintf(ret_name, name_size, "p-%d-%llu.sock", (int)getpid(), ticks);
}

/* Names in a directory too deep for a socket's address are reached through its descriptor. */
static bool socket_address(const char *name, struct sockaddr_un *ret_address, int *ret_dir_fd)
{
	int bytes;

	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	bytes = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s/%s",
			 sim_config()->dir, name);
	if (bytes < (int)sizeof(ret_address->sun_path))
		return true;
	*ret_dir_fd = open(sim_config()->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dir_fd < 0)
		return false;
	(void)snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/%s",
		       *ret_dir_fd, name);
	return true;
}

/* A descriptor, or -1 with errno. A stale socket refuses. */
static int connect_name(const char *name, pid_t pid)
{
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	CLEANUP(fd) int dir_fd = -1;
	CLEANUP(fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || !socket_address(name, &address, &dir_fd))
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0)
		return -1;
	if (peer.pid != pid) {
		errno = ECONNREFUSED;
		return -1;
	}
	return fd_steal(&fd);
}

/* The next name in a directory that no other thread reads; NULL at its end. */
static const char *next_name(DIR *dir)
{
	const struct dirent *entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe) */

	return entry ? entry->d_name : NULL;
}

/* What processes that were killed have left; nobody listens there, and nobody with that pid lives. */
static void sweep(void)
{
	DIR *dir = opendir(sim_config()->dir);

	if (dir == NULL)
		return;
	for (const char *name = next_name(dir); name != NULL; name = next_name(dir)) {
		long pid = strncmp(name, "p-", 2) == 0 ? strtol(name + 2, NULL, 10) : 0;
		int fd;

		if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		fd = connect_name(name, (pid_t)pid);
		if (fd < 0 && errno == ECONNREFUSED)
			(void)unlinkat(dirfd(dir), name, 0);
		cleanup_fd(&fd);
	}
	(void)closedir(dir);
}

int sim_peer_listen(void)
{
	char name[NAME_BYTES];
	struct sockaddr_un address;
	CLEANUP(fd) int dir_fd = -1;
	CLEANUP(fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	sweep();
	sim_peer_name(name, sizeof(name));
	if (fd < 0 || !socket_address(name, &address, &dir_fd))
		return -1;
	(void)unlink(address.sun_path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    chmod(address.sun_path, 0600) != 0 || listen(fd, BACKLOG) != 0)
		return -1;
	return fd_steal(&fd);
}

/* Any socket of that pid: after CRIU the start time in its name is not the process's any more. */
static int connect_any(pid_t pid)
{
	char prefix[NAME_BYTES];
	DIR *dir = opendir(sim_config()->dir);
	int fd = -1;
	int failure = ENOENT;

	if (dir == NULL)
		return -1;
	(void)snprintf(prefix, sizeof(prefix), "p-%d-", (int)pid);
	for (const char *name = next_name(dir); name != NULL && fd < 0; name = next_name(dir)) {
		if (strncmp(name, prefix, strlen(prefix)) != 0)
			continue;
		fd = connect_name(name, pid);
		if (fd < 0)
			failure = errno;
	}
	(void)closedir(dir);
	errno = failure;
	return fd;
}

CUresult sim_peer_connect(pid_t pid, int *ret_fd)
{
	pid_t leader = pid;
	int fd;

	if (pid <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!thread_leader(pid, &leader))
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (leader != pid && sim_breaks("tid_refused"))
		return CUDA_ERROR_NOT_INITIALIZED;
	fd = connect_any(leader);
	if (fd >= 0) {
		*ret_fd = fd;
		return CUDA_SUCCESS;
	}
	if (errno == EACCES || errno == EPERM)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (kill(leader, 0) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return CUDA_ERROR_NOT_INITIALIZED;
}

bool sim_peer_send(int fd, const void *message, size_t bytes, const int *fds, size_t fd_count)
{
	/* sendmsg() does not write to it. */
	struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(SIM_FILES_MAX * sizeof(int))];
	} control = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (fd_count != 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	do {
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)bytes;
}

static void take_descriptors(struct msghdr *header, struct sim_descriptors *ret_fds)
{
	ret_fds->count = 0;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
	     part = CMSG_NXTHDR(header, part)) {
		size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		/* There is room for no more than SIM_FILES_MAX in what was given to recvmsg(). */
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(ret_fds->fds + ret_fds->count, CMSG_DATA(part), here * sizeof(int));
		ret_fds->count += here;
	}
}

void sim_peer_drop(struct sim_descriptors *fds)
{
	while (fds->count > 0)
		(void)close(fds->fds[--fds->count]);
}

bool sim_peer_receive(int fd, void *ret_message, size_t bytes, struct sim_descriptors *ret_fds)
{
	struct iovec part = {.iov_base = ret_message, .iov_len = bytes};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(SIM_FILES_MAX * sizeof(int))];
	} control;
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct sim_descriptors unwanted;
	ssize_t got;

	do {
		got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return false;
	take_descriptors(&header, ret_fds ? ret_fds : &unwanted);
	if (ret_fds == NULL)
		sim_peer_drop(&unwanted);
	if (got == (ssize_t)bytes && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return true;
	if (ret_fds != NULL)
		sim_peer_drop(ret_fds);
	return false;
}

CUresult sim_peer_ask(int fd, const struct sim_request *request, struct sim_reply *ret_reply,
		      struct sim_descriptors *ret_fds)
{
	if (!sim_peer_send(fd, request, sizeof(*request), NULL, 0) ||
	    !sim_peer_receive(fd, ret_reply, sizeof(*ret_reply), ret_fds))
		return CUDA_ERROR_OPERATING_SYSTEM;
	return (CUresult)ret_reply->result;
}
