/*
 * Description: what a stream capture forbids and in which mode, that a forbidden call invalidates it, how
 * streams join it, and that a captured graph runs.
 */
#include "check.h"
#include "device.h"
#include "gate.h"

static CUstream begin(unsigned flags, CUstreamCaptureMode mode)
{
	CUstream stream = t_stream(flags);

	T_OK(cuStreamBeginCapture_v2(stream, mode));
	return stream;
}

static void end_is(CUstream stream, CUresult expected)
{
	CUgraph graph = NULL;

	T_IS(cuStreamEndCapture(stream, &graph), expected);
	T_EQ(graph != NULL, expected == CUDA_SUCCESS);
	if (graph != NULL)
		T_OK(cuGraphDestroy(graph));
	T_OK(cuStreamDestroy_v2(stream));
}

static CUresult allocate(void *argument)
{
	CUresult result = cuMemAlloc_v2(argument, 512);

	return result == CUDA_SUCCESS ? cuMemFree_v2(*(CUdeviceptr *)argument) : result;
}

static CUresult allocate_in_thread(void)
{
	CUdeviceptr memory = 0;
	struct t_task task;

	t_task_start(&task, allocate, &memory);
	return t_task_join(&task);
}

static void unsafe_calls(void)
{
	CUdeviceptr memory = 0;
	CUstream stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
	struct t_vmm vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);

	t_vmm_release(&vmm);
	T_IS(allocate(&memory), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_is(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
	T_IS(allocate_in_thread(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_is(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	T_OK(allocate_in_thread());
	end_is(stream, CUDA_SUCCESS);

	stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
	T_OK(allocate(&memory));
	end_is(stream, CUDA_SUCCESS);
}

static void waiting_invalidates(void)
{
	CUstream stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	T_IS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_OK(cuStreamIsCapturing(stream, &status));
	T_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	end_is(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
	T_IS(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_is(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void legacy_stream_is_implicit(void)
{
	CUdeviceptr memory = t_alloc(512);
	CUstream stream = begin(CU_STREAM_DEFAULT, CU_STREAM_CAPTURE_MODE_RELAXED);

	T_IS(cuMemsetD8_v2(memory, 0, 512), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_is(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
	T_OK(cuMemsetD8_v2(memory, 0, 512));
	end_is(stream, CUDA_SUCCESS);
	T_IS(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
	     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_OK(cuMemFree_v2(memory));
}

/* A second stream joins by an event and must be joined back. */
static void joins(bool back, CUresult expected)
{
	CUdeviceptr memory = t_alloc(8);
	CUstream second = t_stream(CU_STREAM_NON_BLOCKING);
	CUstream first = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
	CUevent event = NULL;

	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	T_OK(cuMemsetD32Async(memory, 1, 1, first));
	T_OK(cuEventRecord(event, first));
	T_OK(cuStreamWaitEvent(second, event, 0));
	T_OK(cuMemsetD32Async(memory + 4, 2, 1, second));
	T_OK(cuEventRecord(event, second));
	if (back)
		T_OK(cuStreamWaitEvent(first, event, 0));
	end_is(first, expected);
	T_OK(cuEventDestroy_v2(event));
	T_OK(cuStreamDestroy_v2(second));
	T_OK(cuMemFree_v2(memory));
}

static void outside_work_is_isolated(void)
{
	CUstream other = t_stream(CU_STREAM_NON_BLOCKING);
	CUstream stream;
	CUevent event = NULL;

	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	T_OK(cuEventRecord(event, other));
	stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED);
	T_IS(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	end_is(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	T_OK(cuEventDestroy_v2(event));
	T_OK(cuStreamDestroy_v2(other));
}

static void a_graph_runs(void)
{
	CUdeviceptr memory = t_alloc(8);
	CUstream stream = begin(CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	size_t count = 0;
	uint32_t words[2] = {0};

	T_OK(cuMemsetD32Async(memory, 41, 1, stream));
	T_OK(cuMemcpyDtoDAsync_v2(memory + 4, memory, 4, stream));
	T_OK(cuStreamEndCapture(stream, &graph));
	T_OK(cuGraphGetNodes(graph, NULL, &count));
	T_EQ(count, 2);
	T_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	T_OK(cuGraphDestroy(graph));
	T_OK(cuMemsetD8_v2(memory, 0, 8));
	T_OK(cuCtxSynchronize());
	T_OK(cuGraphLaunch(exec, stream));
	T_OK(cuGraphExecDestroy(exec));
	T_OK(cuStreamSynchronize(stream));
	T_OK(cuMemcpyDtoH_v2(words, memory, sizeof(words)));
	T_EQ(words[0], 41);
	T_EQ(words[1], 41);
	T_OK(cuStreamDestroy_v2(stream));
	T_OK(cuMemFree_v2(memory));
}

int main(void)
{
	(void)t_cuda();
	unsafe_calls();
	waiting_invalidates();
	legacy_stream_is_implicit();
	joins(true, CUDA_SUCCESS);
	joins(false, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	outside_work_is_isolated();
	a_graph_runs();
	return 0;
}
