/*
 * cuCtxRecordEvent: an event behind everything that a context has been given, its non-blocking streams included.
 * Recorded in a stream of the simulator's own, so that no stream of the application waits for it.
 */

#include "event.h"

#include "capture.h"

/* Behind one stream's work after another's: the last of these works ends when all have. */
static CUresult record_behind_all(struct sim_context *context, struct sim_stream *own,
				  struct sim_work **ret_last)
{
	struct sim_action action = {.context = context};

	for (size_t i = 0; i < sim_core.streams.count; i++) {
		struct sim_stream *stream = sim_core.streams.items[i];
		struct sim_work *work = NULL;
		CUresult result;

		if (stream->context != context || stream == own || stream->latest == NULL)
			continue;
		result = sim_stream_submit_after(own, &action, stream->latest, &work);
		if (result != CUDA_SUCCESS)
			return result;
		sim_work_unref(*ret_last);
		*ret_last = work;
	}
	return CUDA_SUCCESS;
}

static CUresult record(CUcontext context_handle, CUevent event_handle)
{
	struct sim_context *context = NULL;
	struct sim_event *event = NULL;
	struct sim_stream *own = NULL;
	struct sim_work *last = NULL;
	CUresult result = sim_context_get(context_handle, &context);

	if (result == CUDA_SUCCESS)
		result = sim_event_get(event_handle, &event);
	if (result == CUDA_SUCCESS && event->context != context)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		result = sim_capture_check_context(context);
	if (result == CUDA_SUCCESS)
		result = sim_stream_new(context, CU_STREAM_NON_BLOCKING, 0, &own);
	if (result != CUDA_SUCCESS)
		return result;
	result = record_behind_all(context, own, &last);
	sim_stream_drop(own);
	if (result != CUDA_SUCCESS) {
		sim_work_unref(last);
		return result;
	}
	sim_work_unref(event->recorded);
	event->recorded = last;
	sim_event_forget_capture(event);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, record(context, event));
}
