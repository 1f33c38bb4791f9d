#ifndef TESTS_LIB_CHILD_H
#define TESTS_LIB_CHILD_H

/*
 * Second processes of a test, joined to it by a SEQPACKET socketpair. A child is forked before the parent
 * initialises CUDA (a forked CUDA process is useless to it), dies with its parent, and reports its own
 * failures. A message that does not come because the other side ended is that side's failure: the waiting
 * side says so and takes over its exit status, so that a child's skip is the test's skip.
 */

#include <stddef.h>
#include <sys/types.h>

struct t_child {
	pid_t pid;
	int fd;
};

/* Runs `run` in a new process with its end of the socket; the process exits 0 when `run` returns. */
struct t_child t_child_start(void (*run)(int fd, void *argument), void *argument);

/* Closes our end and waits; the child must exit with status 0. */
void t_child_join(struct t_child *child);

/* SIGKILL, and waits. */
void t_child_kill(struct t_child *child);

/* One message each. t_receive demands exactly this size. */
void t_send(int fd, const void *bytes, size_t size);
void t_receive(int fd, void *ret_bytes, size_t size);

/* One-letter messages: t_hear demands this letter; t_hear_any gives it, or 0 when the other side is gone. */
void t_say(int fd, char letter);
void t_hear(int fd, char letter);
char t_hear_any(int fd);

/* A descriptor; the receiver owns its copy. */
void t_send_fd(int fd, int sent_fd);
int t_receive_fd(int fd);

/* Reads until the other side closes its end. */
void t_wait_end(int fd);

#endif
