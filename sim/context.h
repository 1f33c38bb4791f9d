#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

/*
 * Contexts, and which one is current in a thread. A context's structure is never freed, so that a
 * thread in which a destroyed one is still current gets its error and not a crash. Core lock held,
 * except for sim_context_current().
 */

#include "core.h"

struct sim_stream;

#define SIM_CONTEXT_STACK_MAX 64
#define SIM_LIMIT_COUNT 11

struct sim_context {
	int device;
	uint64_t id;
	unsigned flags;
	bool is_primary;
	bool is_alive;     /* a primary context lives while it is retained */
	unsigned retained; /* primary: how often */
	struct sim_stream *legacy_stream;
	unsigned submitters;               /* calls that wait for room in a full queue */
	unsigned orphans;                  /* destroyed streams whose work has not ended */
	bool peer_access[SIM_DEVICES_MAX]; /* contexts on these devices were made accessible */
	size_t limits[SIM_LIMIT_COUNT];
};

/* What a thread has of its own. */
struct sim_thread {
	struct sim_context *stack[SIM_CONTEXT_STACK_MAX];
	int depth;
	CUstreamCaptureMode capture_mode;
	struct sim_stream *per_thread_streams; /* one a context, linked */
};

extern __thread struct sim_thread sim_thread;

/* The calling thread's, or NULL. */
struct sim_context *sim_context_current(void);
/* INVALID_CONTEXT, CONTEXT_IS_DESTROYED, the sticky error, or SUCCESS. */
CUresult sim_context_check(const struct sim_context *context);
/* From a handle of the application; NULL names the current one. */
CUresult sim_context_get(CUcontext handle, struct sim_context **ret_context);

/* Sticky: after an illegal access every later call on the device fails, in all its contexts. */
static inline CUresult sim_context_error(const struct sim_context *context)
{
	return sim_core.devices[context->device].error;
}

static inline CUcontext sim_context_handle(struct sim_context *context)
{
	return (CUcontext)(void *)context;
}

#endif
