#ifndef SIM_STREAM_H
#define SIM_STREAM_H

/*
 * Streams and the work in them. A stream is a queue with a worker thread that starts with its first
 * work; workers block all signals. Work is reference-counted, so that streams, events and waiters can
 * name it after its end. It begins when its predecessors in the queue and the works it depends on (the
 * legacy stream's rules, events) have ended. Core lock held, except where said otherwise; functions
 * that wait let go of it meanwhile.
 */

#include "action.h"
#include "context.h"

struct sim_capture;

struct sim_work {
	unsigned references;
	struct sim_work *next; /* in the queue */
	struct sim_context *context;
	struct sim_action action;
	void *owned; /* freed with the work: staged bytes */
	bool is_done;
	CUresult result;
	uint64_t done_ns;
	size_t dependency_count;
	struct sim_work **dependencies;
};

struct sim_stream {
	struct sim_context *context;
	struct sim_stream *next_of_thread; /* per-thread default streams of a thread */
	uint64_t id;
	unsigned flags;
	int priority;
	bool is_legacy;
	bool is_per_thread;
	bool is_destroyed; /* the handle is gone; the worker ends the rest and the structure */
	bool is_orphan;    /* destroyed with work left: counted in the context */
	bool is_stopping;
	bool has_worker;
	pthread_t worker;
	pthread_cond_t has_work;
	struct sim_work *first; /* queue; first may be running */
	unsigned queued;        /* works in it */
	struct sim_work *last;
	struct sim_work *latest; /* a reference on the newest work, ended or not; NULL: none yet */
	struct sim_capture *capture;          /* the capture that it takes part in */
	struct sim_graph_node **capture_ends; /* what the next captured node depends on */
	size_t capture_end_count;
};

/* From a handle; NULL and the two special values mean the current context's default streams. */
CUresult sim_stream_get(CUstream handle, struct sim_stream **ret_stream);
CUresult sim_stream_new(struct sim_context *context, unsigned flags, int priority,
			struct sim_stream **ret_stream);
/* Lets go of a stream; what is queued still runs. */
void sim_stream_drop(struct sim_stream *stream);
/* Drops every stream of a context that ends, after its work has ended. */
void sim_stream_drop_context(struct sim_context *context);

/*
 * Queues an action, or adds it to the graph that the stream records. 'owned' (may be NULL) is taken in
 * any case. Work comes back with a reference for the caller if 'ret_work' is not NULL; NULL there
 * when it was captured.
 */
CUresult sim_stream_submit(struct sim_stream *stream, const struct sim_action *action, void *owned,
			   struct sim_work **ret_work);
/* The same, after another work as well. Not for streams that are captured. */
CUresult sim_stream_submit_after(struct sim_stream *stream, const struct sim_action *action,
				 struct sim_work *after, struct sim_work **ret_work);
/*
 * Waits while a submission of the context waits for room in a full queue: so do queries and the making of events,
 * as on hardware, which shuts them out until the submission is through.
 */
void sim_stream_wait_submitters(const struct sim_context *context);
/* Queues it, waits for its end and answers with its result. */
CUresult sim_stream_run(struct sim_stream *stream, const struct sim_action *action);

void sim_work_ref(struct sim_work *work);
void sim_work_unref(struct sim_work *work);
void sim_work_wait(const struct sim_work *work);
/* The same for work that others may let go of meanwhile. */
void sim_work_hold_and_wait(struct sim_work *work);
bool sim_stream_is_idle(const struct sim_stream *stream);
void sim_stream_wait(const struct sim_stream *stream);
bool sim_stream_context_is_idle(const struct sim_context *context);
void sim_stream_wait_context(const struct sim_context *context);

/* For checkpoints: true when no stream has work left; wait on sim_core.progress for it. */
bool sim_stream_all_idle(void);
/*
 * Ends and joins every worker of an idle stream; workers start again with the next work. Without the
 * core lock, and with no call of the application inside.
 */
void sim_stream_stop_workers(void);

#endif
