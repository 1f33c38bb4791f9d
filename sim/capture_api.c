/* The calls that begin and end a stream capture, and that ask about it. */

#include "capture.h"
#include "graph.h"

static CUresult may_begin(CUstream handle, CUstreamCaptureMode mode, struct sim_stream **ret_stream)
{
	CUresult result;

	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, ret_stream);
	if (result != CUDA_SUCCESS)
		return result;
	if ((*ret_stream)->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return (*ret_stream)->capture == NULL ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

static CUresult begin(CUstream handle, CUstreamCaptureMode mode)
{
	struct sim_stream *stream = NULL;
	CUresult result = may_begin(handle, mode, &stream);

	return result == CUDA_SUCCESS ? sim_capture_new(stream, mode) : result;
}

SIM_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, begin(stream, mode));
}

static CUresult begin_in(struct sim_stream *stream, CUstreamCaptureMode mode,
			 struct sim_graph *graph, const CUgraphNode *nodes, size_t count)
{
	if (sim_breaks("capture_to_graph"))
		return sim_capture_new(stream, mode);
	return sim_capture_new_to(stream, mode, graph, nodes, count);
}

static CUresult begin_to(CUstream handle, CUstreamCaptureMode mode, CUgraph graph_handle,
			 const CUgraphNode *nodes, size_t count)
{
	struct sim_graph *graph = (struct sim_graph *)(void *)graph_handle;
	struct sim_stream *stream = NULL;
	CUresult result;

	if (!sim_set_has(&sim_core.graphs, graph) || (nodes == NULL && count > 0))
		return CUDA_ERROR_INVALID_VALUE;
	result = may_begin(handle, mode, &stream);
	return result == CUDA_SUCCESS ? begin_in(stream, mode, graph, nodes, count) : result;
}

SIM_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					     const CUgraphNode *nodes, const CUgraphEdgeData *edges,
					     size_t count, CUstreamCaptureMode mode)
{
	/* Kinds of edges are not simulated. */
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       edges != NULL ? CUDA_ERROR_NOT_SUPPORTED
					     : begin_to(stream, mode, graph, nodes, count));
}

/* Every stream that joined must have been joined back into the one it began in. */
static bool is_joined(const struct sim_capture *capture)
{
	const struct sim_stream *origin = capture->origin;

	for (size_t i = 0; i < sim_core.streams.count; i++) {
		const struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->capture == capture && stream != origin &&
		    !sim_graph_leads_to(capture->graph, stream->capture_ends,
					stream->capture_end_count, origin->capture_ends,
					origin->capture_end_count))
			return false;
	}
	return true;
}

static CUresult end(CUstream handle, CUgraph *ret_graph)
{
	struct sim_stream *stream = NULL;
	struct sim_capture *capture;
	CUresult result;

	if (ret_graph == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	capture = stream->capture;
	if (capture == NULL)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture->is_invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	*ret_graph = NULL;
	if (capture->is_invalidated)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		 pthread_equal(capture->thread, pthread_self()) == 0)
		result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	else if (!is_joined(capture))
		result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	else if (capture->has_given_graph)
		*ret_graph = (CUgraph)(void *)capture->graph;
	else
		result = sim_graph_publish(capture->graph, ret_graph);
	if (result == CUDA_SUCCESS && !capture->has_given_graph)
		capture->graph->references++;
	sim_capture_end(capture);
	return result;
}

SIM_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *ret_graph)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, end(stream, ret_graph));
}

static CUstreamCaptureStatus status_of(const struct sim_stream *stream)
{
	if (stream->capture == NULL)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return stream->capture->is_invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* The legacy stream cannot be asked while a stream that it waits for records; nothing breaks then. */
static CUresult is_capturing(CUstream handle, CUstreamCaptureStatus *ret_status)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_status == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (sim_capture_conflicts_with_legacy(stream))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*ret_status = status_of(stream);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *ret_status)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT,
			       is_capturing(stream, ret_status));
}

/* Outputs other than the status may be NULL. */
struct info {
	CUstreamCaptureStatus *status;
	cuuint64_t *id;
	CUgraph *graph;
	const CUgraphNode **nodes;
	const CUgraphEdgeData **edges;
	size_t *count;
};

static void fill_info(const struct sim_stream *stream, const struct info *ret)
{
	if (ret->id != NULL)
		*ret->id = stream->capture->id;
	if (ret->graph != NULL)
		*ret->graph = (CUgraph)(void *)stream->capture->graph;
	if (ret->nodes != NULL)
		*ret->nodes = (const CUgraphNode *)(const void *)stream->capture_ends;
	if (ret->edges != NULL)
		*ret->edges = NULL;
	if (ret->count != NULL)
		*ret->count = stream->capture_end_count;
}

static CUresult get_info(CUstream handle, const struct info *ret)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret->status == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (sim_capture_conflicts_with_legacy(stream))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*ret->status = status_of(stream);
	if (*ret->status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		fill_info(stream, ret);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *ret_status,
					   cuuint64_t *ret_id, CUgraph *ret_graph,
					   const CUgraphNode **ret_nodes, size_t *ret_count)
{
	struct info ret = {ret_status, ret_id, ret_graph, ret_nodes, NULL, ret_count};

	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT, get_info(stream, &ret));
}

SIM_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *ret_status,
					   cuuint64_t *ret_id, CUgraph *ret_graph,
					   const CUgraphNode **ret_nodes,
					   const CUgraphEdgeData **ret_edges, size_t *ret_count)
{
	struct info ret = {ret_status, ret_id, ret_graph, ret_nodes, ret_edges, ret_count};

	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT, get_info(stream, &ret));
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = sim_thread.capture_mode;

	if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	sim_thread.capture_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, exchange_mode(mode));
}
