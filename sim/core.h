#ifndef SIM_CORE_H
#define SIM_CORE_H

/*
 * The state of the simulated driver in one process, and the lock over all of it. Everything that is
 * not said to be otherwise is guarded by sim_core.lock; whoever waits for a stream, an event or a
 * checkpoint waits on sim_core.progress, which is broadcast whenever work ends or a state changes.
 * Nothing is copied, and no function of the application is called, under the lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "driver/abi.h"

#include "call.h"
#include "compiler.h"
#include "config.h"
#include "set.h"

#define SIM_GRANULARITY (2ull << 20)

struct sim_context;

struct sim_device {
	int physical;        /* its index in the simulated machine; a restore may exchange it */
	int heap_fd;         /* the file behind this process's private memory on it, or -1 */
	uint64_t heap_bytes; /* length of that file; memory.c hands out pieces of it */
	CUresult error;      /* sticky; goes with the last context */
	struct sim_context *primary;
	CUmemoryPool default_pool;
	CUmemoryPool current_pool;
};

struct sim_core {
	pthread_mutex_t lock;
	pthread_cond_t progress;
	bool initialized;
	bool forked; /* a child of a process that had initialised: CUDA is lost to it */
	int device_count;
	struct sim_device devices[SIM_DEVICES_MAX];
	uint64_t next_id; /* for contexts, streams, buffers, captures: never used twice */
	struct sim_set contexts;
	struct sim_set streams;
	struct sim_set events;
	struct sim_set modules;
	struct sim_set functions;
	struct sim_set graphs;
	struct sim_set graph_nodes;
	struct sim_set graph_execs;
	struct sim_set pools;
};

extern struct sim_core sim_core;

void sim_core_lock(void);
void sim_core_unlock(void);

/* Reads the configuration, reserves the address window. Under the lock. */
CUresult sim_core_initialize_locked(void);
uint64_t sim_core_new_id_locked(void);
/* The ordinal of a GPU of the machine in this process; INVALID_DEVICE: it does not see it. */
CUresult sim_core_find_device_locked(int physical, int *ret_device);
/* What a call needs before its arguments are looked at. */
enum sim_need { SIM_NEEDS_NOTHING, SIM_NEEDS_INIT, SIM_NEEDS_CONTEXT };
CUresult sim_core_admit(enum sim_need need);
/* From inside a host function no CUDA call that needs a context is permitted on this thread. */
void sim_core_set_host_function(bool is_inside);

/*
 * The body of an exported function: enter it (faults, checkpoint gate, log), check what it needs,
 * evaluate the expression, leave. The _LOCKED form holds the core lock during the expression.
 */
#define SIM_CALL(call_class, need, expression)                                                     \
	({                                                                                         \
		CUresult sim_result_ = sim_call_enter(__func__, call_class);                       \
		if (sim_result_ == CUDA_SUCCESS)                                                   \
			sim_result_ = sim_core_admit(need);                                        \
		if (sim_result_ == CUDA_SUCCESS)                                                   \
			sim_result_ = (expression);                                                \
		sim_call_leave(__func__, sim_result_);                                             \
	})
#define SIM_CALL_LOCKED(call_class, need, expression)                                              \
	SIM_CALL(call_class, need, ({                                                              \
			 sim_core_lock();                                                          \
			 CUresult sim_locked_ = (expression);                                      \
			 sim_core_unlock();                                                        \
			 sim_locked_;                                                              \
		 }))

/* Of a GPU of the machine, by its physical index. */
void sim_device_uuid(int physical, CUuuid *ret_uuid);

static inline bool sim_device_valid(int device)
{
	return device >= 0 && device < sim_core.device_count;
}

/* The clock of events. */
static inline uint64_t sim_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t sim_round_up(uint64_t value, uint64_t step)
{
	return (value + step - 1) / step * step;
}

#endif
