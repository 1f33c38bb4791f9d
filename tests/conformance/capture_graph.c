/*
 * Description: stream capture and graphs.
 */
#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static CUstreamCaptureStatus capture_status(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	T_OK(cuStreamIsCapturing(stream, &status));
	return status;
}

/* A graph that sets the first MiB at `address` to zero. */
static CUgraph capture_memset(CUstream stream, CUdeviceptr address)
{
	CUgraph graph = NULL;

	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_OK(cuMemsetD8Async(address, 0, T_MIB, stream));
	T_OK(cuStreamEndCapture(stream, &graph));
	return graph;
}

static void capture_records(void)
{
	CUdeviceptr address;
	CUstream stream;
	CUgraph graph = NULL;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	t_fill(address, T_MIB, 1);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	T_OK(cuMemsetD8Async(address, 0, T_MIB, stream));
	T_OK(cuStreamEndCapture(stream, &graph));
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	T_OK(cuCtxSynchronize());
	t_verify(address, T_MIB, 1);
}

static void graph_replays(void)
{
	CUgraphExec exec = NULL;
	CUdeviceptr address;
	CUstream stream;
	CUgraph graph;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	graph = capture_memset(stream, address);
	T_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t i = 0; i < 2; i++) {
		t_fill(address, T_MIB, i);
		T_OK(cuGraphLaunch(exec, stream));
		T_OK(cuStreamSynchronize(stream));
		T_TRUE(!t_matches(address, T_MIB, i));
	}
}

static void exec_outlives_graph(void)
{
	CUgraphExec exec = NULL;
	CUdeviceptr address;
	CUstream stream;
	CUgraph graph;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	t_fill(address, T_MIB, 1);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	graph = capture_memset(stream, address);
	T_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	T_OK(cuGraphDestroy(graph));
	T_OK(cuGraphLaunch(exec, stream));
	T_OK(cuStreamSynchronize(stream));
	T_TRUE(!t_matches(address, T_MIB, 1));
}

static void graph_counts_nodes(void)
{
	CUdeviceptr address;
	CUgraph graph = NULL;
	CUstream stream;
	size_t count = 0;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (unsigned char i = 0; i < 3; i++)
		T_OK(cuMemsetD8Async(address, i, T_MIB, stream));
	T_OK(cuStreamEndCapture(stream, &graph));
	T_OK(cuGraphGetNodes(graph, NULL, &count));
	T_EQ(count, 3);
}

static void graph_launch_is_ordered(void)
{
	CUgraphExec exec = NULL;
	struct t_gate gate;
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	address = t_alloc(T_MIB);
	t_fill(address, T_MIB, 1);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuGraphInstantiateWithFlags(&exec, capture_memset(stream, address), 0));
	t_gate_close(&gate, stream);
	T_OK(cuGraphLaunch(exec, stream));
	T_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	t_verify(address, T_MIB, 1);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	T_TRUE(!t_matches(address, T_MIB, 1));
}

static void global_refuses_alloc(void)
{
	CUdeviceptr address = 0;
	CUdeviceptr other;
	CUstream stream;

	(void)t_cuda();
	other = t_alloc(4096);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_IS(cuMemAlloc_v2(&address, 1024), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_IS(cuMemFree_v2(other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void global_allows_vmm(void)
{
	CUdeviceptr other;
	CUgraph graph = NULL;
	struct t_vmm vmm;
	CUstream stream;

	(void)t_cuda();
	other = t_alloc(4096);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_OK(cuMemsetD8Async(other, 1, 4096, stream));
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_OK(cuMemUnmap(vmm.address, vmm.bytes));
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	T_OK(cuStreamEndCapture(stream, &graph));
}

/* Also the thread's own mode is relaxed: what is asked here is what a relaxed capture forbids. */
static CUstream relaxed_capture(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);

	T_OK(cuThreadExchangeStreamCaptureMode(&mode));
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	return stream;
}

static void relaxed_allows_free(void)
{
	CUdeviceptr other;
	CUgraph graph = NULL;
	CUstream stream;

	(void)t_cuda();
	other = t_alloc(4096);
	stream = relaxed_capture();
	T_OK(cuMemFree_v2(other));
	other = t_alloc(4096);
	T_OK(cuMemsetD8Async(other, 1, 4096, stream));
	T_OK(cuStreamEndCapture(stream, &graph));
}

typedef CUresult context_record(CUcontext, CUevent);

static void context_event_invalidates(void)
{
	CUcontext context = t_cuda();
	context_record *record = (context_record *)t_entry("cuCtxRecordEvent", 12050);
	CUgraph graph = NULL;
	CUstream stream;
	CUevent event;

	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	stream = relaxed_capture();
	T_IS(record(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	T_IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void context_synchronize_invalidates(void)
{
	CUdeviceptr address;
	CUgraph graph = NULL;
	CUstream stream;

	(void)t_cuda();
	address = t_alloc(4096);
	stream = relaxed_capture();
	T_OK(cuMemsetD8Async(address, 1, 4096, stream));
	T_IS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	T_IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void synchronize_captured_stream(void)
{
	CUstream stream;

	(void)t_cuda();
	stream = relaxed_capture();
	T_IS(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

static void default_stream_captures_not(void)
{
	(void)t_cuda();
	T_IS(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
	     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void default_stream_work_invalidates(void)
{
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	address = t_alloc(4096);
	stream = t_stream(CU_STREAM_DEFAULT);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	T_IS(cuMemsetD8Async(address, 1, 4096, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	T_EQ(capture_status(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

static void capture_forks_and_joins(void)
{
	CUdeviceptr address;
	CUgraph graph = NULL;
	CUstream first;
	CUstream second;
	CUevent event = NULL;
	size_t count = 0;

	(void)t_cuda();
	address = t_alloc(8192);
	first = t_stream(CU_STREAM_NON_BLOCKING);
	second = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	T_OK(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_OK(cuMemsetD8Async(address, 1, 4096, first));
	T_OK(cuEventRecord(event, first));
	T_OK(cuStreamWaitEvent(second, event, 0));
	T_EQ(capture_status(second), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	T_OK(cuMemsetD8Async(address + 4096, 2, 4096, second));
	T_OK(cuEventRecord(event, second));
	T_OK(cuStreamWaitEvent(first, event, 0));
	T_OK(cuStreamEndCapture(first, &graph));
	T_OK(cuGraphGetNodes(graph, NULL, &count));
	T_EQ(count, 2);
}

static void capture_unjoined(void)
{
	CUdeviceptr address;
	CUgraph graph = NULL;
	CUstream first;
	CUstream second;
	CUevent event = NULL;

	(void)t_cuda();
	address = t_alloc(4096);
	first = t_stream(CU_STREAM_NON_BLOCKING);
	second = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	T_OK(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_OK(cuEventRecord(event, first));
	T_OK(cuStreamWaitEvent(second, event, 0));
	T_OK(cuMemsetD8Async(address, 2, 4096, second));
	T_IS(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

static void captured_event_query(void)
{
	CUevent event = NULL;
	CUstream stream;

	(void)t_cuda();
	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	stream = relaxed_capture();
	T_OK(cuEventRecord(event, stream));
	T_IS(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
}

static CUresult end_capture(void *stream)
{
	CUgraph graph = NULL;

	return cuStreamEndCapture(stream, &graph);
}

static void capture_ends_in_its_thread(void)
{
	struct t_task task;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	t_task_start(&task, end_capture, stream);
	T_IS(t_task_join(&task), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static void capture_to_graph(void)
{
	CUdeviceptr address;
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	CUgraph ended = NULL;
	CUstream stream;
	size_t count = 1;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = t_alloc(4096);
	T_OK(cuGraphCreate(&graph, 0));
	T_OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
					 CU_STREAM_CAPTURE_MODE_RELAXED));
	T_OK(cuMemsetD8Async(address, 1, 4096, stream));
	T_IS(cuGraphDestroy(graph), CUDA_ERROR_ILLEGAL_STATE);
	T_OK(cuStreamEndCapture(stream, &ended));
	T_TRUE(ended == graph);
	T_OK(cuGraphGetNodes(graph, &node, &count));
	T_EQ(count, 1);
	T_OK(cuStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1,
					 CU_STREAM_CAPTURE_MODE_RELAXED));
	T_OK(cuMemsetD8Async(address, 2, 4096, stream));
	T_OK(cuStreamEndCapture(stream, &ended));
	T_OK(cuGraphGetNodes(graph, NULL, &count));
	T_EQ(count, 2);
	T_OK(cuGraphDestroy(graph));
}

static const struct t_behaviour behaviours[] = {
	{"capture_records", T_DOCUMENTED, "what is captured does not run", capture_records},
	{"graph_replays", T_DOCUMENTED, "a graph does its work at each launch", graph_replays},
	{"exec_outlives_graph", T_DOCUMENTED, "an instantiated graph outlives its graph",
	 exec_outlives_graph},
	{"capture_to_graph", T_MEASURED,
	 "what is captured into a given graph is added to it, behind the nodes named; meanwhile "
	 "it cannot be destroyed",
	 capture_to_graph},
	{"graph_counts_nodes", T_DOCUMENTED, "each captured operation is a node",
	 graph_counts_nodes},
	{"graph_launch_is_ordered", T_DOCUMENTED, "a graph launch waits its turn on the stream",
	 graph_launch_is_ordered},
	{"global_refuses_alloc", T_MEASURED,
	 "under a global capture cuMemAlloc and cuMemFree answer STREAM_CAPTURE_UNSUPPORTED",
	 global_refuses_alloc},
	{"global_allows_vmm", T_MEASURED,
	 "under a global capture memory can be created, mapped and unmapped", global_allows_vmm},
	{"relaxed_allows_free", T_MEASURED, "under a relaxed capture cuMemFree works",
	 relaxed_allows_free},
	{"context_synchronize_invalidates", T_MEASURED,
	 "cuCtxSynchronize during a relaxed capture is refused and invalidates it",
	 context_synchronize_invalidates},
	{"context_event_invalidates", T_MEASURED,
	 "recording an event of a context during a relaxed capture is refused and invalidates it",
	 context_event_invalidates},
	{"synchronize_captured_stream", T_DOCUMENTED,
	 "waiting for a capturing stream is refused and invalidates its capture",
	 synchronize_captured_stream},
	{"default_stream_captures_not", T_DOCUMENTED, "the default stream cannot be captured",
	 default_stream_captures_not},
	{"default_stream_work_invalidates", T_DOCUMENTED,
	 "default stream work during a blocking stream's capture: STREAM_CAPTURE_IMPLICIT",
	 default_stream_work_invalidates},
	{"capture_forks_and_joins", T_DOCUMENTED, "a wait for a captured event joins the capture",
	 capture_forks_and_joins},
	{"capture_unjoined", T_DOCUMENTED, "a capture with work not joined ends in UNJOINED",
	 capture_unjoined},
	{"captured_event_query", T_DOCUMENTED, "a query of a captured event is CAPTURED_EVENT",
	 captured_event_query},
	{"capture_ends_in_its_thread", T_DOCUMENTED,
	 "a capture that is not relaxed ends in the thread that began it",
	 capture_ends_in_its_thread},
};

T_BEHAVIOURS_MAIN(behaviours)
