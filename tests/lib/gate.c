/*
 * Gates and tasks.
 */
#include "gate.h"

#include <time.h>
#include <unistd.h>

#include "check.h"

static void CUDAAPI wait_at_gate(void *argument)
{
	struct t_gate *gate = argument;
	char letter;

	while (read(gate->ends[0], &letter, 1) < 0 && errno == EINTR)
		;
	atomic_store(&gate->passed, true);
}

void t_gate_close(struct t_gate *gate, CUstream stream)
{
	atomic_init(&gate->passed, false);
	T_SYS(pipe(gate->ends));
	T_OK(cuLaunchHostFunc(stream, wait_at_gate, gate));
}

void t_gate_open(struct t_gate *gate)
{
	T_EQ(write(gate->ends[1], "o", 1), 1);
}

static void *task_main(void *argument)
{
	struct t_task *task = argument;
	CUresult result = CUDA_SUCCESS;

	if (task->context)
		result = cuCtxSetCurrent(task->context);
	if (result == CUDA_SUCCESS)
		result = task->call(task->argument);
	(void)pthread_mutex_lock(&task->mutex);
	task->result = result;
	task->done = true;
	(void)pthread_cond_signal(&task->changed);
	(void)pthread_mutex_unlock(&task->mutex);
	return NULL;
}

void t_task_start(struct t_task *task, CUresult (*call)(void *argument), void *argument)
{
	pthread_condattr_t attributes;

	*task = (struct t_task){.call = call, .argument = argument};
	(void)cuCtxGetCurrent(&task->context);
	(void)pthread_mutex_init(&task->mutex, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&task->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	T_EQ(pthread_create(&task->thread, NULL, task_main, task), 0);
}

bool t_task_returns_within(struct t_task *task, int milliseconds)
{
	struct timespec until;
	bool done;
	int code = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += milliseconds / 1000;
	until.tv_nsec += (milliseconds % 1000) * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	(void)pthread_mutex_lock(&task->mutex);
	while (!task->done && code == 0)
		code = pthread_cond_timedwait(&task->changed, &task->mutex, &until);
	done = task->done;
	(void)pthread_mutex_unlock(&task->mutex);
	return done;
}

CUresult t_task_join(struct t_task *task)
{
	T_EQ(pthread_join(task->thread, NULL), 0);
	(void)pthread_cond_destroy(&task->changed);
	(void)pthread_mutex_destroy(&task->mutex);
	return task->result;
}
