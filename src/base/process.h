#ifndef STASIS_BASE_PROCESS_H
#define STASIS_BASE_PROCESS_H

/*
 * A process held for good: pid, start time and pidfd together, so that a pid that was given to another
 * process in the meantime is noticed. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

struct stasis_process {
	pid_t pid;
	int pidfd;            /* -1: empty */
	uint64_t start_ticks; /* field 22 of /proc/PID/stat: clock ticks since boot */
};

#define STASIS_PROCESS_EMPTY                                                                       \
	{                                                                                          \
		.pidfd = -1                                                                        \
	}

/*
 * Refuses, each with its own line: pid 0 or negative, our own pid, a thread id (naming its leader), a
 * process that does not exist or is a zombie.
 */
NODISCARD int stasis_process_open(pid_t pid, struct stasis_process *ret_process,
				  struct stasis_error *err);
void stasis_process_close(struct stasis_process *process);

static inline void cleanup_process(struct stasis_process *process)
{
	stasis_process_close(process);
}

/*
 * The same process, and not yet a zombie. One whose main thread has ended is given up to two seconds to end as a whole.
 */
bool stasis_process_is_alive(const struct stasis_process *process);

/* Whether it has ended, or does so within the time. */
bool stasis_process_ends(const struct stasis_process *process, int timeout_ms);

/*
 * A duplicate of its descriptor `number`, close-on-exec, that the caller closes; -1 in *ret_fd: it has none of that
 * number. Needs the right to ptrace the process.
 */
NODISCARD int stasis_process_take_descriptor(const struct stasis_process *process, int number,
					     int *ret_fd, struct stasis_error *err);

/* 0: a process that has none here. False: nothing has this pid, or only a zombie. */
NODISCARD bool stasis_process_parent(pid_t pid, pid_t *ret_parent);

/* Whether a signal or a tracer has stopped its main thread, and with it, nearly always, all of it. */
bool stasis_process_is_stopped(pid_t pid);

/* Whether the process of this pid that began then still lives, and is no zombie. */
bool stasis_process_lives(pid_t pid, uint64_t start_ticks);

/* The start time of whatever has this pid now. False: nothing has. */
NODISCARD bool stasis_process_start_ticks(pid_t pid, uint64_t *ret_start_ticks);

/* Room for the kernel's short name of a process (TASK_COMM_LEN), its end included. */
#define STASIS_PROCESS_NAME_BYTES 16

/* As /proc/PID/comm has it, control characters as '?'; "" where there is none. */
void stasis_process_name(pid_t pid, char ret_name[STASIS_PROCESS_NAME_BYTES]);

/* A number of kibibytes from /proc/PID/status by its key, such as "RssAnon:"; false: not there. */
NODISCARD bool stasis_process_status_kib(pid_t pid, const char *key, uint64_t *ret_kib);

#endif
