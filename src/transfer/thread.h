#ifndef STASIS_TRANSFER_THREAD_H
#define STASIS_TRANSFER_THREAD_H

/*
 * Threads of the engine: they take no signals, which belong to the program. And a crew: threads that do one
 * thing side by side and end, for work that needs no device.
 */

#include "transfer/control.h"

/* Returns 0 or an errno. */
NODISCARD int stasis_transfer_thread_start(pthread_t *ret_thread, void *(*function)(void *),
					   void *data);

/*
 * Runs `function(data)` in up to `thread_count` threads (fewer where the system has no more), waits as
 * stasis_transfer_control_wait does, and ends them.
 */
NODISCARD int stasis_transfer_crew_run(struct stasis_transfer_control *control,
				       uint32_t thread_count, void (*function)(void *data),
				       void *data, struct stasis_transfer_result *result,
				       struct stasis_error *err);

/* Processors that this process may use; at least 1. */
uint32_t stasis_transfer_processor_count(void);

#endif
