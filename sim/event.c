/* Events; see event.h. */

#include "event.h"

#include "capture.h"
#include "ipc_event.h"

#include <stdlib.h>

#define RECORD_FLAGS ((unsigned)CU_EVENT_RECORD_EXTERNAL)
#define CREATE_FLAGS                                                                               \
	((unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS))

CUresult sim_event_get(CUevent handle, struct sim_event **ret_event)
{
	if (!sim_set_has(&sim_core.events, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_event = (struct sim_event *)(void *)handle;
	return CUDA_SUCCESS;
}

CUresult sim_event_new(struct sim_context *context, unsigned flags, struct sim_event **ret_event)
{
	struct sim_event *event = calloc(1, sizeof(*event));

	if (event == NULL || !sim_set_add(&sim_core.events, event)) {
		free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->context = context;
	event->flags = flags;
	*ret_event = event;
	return CUDA_SUCCESS;
}

void sim_event_forget_capture(struct sim_event *event)
{
	free(event->nodes);
	event->nodes = NULL;
	event->node_count = 0;
	event->capture_id = 0;
}

/* Work that waits for it is queued already and needs it no more. */
void sim_event_drop(struct sim_event *event)
{
	sim_set_remove(&sim_core.events, event);
	sim_work_unref(event->recorded);
	sim_event_forget_capture(event);
	sim_ipc_event_drop(event->ipc);
	free(event);
}

void sim_event_drop_context(const struct sim_context *context)
{
	size_t i = 0;

	while (i < sim_core.events.count) {
		struct sim_event *event = sim_core.events.items[i];

		if (event->context == context)
			sim_event_drop(event);
		else
			i++;
	}
}

bool sim_event_is_done(const struct sim_event *event)
{
	if (event->ipc != NULL)
		return sim_ipc_event_is_done(event->ipc);
	if (event->recorded == NULL)
		return !sim_breaks("event_unrecorded");
	return event->recorded->is_done;
}

static CUresult create(CUevent *ret_event, unsigned flags)
{
	struct sim_event *event = NULL;
	CUresult result;

	sim_stream_wait_submitters(sim_context_current());
	if (ret_event == NULL || (flags & ~CREATE_FLAGS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_event_new(sim_context_current(), flags, &event);
	if (result == CUDA_SUCCESS && (flags & CU_EVENT_INTERPROCESS) != 0)
		result = sim_ipc_event_new(&event->ipc);
	if (result == CUDA_SUCCESS)
		*ret_event = (CUevent)(void *)event;
	else if (event != NULL)
		sim_event_drop(event);
	return result;
}

SIM_API CUresult cuEventCreate(CUevent *ret_event, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, create(ret_event, flags));
}

static CUresult record_in(struct sim_stream *stream, struct sim_event *event)
{
	struct sim_action action = {.context = stream->context};
	struct sim_work *work = NULL;
	CUresult result;

	if (event->ipc != NULL)
		sim_ipc_event_make_record(event->ipc, &action);
	result = sim_stream_submit(stream, &action, NULL, &work);
	if (result != CUDA_SUCCESS)
		return result;
	sim_work_unref(event->recorded);
	event->recorded = work;
	sim_event_forget_capture(event);
	return CUDA_SUCCESS;
}

static CUresult record(CUevent handle, CUstream stream_handle, unsigned flags)
{
	struct sim_event *event = NULL;
	struct sim_stream *stream = NULL;
	CUresult result;

	if ((flags & ~RECORD_FLAGS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_event_get(handle, &event);
	if (result == CUDA_SUCCESS)
		result = sim_stream_get(stream_handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (event->context != stream->context)
		return CUDA_ERROR_INVALID_HANDLE;
	result = sim_capture_check_submit(stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture != NULL)
		return sim_capture_record_event(stream, event);
	return record_in(stream, event);
}

SIM_API CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, record(event, stream, 0));
}

SIM_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, record(event, stream, flags));
}

static CUresult query(CUevent handle)
{
	struct sim_event *event = NULL;
	CUresult result = sim_event_get(handle, &event);

	if (result == CUDA_SUCCESS) {
		sim_stream_wait_submitters(event->context);
		/* It may have been destroyed meanwhile. */
		result = sim_event_get(handle, &event);
	}
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_capture_check_event(event->capture_id);
	if (result != CUDA_SUCCESS)
		return result;
	if (sim_context_error(event->context) != CUDA_SUCCESS)
		return sim_context_error(event->context);
	return sim_event_is_done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API CUresult cuEventQuery(CUevent event)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_INIT, query(event));
}

/* What was recorded when the call began; the event itself may be destroyed meanwhile. */
static CUresult synchronize(CUevent handle)
{
	struct sim_event *event = NULL;
	struct sim_context *context;
	CUresult result = sim_event_get(handle, &event);

	if (result != CUDA_SUCCESS)
		return result;
	result = sim_capture_check_event(event->capture_id);
	if (result != CUDA_SUCCESS)
		return result;
	context = event->context;
	if (event->ipc != NULL)
		sim_ipc_event_wait(event->ipc);
	else if (event->recorded != NULL && !sim_breaks("event_synchronize_waits"))
		sim_work_hold_and_wait(event->recorded);
	return sim_context_error(context);
}

SIM_API CUresult cuEventSynchronize(CUevent event)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, synchronize(event));
}

static CUresult destroy(CUevent handle)
{
	struct sim_event *event = NULL;
	CUresult result = sim_event_get(handle, &event);

	if (result == CUDA_SUCCESS)
		sim_event_drop(event);
	return result;
}

SIM_API CUresult cuEventDestroy_v2(CUevent event)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, destroy(event));
}

static CUresult elapsed(float *ret_ms, CUevent start_handle, CUevent end_handle)
{
	struct sim_event *start = NULL;
	struct sim_event *end = NULL;
	CUresult result;

	if (ret_ms == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_event_get(start_handle, &start);
	if (result == CUDA_SUCCESS)
		result = sim_event_get(end_handle, &end);
	if (result != CUDA_SUCCESS)
		return result;
	if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 ||
	    start->recorded == NULL || end->recorded == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!start->recorded->is_done || !end->recorded->is_done)
		return CUDA_ERROR_NOT_READY;
	*ret_ms = (float)((double)((int64_t)(end->recorded->done_ns - start->recorded->done_ns)) /
			  1e6);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuEventElapsedTime_v2(float *ret_ms, CUevent start, CUevent end)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, elapsed(ret_ms, start, end));
}
