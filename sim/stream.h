#ifndef SIM_STREAM_H
#define SIM_STREAM_H

/*
 * Streams and the work in them. A stream is a queue and a worker thread that starts with its first
 * work; signals are blocked in workers. Work waits for the work it depends on: its stream's earlier
 * work by its place in the queue, others (legacy stream, events) by reference. Core lock held, except
 * where said otherwise.
 */

#include "core.h"

/* For checkpoints: true when no stream has work left. */
bool sim_stream_all_idle(void);
/* Ends and joins every worker of an idle stream; workers start again with the next work. Call
 * without the core lock. */
void sim_stream_stop_workers(void);

#endif
