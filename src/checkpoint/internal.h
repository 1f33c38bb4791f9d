#ifndef STASIS_CHECKPOINT_INTERNAL_H
#define STASIS_CHECKPOINT_INTERNAL_H

/*
 * What the files of this module share.
 */

#include "checkpoint/checkpoint.h"

/* ---- target.c ---- */

/* The process is still the one that was opened; else STASIS_LOST. Called right before each driver call. */
NODISCARD int stasis_target_check(const struct stasis_target *target, struct stasis_error *err);

/*
 * Refuses to `action` ("lock", …) a target that is not in state `wanted`; the status is its state's, or that
 * of `wanted` where the driver does not answer.
 */
NODISCARD int stasis_target_expect(const struct stasis_target *target, CUprocessState wanted,
				   const char *action, struct stasis_error *err);

/* After a call that succeeded: the target is in state `wanted`. The functions below settle the status. */
NODISCARD int stasis_target_confirm(const struct stasis_target *target, CUprocessState wanted,
				    const char *action, struct stasis_error *err);

/* Fills `err` with "ACTION process PID: RESULT" and advice where we have some. */
int stasis_target_fail(const struct stasis_target *target, CUresult result, const char *action,
		       struct stasis_error *err);

/*
 * Reads back what became of a target after a failure, `cause`, sets the status accordingly and says so:
 * _paused after a failed lock, checkpoint or begin of one (unlocks a target that is LOCKED); _unlock after
 * a failed unlock; _lost after a failed restore or complete, where no state makes good again.
 * Each moves `cause` into `err` and returns -1.
 */
int stasis_target_settle_paused(const struct stasis_target *target, struct stasis_error *cause,
				struct stasis_error *err);
int stasis_target_settle_unlock(const struct stasis_target *target, struct stasis_error *cause,
				struct stasis_error *err);
int stasis_target_settle_lost(const struct stasis_target *target, struct stasis_error *cause,
			      struct stasis_error *err);

/* ---- remap.c ---- */

/* Sets the pairs of *io_args; `pairs` must live as long. Refuses what cannot be right, as SUSPENDED. */
NODISCARD int stasis_remap_encode(const struct stasis_driver *driver,
				  const struct stasis_remap *remap,
				  CUcheckpointGpuPair pairs[STASIS_DEVICES_MAX],
				  CUcheckpointRestoreArgs *io_args, struct stasis_error *err);

/* ---- contexts.c ---- */

/* Keeps exactly the contexts of the views' devices: lets go of the others, retains what is missing. */
NODISCARD int stasis_contexts_narrow(struct stasis_contexts *contexts,
				     const struct stasis_view *views, unsigned int view_count,
				     struct stasis_error *err);

/* ---- shape.c ---- */

/*
 * Judges the driver's description and finds the device of each entry through its stream. What it says of a
 * bad one is the operation's verdict. Status STASIS_LOST.
 */
NODISCARD int stasis_shape_read(const struct stasis_driver *driver,
				const CUcheckpointCustomStorageInfo *info,
				struct stasis_view views[STASIS_DEVICES_MAX],
				unsigned int *ret_view_count, struct stasis_error *err);

#endif
