/*
 * Children and their sockets. Children are remembered, so that a parent that waits in vain can say how the
 * child ended.
 */
#include "child.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define CHILDREN_MAX 16

static struct {
	struct t_child children[CHILDREN_MAX];
	size_t count;
} started;

static pid_t pid_behind(int fd)
{
	for (size_t i = 0; i < started.count; i++)
		if (started.children[i].fd == fd)
			return started.children[i].pid;
	return -1;
}

static void forget(pid_t pid)
{
	for (size_t i = 0; i < started.count; i++)
		if (started.children[i].pid == pid)
			started.children[i] = (struct t_child){.pid = -1, .fd = -1};
}

NORETURN static void child_main(pid_t parent, int fd, void (*run)(int fd, void *argument),
				void *argument)
{
	T_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
	if (getppid() != parent)
		_exit(1);
	/* Ends of older siblings would keep their sockets open. */
	for (size_t i = 0; i < started.count; i++)
		if (started.children[i].fd >= 0)
			(void)close(started.children[i].fd);
	started.count = 0;
	run(fd, argument);
	(void)fflush(stdout);
	_exit(0);
}

struct t_child t_child_start(void (*run)(int fd, void *argument), void *argument)
{
	struct t_child child;
	pid_t parent = getpid();
	int ends[2];

	if (started.count == CHILDREN_MAX)
		t_fail("more than %d children in one test", CHILDREN_MAX);
	T_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	(void)fflush(stdout);
	child.fd = ends[0];
	child.pid = (pid_t)T_SYS(fork());
	if (child.pid == 0) {
		(void)close(ends[0]);
		child_main(parent, ends[1], run, argument);
	}
	(void)close(ends[1]);
	started.children[started.count++] = child;
	return child;
}

static void close_end(struct t_child *child)
{
	forget(child->pid);
	if (child->fd >= 0)
		(void)close(child->fd);
	child->fd = -1;
}

/* Ends this process as the child ended, or says how that was. */
static void take_over(pid_t pid, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == T_EXIT_SKIPPED)
		_exit(T_EXIT_SKIPPED);
	if (WIFSIGNALED(status))
		t_fail("child %d was ended by signal %d", (int)pid, WTERMSIG(status));
	t_fail("child %d ended with status %d", (int)pid, WEXITSTATUS(status));
}

void t_child_join(struct t_child *child)
{
	int status;

	close_end(child);
	T_SYS(waitpid(child->pid, &status, 0));
	take_over(child->pid, status);
}

void t_child_kill(struct t_child *child)
{
	int status;

	T_SYS(kill(child->pid, SIGKILL));
	T_SYS(waitpid(child->pid, &status, 0));
	close_end(child);
}

NORETURN static void other_side_is_gone(int fd)
{
	pid_t pid = pid_behind(fd);
	int status;

	if (pid < 0)
		_exit(1); /* our parent ended, and said why */
	T_SYS(waitpid(pid, &status, 0));
	take_over(pid, status);
	t_fail("child %d ended before it sent what was expected", (int)pid);
}

void t_send(int fd, const void *bytes, size_t size)
{
	ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

	if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
		other_side_is_gone(fd);
	T_EQ(sent, size);
}

void t_receive(int fd, void *ret_bytes, size_t size)
{
	ssize_t got = recv(fd, ret_bytes, size, MSG_TRUNC);

	if (got == 0 || (got < 0 && errno == ECONNRESET))
		other_side_is_gone(fd);
	T_EQ(got, size);
}

void t_say(int fd, char letter)
{
	t_send(fd, &letter, 1);
}

void t_hear(int fd, char letter)
{
	char got;

	t_receive(fd, &got, 1);
	if (got != letter)
		t_fail("expected message '%c' from the other process, got '%c'", letter, got);
}

char t_hear_any(int fd)
{
	char got;

	if (recv(fd, &got, 1, 0) != 1)
		return 0;
	return got;
}

void t_wait_end(int fd)
{
	while (t_hear_any(fd))
		;
}

void t_send_fd(int fd, int sent_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char letter = 'd';
	struct iovec part = {.iov_base = &letter, .iov_len = 1};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	(void)memcpy(CMSG_DATA(header), &sent_fd, sizeof(int));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0 && errno == EPIPE)
		other_side_is_gone(fd);
}

int t_receive_fd(int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char letter;
	struct iovec part = {.iov_base = &letter, .iov_len = 1};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header;
	int received;

	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) <= 0)
		other_side_is_gone(fd);
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		t_fail("expected a descriptor from the other process, got a plain message");
	(void)memcpy(&received, CMSG_DATA(header), sizeof(int));
	return received;
}
