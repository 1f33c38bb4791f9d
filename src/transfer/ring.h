#ifndef STASIS_TRANSFER_RING_H
#define STASIS_TRANSFER_RING_H

/*
 * One GPU's part of the engine: worker threads that wait for work, each with a stream and two slots of
 * pinned host memory. All is made when the ring is opened; a run allocates nothing. Opened, given work and
 * closed by one thread, the engine's caller.
 *
 * A slot whose device copy may still be running is neither reused nor freed: a worker whose stream cannot be
 * drained is retired with its memory, which stays pinned for the life of the process.
 */

#include "driver/driver.h"
#include "transfer/control.h"
#include "transfer/pinned.h"
#include "transfer/plan.h"

#define STASIS_TRANSFER_SLOTS 2

struct stasis_transfer_ring;

struct stasis_transfer_slot {
	uint8_t *buffer; /* pinned */
	CUevent event;
	bool is_busy; /* the link may be using the buffer */
	struct stasis_transfer_job job;
};

struct stasis_transfer_worker {
	struct stasis_transfer_ring *ring;
	pthread_t thread;
	bool has_thread;
	bool is_ready; /* has all it needs; written by its own thread while the caller waits for it */
	bool is_retired; /* a device copy may be running for ever; likewise */
	struct stasis_error init_error;
	struct stasis_transfer_control *start; /* left when is_ready or init_error is known */
	CUstream stream;
	struct stasis_transfer_pinned pinned;
	struct stasis_transfer_slot slots[STASIS_TRANSFER_SLOTS];
	struct stasis_transfer_packing packing; /* made and freed by the caller's thread */
};

/* What a ring's workers are to do. */
struct stasis_transfer_work {
	struct stasis_transfer_control *control;
	struct stasis_transfer_ready_plan *plan;
	size_t device_index; /* in the plan */
};

struct stasis_transfer_ring {
	const struct stasis_driver *driver;
	CUcontext context;
	int ordinal;
	uint64_t slot_bytes;
	uint64_t drain_ns;
	uint32_t worker_count; /* of which some may not be ready or retired */
	struct stasis_transfer_worker workers[STASIS_TRANSFER_WORKERS_MAX];
	pthread_cond_t wake;
	struct stasis_mutex
		mutex; /* guards what follows; clang 14 cannot be told so inside a C struct */
	uint64_t work_number;
	struct stasis_transfer_work work;
	bool is_closing;
};

struct stasis_transfer_ring_options {
	const struct stasis_driver *driver;
	CUcontext context;
	int ordinal;
	uint64_t chunk_bytes;
	uint64_t pinned_bytes;
	uint64_t drain_ns;
	uint32_t workers;
};

/* Returns an owned ring with at least one ready worker; fewer than asked for where memory is short. */
NODISCARD int stasis_transfer_ring_new(const struct stasis_transfer_ring_options *options,
				       struct stasis_transfer_ring **ret_ring,
				       struct stasis_error *err);

/* Ends the threads and unpins what is not in use; NULL is accepted. */
void stasis_transfer_ring_free(struct stasis_transfer_ring *ring);

/* Gives each worker what it needs to pack and unpack chunks, where it has not got that yet. */
NODISCARD int stasis_transfer_ring_pack(struct stasis_transfer_ring *ring,
					struct stasis_error *err);

/* Workers that can work. */
uint32_t stasis_transfer_ring_ready_count(const struct stasis_transfer_ring *ring);
uint32_t stasis_transfer_ring_thread_count(const struct stasis_transfer_ring *ring);
uint64_t stasis_transfer_ring_pinned_bytes(const struct stasis_transfer_ring *ring);
uint64_t stasis_transfer_ring_leaked_bytes(const struct stasis_transfer_ring *ring);

/*
 * Lets all workers with a thread loose. stasis_transfer_ring_thread_count() of them leave work->control: those
 * that are retired at once, the others when they have finished.
 */
void stasis_transfer_ring_start(struct stasis_transfer_ring *ring,
				const struct stasis_transfer_work *work) EXCLUDES(ring->mutex);

/* worker.c: what a worker does with work. Runs in the worker's thread; ends with a drained stream. */
void stasis_transfer_worker_run(struct stasis_transfer_worker *worker,
				const struct stasis_transfer_work *work);

#endif
