#ifndef SIM_ACTION_H
#define SIM_ACTION_H

/*
 * What a work of a stream, or a node of a graph, does when its turn comes: plain data, copied freely.
 * An action runs in a worker thread without the core lock.
 */

#include "context.h"

#define SIM_KERNEL_PARAMETERS_MAX 4

struct sim_action;
struct sim_graph_exec;
struct sim_ipc_event;
struct sim_kernel;

/* 'height' rows of 'width' bytes; a plain copy has one row. Addresses say what is host memory. */
struct sim_copy {
	uint64_t destination;
	uint64_t source;
	uint64_t destination_pitch;
	uint64_t source_pitch;
	uint64_t width;
	uint64_t height;
	/* For a copy between contexts: who writes and who reads; NULL: the action's own. */
	const struct sim_context *destination_context;
	const struct sim_context *source_context;
};

struct sim_fill {
	uint64_t destination;
	uint64_t pitch;
	uint64_t width; /* bytes */
	uint64_t height;
	uint32_t value;
	unsigned element_bytes;
};

struct sim_launch {
	const struct sim_kernel *kernel;
	uint64_t parameters[SIM_KERNEL_PARAMETERS_MAX];
};

/* A host function, or a callback that is told the stream and how its work went. */
struct sim_host_call {
	CUhostFn function;
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

/* cuStreamWaitValue and cuStreamWriteValue. */
struct sim_value {
	uint64_t address;
	uint64_t value;
	unsigned bytes;
	unsigned flags;
};

/* An interprocess event reaches its n-th record, or waits for it. */
struct sim_ipc_mark {
	struct sim_ipc_event *event;
	uint64_t record;
};

struct sim_action {
	/* NULL: nothing to do, the work only has a place in the order. */
	CUresult (*run)(const struct sim_action *action);
	struct sim_context *context; /* where it runs: whose rights count, whose errors */
	bool runs_after_error;
	union {
		struct sim_copy copy;
		struct sim_fill fill;
		struct sim_launch launch;
		struct sim_host_call host;
		struct sim_value value;
		struct sim_ipc_mark ipc_mark;
		struct sim_graph_exec *exec;
		uint64_t address;
	};
};

#endif
