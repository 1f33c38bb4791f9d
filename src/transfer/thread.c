/*
 * See thread.h.
 */

#include "transfer/thread.h"

#include <sched.h>
#include <signal.h>

#include "base/fault.h"
#include "base/number.h"

#define CREW_MAX 16

int stasis_transfer_thread_start(pthread_t *ret_thread, void *(*function)(void *), void *data)
{
	sigset_t all;
	sigset_t old;
	int code = stasis_fault_point("transfer_thread");

	if (code)
		return code;
	(void)sigfillset(&all);
	/* A thread inherits the mask of the one that starts it. */
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(ret_thread, NULL, function, data);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return code;
}

uint32_t stasis_transfer_processor_count(void)
{
	cpu_set_t processors;
	int count;

	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return 1;
	count = CPU_COUNT(&processors);
	return count > 0 ? (uint32_t)count : 1;
}

struct crew {
	struct stasis_transfer_control *control;
	void (*function)(void *data);
	void *data;
};

static void *crew_main(void *data)
{
	const struct crew *crew = data;

	crew->function(crew->data);
	stasis_transfer_control_leave(crew->control);
	return NULL;
}

int stasis_transfer_crew_run(struct stasis_transfer_control *control, uint32_t thread_count,
			     void (*function)(void *data), void *data,
			     struct stasis_transfer_result *result, struct stasis_error *err)
{
	struct crew crew = {.control = control, .function = function, .data = data};
	pthread_t threads[CREW_MAX];
	uint32_t wanted = (uint32_t)stasis_min_u64(thread_count, CREW_MAX);
	uint32_t started = 0;
	int code = 0;
	int status;

	stasis_transfer_control_enter(control, wanted);
	while (started < wanted) {
		code = stasis_transfer_thread_start(&threads[started], crew_main, &crew);
		if (code)
			break;
		started++;
	}
	for (uint32_t i = started; i < wanted; i++)
		stasis_transfer_control_leave(control);
	status = stasis_transfer_control_wait(control, result, err);
	for (uint32_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	result->worker_count = started;
	if (status == 0 && wanted > 0 && started == 0)
		return stasis_fail_code(err, STASIS_REFUSED, code, "%s: start a thread",
					control->what);
	return status;
}
