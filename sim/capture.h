#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

/*
 * Stream capture: which streams record into which graph, and which calls a recording forbids. A
 * forbidden call also invalidates the recordings that it meets, so that the program learns of it when
 * it ends them. Core lock held.
 */

#include "stream.h"

struct sim_event;
struct sim_graph;

struct sim_capture {
	struct sim_capture *next;
	uint64_t id;
	CUstreamCaptureMode mode;
	bool is_invalidated;
	bool has_given_graph;      /* one of the application's: it is there before and afterwards */
	pthread_t thread;          /* who began it */
	struct sim_stream *origin; /* where it began and must end; NULL once that is destroyed */
	struct sim_graph *graph;
};

/* Into a graph of its own, or, behind 'count' nodes of it, into one that is given. */
CUresult sim_capture_new(struct sim_stream *stream, CUstreamCaptureMode mode);
CUresult sim_capture_new_to(struct sim_stream *stream, CUstreamCaptureMode mode,
			    struct sim_graph *graph, const CUgraphNode *nodes, size_t count);
bool sim_capture_records_into(const struct sim_graph *graph);
/* All its streams leave it; the graph stays if somebody else holds it. */
void sim_capture_end(struct sim_capture *capture);
struct sim_capture *sim_capture_find(uint64_t id); /* NULL: it has ended */

/* Whether the stream is the legacy one and a blocking stream of its context records. */
bool sim_capture_conflicts_with_legacy(const struct sim_stream *stream);

/* Calls that are unsafe while somebody records, by the rules of capture modes: allocation and free. */
CUresult sim_capture_check_unsafe(void);
/* Waiting for a whole context in which a stream records. */
CUresult sim_capture_check_context(struct sim_context *context);
/* Waiting for, or asking, one stream. */
CUresult sim_capture_check_stream(struct sim_stream *stream);
/* Waiting for, or asking, an event that was recorded in the capture of that id (0: in none). */
CUresult sim_capture_check_event(uint64_t capture_id);
/* Work in the legacy stream while a blocking stream of its context records. */
CUresult sim_capture_check_legacy(struct sim_stream *stream);
/* Whether new work may enter the stream, or its recording, at all. */
CUresult sim_capture_check_submit(struct sim_stream *stream);

/* Adds a node behind the stream's last ones. Takes 'owned', which no node may need. */
CUresult sim_capture_add(struct sim_stream *stream, const struct sim_action *action, void *owned);
/* An event recorded in, or waited for by, a stream that records or is to join a recording. */
CUresult sim_capture_record_event(struct sim_stream *stream, struct sim_event *event);
CUresult sim_capture_wait_event(struct sim_stream *stream, struct sim_event *event);

void sim_capture_stream_dropped(struct sim_stream *stream);
void sim_capture_context_dropped(struct sim_context *context);

#endif
