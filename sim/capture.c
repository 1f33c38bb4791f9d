/* Stream capture: what a recording forbids, and how work and events become nodes; see capture.h. */

#include "capture.h"

#include "event.h"
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static struct sim_capture *captures;

struct sim_capture *sim_capture_find(uint64_t id)
{
	struct sim_capture *capture = captures;

	while (capture != NULL && capture->id != id)
		capture = capture->next;
	return capture;
}

static CUresult capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode,
			      struct sim_graph *graph, bool is_given)
{
	struct sim_capture *capture = calloc(1, sizeof(*capture));

	if (capture == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture->graph = graph;
	capture->has_given_graph = is_given;
	capture->id = sim_core_new_id_locked();
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->origin = stream;
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	return CUDA_SUCCESS;
}

CUresult sim_capture_new(struct sim_stream *stream, CUstreamCaptureMode mode)
{
	struct sim_graph *graph = NULL;
	CUresult result = sim_graph_new(&graph);

	if (result == CUDA_SUCCESS)
		result = capture_begin(stream, mode, graph, false);
	if (result != CUDA_SUCCESS)
		sim_graph_unref(graph);
	return result;
}

CUresult sim_capture_new_to(struct sim_stream *stream, CUstreamCaptureMode mode,
			    struct sim_graph *graph, const CUgraphNode *nodes, size_t count)
{
	struct sim_graph_node **ends = calloc(count + 1, sizeof(struct sim_graph_node *));
	CUresult result = ends != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		ends[i] = (struct sim_graph_node *)(void *)nodes[i];
		if (!sim_set_has(&sim_core.graph_nodes, ends[i]) || ends[i]->graph != graph)
			result = CUDA_ERROR_INVALID_VALUE;
	}
	if (result == CUDA_SUCCESS)
		result = capture_begin(stream, mode, graph, true);
	if (result != CUDA_SUCCESS) {
		free(ends);
		return result;
	}
	graph->references++;
	stream->capture_ends = ends;
	stream->capture_end_count = count;
	return CUDA_SUCCESS;
}

bool sim_capture_records_into(const struct sim_graph *graph)
{
	for (const struct sim_capture *capture = captures; capture != NULL; capture = capture->next)
		if (capture->graph == graph)
			return true;
	return false;
}

static void leave(struct sim_stream *stream)
{
	stream->capture = NULL;
	free(stream->capture_ends);
	stream->capture_ends = NULL;
	stream->capture_end_count = 0;
}

void sim_capture_end(struct sim_capture *capture)
{
	struct sim_capture **link = &captures;

	for (size_t i = 0; i < sim_core.streams.count; i++) {
		struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->capture == capture)
			leave(stream);
	}
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	sim_graph_unref(capture->graph);
	free(capture);
}

CUresult sim_capture_check_unsafe(void)
{
	CUstreamCaptureMode mode = sim_thread.capture_mode;
	CUresult result = CUDA_SUCCESS;

	if (captures != NULL && sim_breaks("relaxed_allows_free"))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
		bool is_own = pthread_equal(capture->thread, pthread_self()) != 0;

		if ((is_own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
		    (mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
		     capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
			capture->is_invalidated = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return result;
}

CUresult sim_capture_check_context(struct sim_context *context)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < sim_core.streams.count; i++) {
		struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->context != context || stream->capture == NULL)
			continue;
		stream->capture->is_invalidated = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return result;
}

/* The n-th stream that records and that the legacy stream would have to wait for. */
static struct sim_stream *legacy_conflict(const struct sim_stream *stream, size_t *index)
{
	while (stream->is_legacy && *index < sim_core.streams.count) {
		struct sim_stream *other = sim_core.streams.items[(*index)++];

		if (other->context == stream->context && other->capture != NULL &&
		    (other->flags & CU_STREAM_NON_BLOCKING) == 0)
			return other;
	}
	return NULL;
}

bool sim_capture_conflicts_with_legacy(const struct sim_stream *stream)
{
	size_t index = 0;

	return legacy_conflict(stream, &index) != NULL;
}

CUresult sim_capture_check_legacy(struct sim_stream *stream)
{
	CUresult result = CUDA_SUCCESS;
	struct sim_stream *other;
	size_t index = 0;

	while ((other = legacy_conflict(stream, &index)) != NULL) {
		other->capture->is_invalidated = true;
		result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return result;
}

CUresult sim_capture_check_stream(struct sim_stream *stream)
{
	CUresult result = sim_capture_check_legacy(stream);

	if (stream->capture != NULL) {
		stream->capture->is_invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return result == CUDA_SUCCESS ? sim_capture_check_unsafe() : result;
}

CUresult sim_capture_check_event(uint64_t capture_id)
{
	struct sim_capture *capture = sim_capture_find(capture_id);

	if (capture_id == 0)
		return sim_capture_check_unsafe();
	if (capture == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	capture->is_invalidated = true;
	return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult sim_capture_check_submit(struct sim_stream *stream)
{
	if (stream->capture == NULL)
		return sim_capture_check_legacy(stream);
	return stream->capture->is_invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
					       : CUDA_SUCCESS;
}

CUresult sim_capture_add(struct sim_stream *stream, const struct sim_action *action, void *owned)
{
	struct sim_graph_node **ends = malloc(sizeof(struct sim_graph_node *));
	struct sim_graph_node *node = NULL;
	CUresult result = ends != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	free(owned);
	if (result == CUDA_SUCCESS)
		result = sim_graph_add(stream->capture->graph, action, stream->capture_ends,
				       stream->capture_end_count, &node);
	if (result != CUDA_SUCCESS) {
		free(ends);
		return result;
	}
	free(stream->capture_ends);
	ends[0] = node;
	stream->capture_ends = ends;
	stream->capture_end_count = 1;
	return CUDA_SUCCESS;
}

CUresult sim_capture_record_event(struct sim_stream *stream, struct sim_event *event)
{
	size_t count = stream->capture_end_count;
	struct sim_graph_node **nodes = calloc(count + 1, sizeof(struct sim_graph_node *));

	if (nodes == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (count > 0)
		memcpy(nodes, stream->capture_ends, count * sizeof(struct sim_graph_node *));
	sim_event_forget_capture(event);
	event->capture_id = stream->capture->id;
	event->nodes = nodes;
	event->node_count = count;
	return CUDA_SUCCESS;
}

static bool has_end(const struct sim_stream *stream, const struct sim_graph_node *node)
{
	for (size_t i = 0; i < stream->capture_end_count; i++)
		if (stream->capture_ends[i] == node)
			return true;
	return false;
}

/* What the stream records next comes behind the event's nodes too. */
static CUresult join_ends(struct sim_stream *stream, const struct sim_event *event)
{
	size_t room = stream->capture_end_count + event->node_count + 1;
	struct sim_graph_node **ends =
		realloc(stream->capture_ends, room * sizeof(struct sim_graph_node *));

	if (ends == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->capture_ends = ends;
	for (size_t i = 0; i < event->node_count; i++)
		if (!has_end(stream, event->nodes[i]))
			ends[stream->capture_end_count++] = event->nodes[i];
	return CUDA_SUCCESS;
}

/* A recording stream must not wait for work outside of its recording. */
static CUresult wait_uncaptured(struct sim_stream *stream, const struct sim_event *event)
{
	if (event->recorded == NULL)
		return CUDA_SUCCESS;
	stream->capture->is_invalidated = true;
	return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

CUresult sim_capture_wait_event(struct sim_stream *stream, struct sim_event *event)
{
	struct sim_capture *capture = sim_capture_find(event->capture_id);

	if (event->capture_id == 0)
		return wait_uncaptured(stream, event);
	if (capture == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture->is_invalidated)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->is_legacy) {
		capture->is_invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (stream->capture != NULL && stream->capture != capture) {
		stream->capture->is_invalidated = true;
		capture->is_invalidated = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (sim_breaks("capture_forks_and_joins"))
		return CUDA_SUCCESS;
	stream->capture = capture;
	return join_ends(stream, event);
}

/* A recording whose origin goes can never be ended: it goes too. */
void sim_capture_stream_dropped(struct sim_stream *stream)
{
	struct sim_capture *capture = stream->capture;

	if (capture == NULL)
		return;
	capture->is_invalidated = true;
	if (capture->origin == stream)
		sim_capture_end(capture);
	else
		leave(stream);
}

void sim_capture_context_dropped(struct sim_context *context)
{
	for (size_t i = 0; i < sim_core.streams.count; i++) {
		struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->context == context)
			sim_capture_stream_dropped(stream);
	}
}
