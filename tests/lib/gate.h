#ifndef TESTS_LIB_GATE_H
#define TESTS_LIB_GATE_H

/*
 * What lets a test see order and waiting without sleeping for it.
 *
 * A gate is a host function queued on a stream: whatever is queued behind it waits until the test opens it.
 * Only one closed gate at a time: a driver may run all host functions on one thread.
 *
 * A task is a call made on a thread of its own, so that the test can see that the call does not return
 * (T_BLOCK_MS is how long it looks; a call that rightly blocks never makes the test wrong, however slow
 * the machine) or demand that it does.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "driver/abi.h"

#define T_BLOCK_MS 150
#define T_PASS_MS 5000 /* how long a call may take that should not block */

struct t_gate {
	int ends[2];
	atomic_bool passed; /* the host function has returned */
};

void t_gate_close(struct t_gate *gate, CUstream stream);
void t_gate_open(struct t_gate *gate);

struct t_task {
	pthread_t thread;
	CUcontext context; /* made current in the thread, unless NULL */
	CUresult (*call)(void *argument);
	void *argument;
	CUresult result;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool done;
};

/* `task` is the caller's until t_task_join. The current context, if any, is current in the task too. */
void t_task_start(struct t_task *task, CUresult (*call)(void *argument), void *argument);

/* Whether the call returns within so many milliseconds. */
bool t_task_returns_within(struct t_task *task, int milliseconds);

CUresult t_task_join(struct t_task *task);

#endif
