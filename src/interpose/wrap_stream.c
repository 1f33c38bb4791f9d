/*
 * The handlers that keep account of streams, contexts and open captures; see streams.h. What a call means is the
 * driver's; a capture that cannot be recorded for want of memory is not begun.
 */

#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/calls.h"
#include "interpose/handlers.h"
#include "interpose/streams.h"

static CUcontext context_current(void)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUcontext context = NULL;

	if (!calls || calls->cuCtxGetCurrent(&context) != CUDA_SUCCESS)
		return NULL;
	return context;
}

/* ---- streams ---- */

static void stream_made(CUresult result, struct stasis_stream_node *room, const CUstream *stream)
{
	struct stasis_stream_record record = {.context = context_current()};

	/* It is kept for the names in reports alone: without room, so it goes. */
	if (result != CUDA_SUCCESS || !room || !stream) {
		stasis_streams_drop(room);
		return;
	}
	record.key.stream = *stream;
	stasis_streams_add(STASIS_STREAMS, room, &record);
}

CUresult stasis_handle_cuStreamCreate(__typeof__(cuStreamCreate) *target, CUstream *ret_stream,
				      unsigned int flags)
{
	struct stasis_stream_node *room = stasis_streams_room();
	CUresult result = target(ret_stream, flags);

	stream_made(result, room, ret_stream);
	return result;
}

CUresult stasis_handle_cuStreamCreateWithPriority(__typeof__(cuStreamCreateWithPriority) *target,
						  CUstream *ret_stream, unsigned int flags,
						  int priority)
{
	struct stasis_stream_node *room = stasis_streams_room();
	CUresult result = target(ret_stream, flags, priority);

	stream_made(result, room, ret_stream);
	return result;
}

CUresult stasis_handle_cuGreenCtxStreamCreate(CUresult (*target)(CUstream *, CUgreenCtx,
								 unsigned int, int),
					      CUstream *ret_stream, CUgreenCtx green,
					      unsigned int flags, int priority)
{
	struct stasis_stream_node *room = stasis_streams_room();
	CUresult result = target(ret_stream, green, flags, priority);

	stream_made(result, room, ret_stream);
	return result;
}

/* Taken out before the driver is asked: afterwards another thread may have been given the same handle. */
static CUresult destroy(__typeof__(cuStreamDestroy_v2) *target, CUstream stream)
{
	struct stasis_stream_key key = {.stream = stream};

	if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
		stasis_streams_remove(STASIS_STREAMS, &key);
		stasis_streams_remove(STASIS_CAPTURES, &key);
	}
	return target(stream);
}

CUresult stasis_handle_cuStreamDestroy(__typeof__(cuStreamDestroy_v2) *target, CUstream stream)
{
	return destroy(target, stream);
}

CUresult stasis_handle_cuStreamDestroy_v2(__typeof__(cuStreamDestroy_v2) *target, CUstream stream)
{
	return destroy(target, stream);
}

/* ---- contexts ---- */

static CUresult context_made(CUresult result, struct stasis_stream_node *room,
			     const CUcontext *context)
{
	struct stasis_stream_record record = {.context = NULL};

	if (result != CUDA_SUCCESS) {
		stasis_streams_drop(room);
		return result;
	}
	record.context = *context;
	record.key.stream = (CUstream)(void *)*context;
	stasis_streams_add(STASIS_CONTEXTS, room, &record);
	return result;
}

/* The work of a context that we do not know could not be waited for. */
#define CONTEXT_CREATE(elf, parameters, ...)                                                       \
	CUresult stasis_handle_##elf parameters                                                    \
	{                                                                                          \
		struct stasis_stream_node *room = stasis_streams_room();                           \
                                                                                                   \
		if (!room)                                                                         \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		return context_made(target(__VA_ARGS__), room, ret_context);                       \
	}

CONTEXT_CREATE(cuCtxCreate,
	       (__typeof__(cuCtxCreate_v2) *target, CUcontext *ret_context, unsigned int flags,
		CUdevice device),
	       ret_context, flags, device)
CONTEXT_CREATE(cuCtxCreate_v2,
	       (__typeof__(cuCtxCreate_v2) *target, CUcontext *ret_context, unsigned int flags,
		CUdevice device),
	       ret_context, flags, device)
CONTEXT_CREATE(cuCtxCreate_v3,
	       (CUresult(*target)(CUcontext *, void *, int, unsigned int, CUdevice),
		CUcontext *ret_context, void *affinity, int count, unsigned int flags,
		CUdevice device),
	       ret_context, affinity, count, flags, device)
CONTEXT_CREATE(cuCtxCreate_v4,
	       (__typeof__(cuCtxCreate_v4) *target, CUcontext *ret_context,
		CUctxCreateParams *parameters, unsigned int flags, CUdevice device),
	       ret_context, parameters, flags, device)

static CUresult context_destroy(__typeof__(cuCtxDestroy_v2) *target, CUcontext context)
{
	CUresult result = target(context);

	if (result == CUDA_SUCCESS)
		stasis_streams_remove_context(context);
	return result;
}

CUresult stasis_handle_cuCtxDestroy(__typeof__(cuCtxDestroy_v2) *target, CUcontext context)
{
	return context_destroy(target, context);
}

CUresult stasis_handle_cuCtxDestroy_v2(__typeof__(cuCtxDestroy_v2) *target, CUcontext context)
{
	return context_destroy(target, context);
}

/* ---- captures ---- */

static CUresult capture_begun(CUresult result, struct stasis_stream_node *room, CUstream stream,
			      bool is_per_thread)
{
	struct stasis_stream_record record = {.context = context_current(),
					      .begun_by = (pid_t)syscall(SYS_gettid)};

	if (result != CUDA_SUCCESS) {
		stasis_streams_drop(room);
		return result;
	}
	record.key = stasis_stream_key(stream, is_per_thread);
	stasis_streams_add(STASIS_CAPTURES, room, &record);
	return result;
}

#define CAPTURE_BEGIN(elf, is_per_thread, parameters, ...)                                         \
	CUresult stasis_handle_##elf parameters                                                    \
	{                                                                                          \
		struct stasis_stream_node *room = stasis_streams_room();                           \
                                                                                                   \
		if (!room)                                                                         \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		return capture_begun(target(__VA_ARGS__), room, stream, is_per_thread);            \
	}

#define TO_GRAPH_PARAMETERS                                                                        \
	(stasis_capture_to_graph * target, CUstream stream, CUgraph graph,                         \
	 const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,                     \
	 CUstreamCaptureMode mode)

CAPTURE_BEGIN(cuStreamBeginCapture, false, (CUresult(*target)(CUstream), CUstream stream), stream)
CAPTURE_BEGIN(cuStreamBeginCapture_ptsz, true, (CUresult(*target)(CUstream), CUstream stream),
	      stream)
CAPTURE_BEGIN(cuStreamBeginCapture_v2, false,
	      (__typeof__(cuStreamBeginCapture_v2) *target, CUstream stream,
	       CUstreamCaptureMode mode),
	      stream, mode)
CAPTURE_BEGIN(cuStreamBeginCapture_v2_ptsz, true,
	      (__typeof__(cuStreamBeginCapture_v2) *target, CUstream stream,
	       CUstreamCaptureMode mode),
	      stream, mode)
CAPTURE_BEGIN(cuStreamBeginCaptureToGraph, false, TO_GRAPH_PARAMETERS, stream, graph, nodes, edges,
	      count, mode)
CAPTURE_BEGIN(cuStreamBeginCaptureToGraph_ptsz, true, TO_GRAPH_PARAMETERS, stream, graph, nodes,
	      edges, count, mode)

/* An end that failed may have ended it all the same: its own stream is asked. */
static bool is_capturing(CUstream stream)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return calls && calls->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult end(__typeof__(cuStreamEndCapture) *target, CUstream stream, CUgraph *ret_graph,
		    bool is_per_thread)
{
	struct stasis_stream_key key = stasis_stream_key(stream, is_per_thread);
	CUresult result = target(stream, ret_graph);

	if (result == CUDA_SUCCESS || !is_capturing(key.stream))
		stasis_streams_remove(STASIS_CAPTURES, &key);
	return result;
}

CUresult stasis_handle_cuStreamEndCapture(__typeof__(cuStreamEndCapture) *target, CUstream stream,
					  CUgraph *ret_graph)
{
	return end(target, stream, ret_graph, false);
}

CUresult stasis_handle_cuStreamEndCapture_ptsz(__typeof__(cuStreamEndCapture) *target,
					       CUstream stream, CUgraph *ret_graph)
{
	return end(target, stream, ret_graph, true);
}
