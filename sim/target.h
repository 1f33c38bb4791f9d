#ifndef SIM_TARGET_H
#define SIM_TARGET_H

/*
 * What becomes of this process when others checkpoint it:
 *
 *     RUNNING -lock-> LOCKED -checkpoint-> CHECKPOINTED -restore-> LOCKED -unlock-> RUNNING
 *
 * With CustomStorage, checkpoint and restore are operations: prepared, begun (from here on there is no
 * way back) and completed. Where a restore fails the process is lost: it stays CHECKPOINTED, and nothing
 * but its end remains. An operation whose caller died leaves it FAILED. While an operation is begun the
 * state is CHECKPOINTING or RESTORING.
 *
 * Only the endpoint's thread calls these.
 */

#include <stdint.h>

#include "compiler.h"
#include "protocol.h"

/* What sim-state sees. */
void sim_target_describe(struct sim_reply *ret_reply);

/* What cuCheckpointProcessGetState answers. */
CUprocessState sim_target_state(void);

/* NOT_READY: not at this instant. */
NODISCARD CUresult sim_target_try_lock(void);
/* The lock's time is over: what it answers. */
NODISCARD CUresult sim_target_lock_timed_out(void);
NODISCARD CUresult sim_target_unlock(void);
NODISCARD CUresult sim_target_checkpoint(void);
NODISCARD CUresult sim_target_restore(const struct sim_request *request);

/*
 * Prepares an operation: nothing is lost if it is abandoned now. The reply gets the counts, 'ret_table'
 * the table of pieces, which the caller closes.
 */
NODISCARD CUresult sim_target_prepare(const struct sim_request *request,
				      struct sim_reply *ret_reply, int *ret_table);
/* Descriptors of the prepared operation, at most SIM_FILES_MAX; returns how many. */
size_t sim_target_files(size_t first, int *ret_fds);
NODISCARD CUresult sim_target_begun(void);
NODISCARD CUresult sim_target_complete(void);
/* Its caller is gone: undone if prepared, FAILED if begun. */
void sim_target_abandon(void);

#endif
