#ifndef STASIS_TRANSFER_CONTROL_H
#define STASIS_TRANSFER_CONTROL_H

/*
 * What the threads of one transfer share: how much is done, the first error, and whether to stop. The
 * caller's thread waits in stasis_transfer_control_wait, where it alone reports progress and looks at the
 * cancel flag and the deadline; workers only read flags, which costs them one load.
 */

#include "base/mutex.h"
#include "transfer/transfer.h"

/* Where a failure happened, for the result. */
struct stasis_transfer_failure {
	enum stasis_transfer_side side;
	bool has_damage;
	size_t extent_index;
	uint64_t chunk_index;
	uint64_t file_offset;
};

struct stasis_transfer_control {
	const struct stasis_transfer_watch *watch;
	const char *what; /* "save", "verify", …, for messages */
	uint64_t total_bytes;
	uint64_t started_ns;
	/* Counters and flags publish nothing but themselves: relaxed order suffices. */
	atomic_uint_fast64_t done_bytes;
	atomic_uint_fast64_t stored_bytes;
	atomic_uint_fast64_t zero_bytes;
	atomic_bool is_stopped;   /* by an error, by cancellation or by the deadline */
	atomic_bool is_abandoned; /* by cancellation or by the deadline */
	pthread_cond_t changed;
	struct stasis_mutex
		mutex; /* guards what follows; clang 14 cannot be told so inside a C struct */
	uint32_t running;
	bool is_cancelled;
	bool is_timed_out;
	uint64_t error_order;
	struct stasis_error error;
	struct stasis_transfer_failure failure;
};

/* `watch` may be NULL. */
NODISCARD int stasis_transfer_control_init(struct stasis_transfer_control *control,
					   const struct stasis_transfer_watch *watch,
					   const char *what, uint64_t total_bytes,
					   struct stasis_error *err);
void stasis_transfer_control_fini(struct stasis_transfer_control *control);

/* Before the threads are let go: how many will leave. */
void stasis_transfer_control_enter(struct stasis_transfer_control *control, uint32_t thread_count)
	EXCLUDES(control->mutex);

/* A thread's last touch of the control. */
void stasis_transfer_control_leave(struct stasis_transfer_control *control)
	EXCLUDES(control->mutex);

/*
 * Stops the transfer. The error of the lowest order wins, and the first among equals: 0 everywhere but where
 * damage is to be named in the order of chunks.
 */
void stasis_transfer_control_fail(struct stasis_transfer_control *control, uint64_t order,
				  const struct stasis_transfer_failure *failure,
				  const struct stasis_error *error) EXCLUDES(control->mutex);

/* Waits until all threads have left; fills result and, on failure, err. */
NODISCARD int stasis_transfer_control_wait(struct stasis_transfer_control *control,
					   struct stasis_transfer_result *result,
					   struct stasis_error *err) EXCLUDES(control->mutex);

static inline bool stasis_transfer_control_is_stopped(const struct stasis_transfer_control *control)
{
	return atomic_load_explicit(&control->is_stopped, memory_order_relaxed);
}

static inline void stasis_transfer_control_count(atomic_uint_fast64_t *counter, uint64_t bytes)
{
	(void)atomic_fetch_add_explicit(counter, bytes, memory_order_relaxed);
}

#endif
