/*
 * Description: events.
 */
#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static CUevent event_new(unsigned int flags)
{
	CUevent event = NULL;

	T_OK(cuEventCreate(&event, flags));
	return event;
}

static void event_flags(void)
{
	CUevent event = NULL;

	(void)t_cuda();
	T_IS(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuEventCreate(&event, 0x100), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
}

static void event_unrecorded(void)
{
	CUevent event;

	(void)t_cuda();
	event = event_new(CU_EVENT_DEFAULT);
	T_OK(cuEventQuery(event));
	T_OK(cuEventSynchronize(event));
	T_OK(cuStreamWaitEvent(t_stream(CU_STREAM_NON_BLOCKING), event, 0));
}

static void event_follows_stream(void)
{
	struct t_gate gate;
	CUstream stream;
	CUevent event;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	event = event_new(CU_EVENT_DISABLE_TIMING);
	t_gate_close(&gate, stream);
	T_OK(cuEventRecord(event, stream));
	T_IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuEventSynchronize(event));
	T_TRUE(atomic_load(&gate.passed));
	T_OK(cuEventQuery(event));
}

typedef CUresult context_record(CUcontext, CUevent);

/* Also what a non-blocking stream has been given, and nothing later waits for it. */
static void context_event_covers_all(void)
{
	context_record *record;
	struct t_gate gate;
	CUcontext context;
	CUstream other;
	CUevent event;

	context = t_cuda();
	record = (context_record *)t_entry("cuCtxRecordEvent", 12050);
	event = event_new(CU_EVENT_DISABLE_TIMING);
	T_OK(record(context, event));
	T_OK(cuEventSynchronize(event));
	other = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, t_stream(CU_STREAM_NON_BLOCKING));
	T_OK(record(context, event));
	T_IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	T_OK(cuMemsetD8Async(t_alloc(4096), 1, 4096, other));
	T_OK(cuStreamSynchronize(other));
	t_gate_open(&gate);
	T_OK(cuEventSynchronize(event));
	T_TRUE(atomic_load(&gate.passed));
}

static CUresult synchronize(void *event)
{
	return cuEventSynchronize(event);
}

static void event_synchronize_waits(void)
{
	struct t_gate gate;
	struct t_task task;
	CUstream stream;
	CUevent event;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	event = event_new(CU_EVENT_BLOCKING_SYNC);
	t_gate_close(&gate, stream);
	T_OK(cuEventRecord(event, stream));
	t_task_start(&task, synchronize, event);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_gate_open(&gate);
	T_OK(t_task_join(&task));
}

static void event_joins_streams(void)
{
	struct t_gate gate;
	CUstream first;
	CUstream second;
	CUevent event;

	(void)t_cuda();
	first = t_stream(CU_STREAM_NON_BLOCKING);
	second = t_stream(CU_STREAM_NON_BLOCKING);
	event = event_new(CU_EVENT_DISABLE_TIMING);
	t_gate_close(&gate, first);
	T_OK(cuEventRecord(event, first));
	T_OK(cuStreamWaitEvent(second, event, 0));
	T_IS(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(second));
	T_TRUE(atomic_load(&gate.passed));
}

static void elapsed_time(void)
{
	struct t_gate gate;
	CUstream stream;
	CUevent start;
	CUevent end;
	float milliseconds = -1;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	start = event_new(CU_EVENT_DEFAULT);
	end = event_new(CU_EVENT_DEFAULT);
	T_IS(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
	T_OK(cuEventRecord(start, stream));
	t_gate_close(&gate, stream);
	T_OK(cuEventRecord(end, stream));
	T_IS(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuEventSynchronize(end));
	T_OK(cuEventElapsedTime_v2(&milliseconds, start, end));
	T_TRUE(milliseconds >= 0);
}

static void elapsed_without_timing(void)
{
	CUstream stream;
	CUevent start;
	CUevent end;
	float milliseconds = -1;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	start = event_new(CU_EVENT_DISABLE_TIMING);
	end = event_new(CU_EVENT_DEFAULT);
	T_OK(cuEventRecord(start, stream));
	T_OK(cuEventRecord(end, stream));
	T_OK(cuStreamSynchronize(stream));
	T_IS(cuEventElapsedTime_v2(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
}

static const struct t_behaviour behaviours[] = {
	{"event_flags", T_DOCUMENTED, "an event for other processes has no timing; others refused",
	 event_flags},
	{"event_unrecorded", T_DOCUMENTED, "an event that was never recorded is complete",
	 event_unrecorded},
	{"context_event_covers_all", T_MEASURED,
	 "an event recorded of a context waits for all its streams, non-blocking ones too",
	 context_event_covers_all},
	{"event_follows_stream", T_DOCUMENTED,
	 "an event is NOT_READY until the work before it is done", event_follows_stream},
	{"event_synchronize_waits", T_DOCUMENTED, "cuEventSynchronize waits for the event",
	 event_synchronize_waits},
	{"event_joins_streams", T_DOCUMENTED, "a stream waits for an event of another stream",
	 event_joins_streams},
	{"elapsed_time", T_DOCUMENTED,
	 "elapsed time needs both records made (INVALID_HANDLE) and done (NOT_READY)",
	 elapsed_time},
	{"elapsed_without_timing", T_DOCUMENTED, "events without timing have no elapsed time",
	 elapsed_without_timing},
};

T_BEHAVIOURS_MAIN(behaviours)
