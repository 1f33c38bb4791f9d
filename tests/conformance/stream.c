/*
 * Description: streams: order, independence, the default stream, host functions, memory operations.
 */
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static void stream_flags(void)
{
	CUstream stream = NULL;
	unsigned int flags = 99;

	(void)t_cuda();
	T_IS(cuStreamCreate(&stream, 0x10), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	T_OK(cuStreamGetFlags(stream, &flags));
	T_EQ(flags, CU_STREAM_NON_BLOCKING);
}

static void stream_priority(void)
{
	CUstream stream = NULL;
	int least = 1;
	int greatest = 1;
	int priority = 1;

	(void)t_cuda();
	T_OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	T_EQ(least, 0);
	T_TRUE(greatest < 0);
	T_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 100));
	T_OK(cuStreamGetPriority(stream, &priority));
	T_EQ(priority, greatest);
}

static void stream_identity(void)
{
	unsigned long long first = 0;
	unsigned long long second = 0;

	(void)t_cuda();
	T_OK(cuStreamGetId(t_stream(0), &first));
	T_OK(cuStreamGetId(t_stream(0), &second));
	T_TRUE(first != second);
}

static void stream_context(void)
{
	CUresult (*get_context)(CUstream, CUcontext *, CUgreenCtx *);
	CUresult (*get_device)(CUstream, CUdevice *);
	CUcontext ours = t_cuda();
	CUcontext context = NULL;
	CUgreenCtx green = NULL;
	CUdevice device = -1;
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);

	*(void **)&get_context = t_entry("cuStreamGetCtx", 12050);
	*(void **)&get_device = t_entry("cuStreamGetDevice", 12080);
	T_OK(get_context(stream, &context, &green));
	T_TRUE(context == ours);
	T_TRUE(green == NULL);
	T_OK(get_device(stream, &device));
	T_EQ(device, 0);
}

#define FULL_WORKS 3000 /* more than any queue takes */

struct full_queue {
	struct t_gate gate;
	struct t_task submitter;
	CUstream stream;
	CUdeviceptr address;
	atomic_int submitted;
};

static CUresult submit_many(void *argument)
{
	struct full_queue *queue = argument;
	CUresult result = CUDA_SUCCESS;

	for (int i = 0; i < FULL_WORKS && result == CUDA_SUCCESS; i++) {
		result = cuMemsetD8Async(queue->address, (unsigned char)i, 4096, queue->stream);
		atomic_fetch_add(&queue->submitted, 1);
	}
	return result;
}

/* Until nothing more goes in; how long that takes is the machine's affair. */
static void queue_fill(struct full_queue *queue)
{
	bool has_returned;
	int before;

	(void)t_cuda();
	atomic_init(&queue->submitted, 0);
	queue->stream = t_stream(CU_STREAM_NON_BLOCKING);
	queue->address = t_alloc(4096);
	t_gate_close(&queue->gate, queue->stream);
	t_task_start(&queue->submitter, submit_many, queue);
	do {
		before = atomic_load(&queue->submitted);
		has_returned = t_task_returns_within(&queue->submitter, T_BLOCK_MS);
	} while (!has_returned && atomic_load(&queue->submitted) != before);
	T_TRUE(!has_returned);
}

static void queue_empty(struct full_queue *queue)
{
	t_gate_open(&queue->gate);
	T_OK(t_task_join(&queue->submitter));
	T_OK(cuStreamSynchronize(queue->stream));
}

static void full_queue_waits(void)
{
	struct full_queue queue;

	queue_fill(&queue);
	queue_empty(&queue);
}

static CUresult query(void *stream)
{
	return cuStreamQuery(stream);
}

static CUresult create_event(void *unused)
{
	CUevent event = NULL;

	(void)unused;
	return cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
}

static void full_queue_shuts_out(void)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	struct full_queue queue;
	struct t_task asker;
	struct t_task maker;
	CUresult result;

	queue_fill(&queue);
	T_OK(cuStreamIsCapturing(queue.stream, &status));
	T_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
	t_task_start(&asker, query, queue.stream);
	t_task_start(&maker, create_event, NULL);
	T_TRUE(!t_task_returns_within(&asker, T_BLOCK_MS));
	T_TRUE(!t_task_returns_within(&maker, T_BLOCK_MS));
	queue_empty(&queue);
	result = t_task_join(&asker);
	T_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY);
	T_OK(t_task_join(&maker));
}

static void query_tells_readiness(void)
{
	struct t_gate gate;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamQuery(stream));
	t_gate_close(&gate, stream);
	T_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	T_OK(cuStreamQuery(stream));
}

static void stream_is_ordered(void)
{
	CUdeviceptr first;
	CUdeviceptr second;
	struct t_gate gate;
	CUstream stream;

	(void)t_cuda();
	first = t_alloc(T_MIB);
	second = t_alloc(T_MIB);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_fill(first, T_MIB, 1);
	t_fill(second, T_MIB, 2);
	t_gate_close(&gate, stream);
	T_OK(cuMemcpyDtoDAsync_v2(second, first, T_MIB, stream));
	T_OK(cuMemsetD8Async(first, 0, T_MIB, stream));
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	t_verify(second, T_MIB, 1);
	T_TRUE(!t_matches(first, T_MIB, 1));
}

static CUresult synchronize_stream(void *stream)
{
	return cuStreamSynchronize(stream);
}

static void streams_are_independent(void)
{
	CUdeviceptr address;
	struct t_gate gate;
	struct t_task task;
	CUstream closed;
	CUstream open;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	closed = t_stream(CU_STREAM_NON_BLOCKING);
	open = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, closed);
	T_OK(cuMemsetD8Async(address, 1, T_MIB, open));
	t_task_start(&task, synchronize_stream, open);
	T_TRUE(t_task_returns_within(&task, T_PASS_MS));
	T_OK(t_task_join(&task));
	T_IS(cuStreamQuery(closed), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(closed));
}

static CUresult synchronize_default(void *unused)
{
	(void)unused;
	return cuStreamSynchronize(NULL);
}

static void default_stream_waits(void)
{
	CUdeviceptr address;
	struct t_gate gate;
	struct t_task task;
	CUstream blocking;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	blocking = t_stream(CU_STREAM_DEFAULT);
	t_gate_close(&gate, blocking);
	T_OK(cuMemsetD8Async(address, 1, T_MIB, NULL));
	t_task_start(&task, synchronize_default, NULL);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_gate_open(&gate);
	T_OK(t_task_join(&task));
	T_OK(cuStreamQuery(blocking));
}

static void non_blocking_is_not_waited_for(void)
{
	CUdeviceptr address;
	struct t_gate gate;
	struct t_task task;
	CUstream stream;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	T_OK(cuMemsetD8Async(address, 1, T_MIB, NULL));
	t_task_start(&task, synchronize_default, NULL);
	T_TRUE(t_task_returns_within(&task, T_PASS_MS));
	T_OK(t_task_join(&task));
	T_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
}

static CUresult synchronize_context(void *unused)
{
	(void)unused;
	return cuCtxSynchronize();
}

static void context_synchronize_waits(void)
{
	struct t_gate gate;
	struct t_task task;

	(void)t_cuda();
	t_gate_close(&gate, t_stream(CU_STREAM_NON_BLOCKING));
	t_task_start(&task, synchronize_context, NULL);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_gate_open(&gate);
	T_OK(t_task_join(&task));
	T_TRUE(atomic_load(&gate.passed));
}

static void stream_synchronize_waits(void)
{
	struct t_gate gate;
	struct t_task task;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	t_task_start(&task, synchronize_stream, stream);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_gate_open(&gate);
	T_OK(t_task_join(&task));
}

static void destroyed_stream_finishes(void)
{
	CUdeviceptr address;
	struct t_gate gate;
	CUstream stream;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	t_fill(address, T_MIB, 1);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	T_OK(cuMemsetD8Async(address, 0, T_MIB, stream));
	T_OK(cuStreamDestroy_v2(stream));
	t_gate_open(&gate);
	T_OK(cuCtxSynchronize());
	T_TRUE(!t_matches(address, T_MIB, 1));
}

static const struct t_behaviour behaviours[] = {
	{"stream_flags", T_DOCUMENTED, "a stream keeps its flags; unknown ones are refused",
	 stream_flags},
	{"stream_priority", T_DOCUMENTED, "priorities run from 0 down and are clamped",
	 stream_priority},
	{"stream_identity", T_DOCUMENTED, "every stream has an id of its own", stream_identity},
	{"stream_context", T_DOCUMENTED, "a stream names its context and its device",
	 stream_context},
	{"query_tells_readiness", T_DOCUMENTED, "a stream with work is NOT_READY, then SUCCESS",
	 query_tells_readiness},
	{"full_queue_waits", T_MEASURED,
	 "a submission into a queue of about a thousand works waits until one of them ends",
	 full_queue_waits},
	{"full_queue_shuts_out", T_MEASURED,
	 "meanwhile queries and cuEventCreate in its context wait for it, cuStreamIsCapturing "
	 "does not",
	 full_queue_shuts_out},
	{"stream_is_ordered", T_DOCUMENTED, "work on a stream runs in its order",
	 stream_is_ordered},
	{"streams_are_independent", T_DOCUMENTED, "non-blocking streams do not wait for each other",
	 streams_are_independent},
	{"default_stream_waits", T_DOCUMENTED, "the default stream waits for blocking streams",
	 default_stream_waits},
	{"non_blocking_is_not_waited_for", T_DOCUMENTED,
	 "the default stream does not wait for non-blocking streams",
	 non_blocking_is_not_waited_for},
	{"context_synchronize_waits", T_DOCUMENTED, "cuCtxSynchronize waits for every stream",
	 context_synchronize_waits},
	{"stream_synchronize_waits", T_DOCUMENTED, "cuStreamSynchronize waits for its stream",
	 stream_synchronize_waits},
	{"destroyed_stream_finishes", T_DOCUMENTED,
	 "destroying a stream does not wait, and its work is still done",
	 destroyed_stream_finishes},
};

T_BEHAVIOURS_MAIN(behaviours)
