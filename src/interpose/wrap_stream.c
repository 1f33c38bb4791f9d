/*
 * The handlers that keep account of streams and open captures; see streams.h. What a call means is the driver's; a
 * capture that cannot be recorded for want of memory is not begun.
 */

#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/calls.h"
#include "interpose/handlers.h"
#include "interpose/lives.h"
#include "interpose/streams.h"

static CUcontext context_current(const struct stasis_calls *calls)
{
	CUcontext context = NULL;

	return calls->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/*
 * Where its stream belongs. The first form of the question names a green context by the handle that it is made current
 * with, which has an id and a life of its own; the second names the primary context beneath it. Asking changes
 * nothing, also while the stream is being captured (all measured on driver 580).
 */
static void place(CUstream stream, struct stasis_stream_record *record)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUcontext own = NULL;
	CUgreenCtx green;

	if (!calls)
		return;
	if (!calls->cuStreamGetCtx || calls->cuStreamGetCtx(stream, &own) != CUDA_SUCCESS)
		own = context_current(calls);
	record->life = stasis_life_of(calls, own);
	if (!calls->cuStreamGetCtx_v2 ||
	    calls->cuStreamGetCtx_v2(stream, &record->context, &green) != CUDA_SUCCESS)
		record->context = own;
}

static struct stasis_stream_key key_of(CUstream stream, const struct stasis_stream_life *life)
{
	struct stasis_stream_key key = {.stream = stream};

	if (key.stream != CU_STREAM_PER_THREAD)
		return key;
	key.context = life->context;
	key.tid = (pid_t)syscall(SYS_gettid);
	return key;
}

/* ---- streams ---- */

static void stream_made(CUresult result, struct stasis_stream_node *room, const CUstream *stream)
{
	struct stasis_stream_record record = {.begun_by = 0};

	/* It is kept for the names in reports alone: without room, so it goes. */
	if (result != CUDA_SUCCESS || !room || !stream) {
		stasis_streams_drop(room);
		return;
	}
	record.key.stream = *stream;
	place(*stream, &record);
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

/* Errors of this range came from work, or say that the context is gone: the stream may be so too. */
static bool is_kept_after(CUresult result)
{
	return result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_HANDLE &&
	       (result < CUDA_ERROR_ILLEGAL_ADDRESS || result >= CUDA_ERROR_NOT_PERMITTED);
}

/*
 * Taken out before the driver is asked: afterwards another thread may have been given the same handle. Nobody looks
 * meanwhile, since the gate is not shut while a call is in the driver.
 */
static CUresult destroy(__typeof__(cuStreamDestroy_v2) *target, CUstream stream)
{
	struct stasis_stream_key key = {.stream = stream};
	struct stasis_stream_node *made = NULL;
	struct stasis_stream_node *captured = NULL;
	CUresult result;

	if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
		made = stasis_streams_take(STASIS_STREAMS, &key);
		captured = stasis_streams_take(STASIS_CAPTURES, &key);
	}
	result = target(stream);
	if (is_kept_after(result)) {
		stasis_streams_put_back(STASIS_STREAMS, made);
		stasis_streams_put_back(STASIS_CAPTURES, captured);
	} else {
		stasis_streams_drop(made);
		stasis_streams_drop(captured);
	}
	return result;
}

CUresult stasis_handle_cuStreamDestroy(__typeof__(cuStreamDestroy_v2) *target, CUstream stream)
{
	return destroy(target, stream);
}

CUresult stasis_handle_cuStreamDestroy_v2(__typeof__(cuStreamDestroy_v2) *target, CUstream stream)
{
	return destroy(target, stream);
}

/* ---- captures ---- */

/* Asked before it begins, while the stream is surely there. */
static struct stasis_stream_record capture_of(CUstream stream, bool is_per_thread)
{
	CUstream captured = is_per_thread && !stream ? CU_STREAM_PER_THREAD : stream;
	struct stasis_stream_record record = {.begun_by = (pid_t)syscall(SYS_gettid)};

	place(captured, &record);
	record.key = key_of(captured, &record.life);
	return record;
}

static CUresult capture_begun(CUresult result, struct stasis_stream_node *room,
			      const struct stasis_stream_record *record)
{
	if (result == CUDA_SUCCESS)
		stasis_streams_add(STASIS_CAPTURES, room, record);
	else
		stasis_streams_drop(room);
	return result;
}

#define CAPTURE_BEGIN(elf, is_per_thread, parameters, ...)                                         \
	CUresult stasis_handle_##elf parameters                                                    \
	{                                                                                          \
		struct stasis_stream_node *room = stasis_streams_room();                           \
		struct stasis_stream_record record;                                                \
                                                                                                   \
		if (!room)                                                                         \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		record = capture_of(stream, is_per_thread);                                        \
		return capture_begun(target(__VA_ARGS__), room, &record);                          \
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
static bool is_captured_no_more(CUstream stream)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;

	return calls && calls->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult end(__typeof__(cuStreamEndCapture) *target, CUstream stream, CUgraph *ret_graph,
		    bool is_per_thread)
{
	struct stasis_stream_record record = capture_of(stream, is_per_thread);
	CUresult result = target(stream, ret_graph);

	if (result == CUDA_SUCCESS || is_captured_no_more(record.key.stream))
		stasis_streams_remove(STASIS_CAPTURES, &record.key);
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
