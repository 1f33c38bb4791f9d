#ifndef SIM_EVENT_H
#define SIM_EVENT_H

/*
 * Events: the newest work that one was recorded behind. An event that was recorded in a stream under
 * capture names nodes of the graph instead. Interprocess events keep their state in memory that both
 * processes map (ipc_event.c). Core lock held.
 */

#include "stream.h"

struct sim_ipc_event;

struct sim_event {
	struct sim_context *context;
	unsigned flags;
	struct sim_work *recorded;     /* a reference; NULL: never recorded */
	uint64_t capture_id;           /* 0: not recorded under capture */
	struct sim_graph_node **nodes; /* what a stream that waits for it comes to depend on */
	size_t node_count;
	struct sim_ipc_event *ipc; /* NULL for others */
};

CUresult sim_event_get(CUevent handle, struct sim_event **ret_event);
CUresult sim_event_new(struct sim_context *context, unsigned flags, struct sim_event **ret_event);
void sim_event_drop(struct sim_event *event);
void sim_event_drop_context(const struct sim_context *context);
bool sim_event_is_done(const struct sim_event *event);
void sim_event_forget_capture(struct sim_event *event);

#endif
