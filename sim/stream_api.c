/* The calls that make streams, ask them and wait for them. */

#include "capture.h"
#include "event.h"
#include "ipc_event.h"
#include "stream.h"

#include <stdlib.h>

static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

/* The per-thread default streams go with their thread. */
static void end_of_thread(void *argument)
{
	struct sim_thread *thread = argument;

	sim_core_lock();
	while (thread->per_thread_streams != NULL) {
		struct sim_stream *stream = thread->per_thread_streams;

		thread->per_thread_streams = stream->next_of_thread;
		sim_stream_drop(stream);
	}
	sim_core_unlock();
}

static void make_key(void)
{
	(void)pthread_key_create(&thread_end, end_of_thread);
}

static CUresult per_thread_stream(struct sim_context *context, struct sim_stream **ret_stream)
{
	struct sim_stream *stream = sim_thread.per_thread_streams;
	CUresult result;

	while (stream != NULL && stream->context != context)
		stream = stream->next_of_thread;
	if (stream == NULL) {
		result = sim_stream_new(context, CU_STREAM_DEFAULT, 0, &stream);
		if (result != CUDA_SUCCESS)
			return result;
		stream->is_per_thread = true;
		stream->next_of_thread = sim_thread.per_thread_streams;
		sim_thread.per_thread_streams = stream;
		(void)pthread_once(&thread_end_once, make_key);
		(void)pthread_setspecific(thread_end, &sim_thread);
	}
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

CUresult sim_stream_get(CUstream handle, struct sim_stream **ret_stream)
{
	struct sim_context *current = sim_context_current();

	if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		CUresult result = sim_context_check(current);

		if (result != CUDA_SUCCESS)
			return result;
		if (handle == CU_STREAM_PER_THREAD)
			return per_thread_stream(current, ret_stream);
		*ret_stream = current->legacy_stream;
		return CUDA_SUCCESS;
	}
	if (!sim_set_has(&sim_core.streams, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_stream = (struct sim_stream *)(void *)handle;
	return CUDA_SUCCESS;
}

static CUresult create(CUstream *ret_stream, unsigned flags, int priority)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_stream == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* A priority beyond the range is taken as the nearest. */
	if (!sim_breaks("stream_priority"))
		priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	result = sim_stream_new(sim_context_current(), flags, priority, &stream);
	if (result == CUDA_SUCCESS)
		*ret_stream = (CUstream)(void *)stream;
	return result;
}

SIM_API CUresult cuStreamCreate(CUstream *ret_stream, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, create(ret_stream, flags, 0));
}

SIM_API CUresult cuStreamCreateWithPriority(CUstream *ret_stream, unsigned int flags, int priority)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       create(ret_stream, flags, priority));
}

static CUresult destroy(CUstream handle)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	result = sim_stream_get(handle, &stream);
	if (result == CUDA_SUCCESS && (stream->is_legacy || stream->is_per_thread))
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		sim_stream_drop(stream);
	return result;
}

SIM_API CUresult cuStreamDestroy_v2(CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, destroy(stream));
}

static CUresult query(CUstream handle)
{
	struct sim_stream *stream = NULL;
	CUresult result = sim_stream_get(handle, &stream);

	if (result == CUDA_SUCCESS) {
		sim_stream_wait_submitters(stream->context);
		/* It may have been destroyed meanwhile. */
		result = sim_stream_get(handle, &stream);
	}
	if (result == CUDA_SUCCESS)
		result = sim_capture_check_stream(stream);
	if (result == CUDA_SUCCESS)
		result = sim_context_error(stream->context);
	if (result != CUDA_SUCCESS)
		return result;
	return sim_stream_is_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API CUresult cuStreamQuery(CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT, query(stream));
}

static CUresult synchronize(CUstream handle)
{
	struct sim_stream *stream = NULL;
	const struct sim_context *context;
	CUresult result = sim_stream_get(handle, &stream);

	if (result == CUDA_SUCCESS)
		result = sim_capture_check_stream(stream);
	if (result != CUDA_SUCCESS)
		return result;
	context = stream->context;
	if (!sim_breaks("stream_synchronize_waits"))
		sim_stream_wait(stream);
	return sim_context_error(context);
}

SIM_API CUresult cuStreamSynchronize(CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, synchronize(stream));
}

static CUresult wait_event(CUstream stream_handle, CUevent event_handle, unsigned flags)
{
	struct sim_action action = {.run = NULL};
	struct sim_stream *stream = NULL;
	struct sim_event *event = NULL;
	CUresult result;

	if ((flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_event_get(event_handle, &event);
	if (result == CUDA_SUCCESS)
		result = sim_stream_get(stream_handle, &stream);
	if (result == CUDA_SUCCESS)
		result = sim_capture_check_submit(stream);
	if (result != CUDA_SUCCESS)
		return result;
	action.context = stream->context;
	if (event->capture_id != 0 || stream->capture != NULL)
		return sim_capture_wait_event(stream, event);
	if (event->ipc != NULL) {
		sim_ipc_event_make_wait(event->ipc, &action);
		return sim_stream_submit(stream, &action, NULL, NULL);
	}
	if (event->recorded == NULL || event->recorded->is_done ||
	    sim_breaks("event_joins_streams"))
		return CUDA_SUCCESS;
	return sim_stream_submit_after(stream, &action, event->recorded, NULL);
}

SIM_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, wait_event(stream, event, flags));
}

/* Host functions and callbacks run in the stream's worker, without the core lock. */
static CUresult run_host(const struct sim_action *action)
{
	const struct sim_host_call *call = &action->host;
	CUresult status;

	sim_core_lock();
	status = sim_context_error(action->context);
	sim_core_unlock();
	if (sim_breaks("callback_gets_status"))
		status = CUDA_ERROR_UNKNOWN;
	sim_core_set_host_function(!sim_breaks("host_function_has_no_cuda"));
	if (call->function != NULL)
		call->function(call->data);
	else
		call->callback(call->stream, status, call->data);
	sim_core_set_host_function(false);
	return CUDA_SUCCESS;
}

static CUresult launch_host(CUstream handle, struct sim_host_call call, bool runs_after_error)
{
	struct sim_action action = {
		.run = run_host, .host = call, .runs_after_error = runs_after_error};
	struct sim_stream *stream = NULL;
	CUresult result;

	if (call.function == NULL && call.callback == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	action.context = stream->context;
	if (!sim_stream_is_idle(stream) && sim_breaks("host_function_is_ordered")) {
		sim_core_unlock();
		(void)run_host(&action);
		sim_core_lock();
		return CUDA_SUCCESS;
	}
	return sim_stream_submit(stream, &action, NULL, NULL);
}

SIM_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	struct sim_host_call call = {.function = function, .stream = stream, .data = data};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, launch_host(stream, call, false));
}

SIM_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
				     unsigned int flags)
{
	struct sim_host_call call = {.callback = callback, .stream = stream, .data = data};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       flags != 0 ? CUDA_ERROR_INVALID_VALUE
					  : launch_host(stream, call, true));
}
