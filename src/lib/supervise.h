#ifndef STASIS_LIB_SUPERVISE_H
#define STASIS_LIB_SUPERVISE_H

/*
 * Processes of ours that make CUDA calls, and the watchdog over them. A driver call that hangs cannot be
 * interrupted, so whoever waits for it must be another process: the supervisor, which never touches CUDA,
 * passes on what its child reports, asks it to give up when time is up, and ends it when it does not.
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "lib/channel.h"
#include "lib/places.h"

/* What the supervisor knows of the round trip, from its child's records. */
struct stasis_lib_knowledge {
	bool has_phase;
	enum stasis_lib_phase phase; /* the last that began */
	pid_t workload;              /* 0: none was started */
	bool is_native;
	bool is_durable;
	bool is_published;
	bool is_removed;
	bool is_kept;
	bool is_suspended;
	bool is_outgrown;
	char libcuda[STASIS_LIB_PATH_BYTES];
	char partial[STASIS_LIB_PATH_BYTES]; /* "": not made yet */
};

/* Runs in the child; its error is the child's last record. */
typedef int stasis_lib_child_function(struct stasis_lib_channel *channel, void *argument,
				      struct stasis_error *err);

struct stasis_lib_watch {
	const struct stasis_lib_sink *sink; /* where the child's events go */
	uint64_t timeout_ns;
	int cancel_fd; /* -1: none */
	struct stasis_lib_knowledge *knowledge;
};

enum stasis_lib_ending {
	STASIS_LIB_ENDED,     /* the child said how it ended: in *ret_outcome */
	STASIS_LIB_DIED,      /* it died without a word */
	STASIS_LIB_TIMED_OUT, /* it did not answer in time and was ended */
};

/*
 * Forks a child, runs `function` in it, watches it to its end, and reaps it. *ret_outcome holds the child's
 * error, or what happened to it. -1: there was no child.
 */
NODISCARD int stasis_lib_supervise(stasis_lib_child_function *function, void *argument,
				   const struct stasis_lib_watch *watch,
				   enum stasis_lib_ending *ret_ending,
				   struct stasis_error *ret_outcome, struct stasis_error *err);

#endif
