#ifndef STASIS_GROUP_NATIVE_H
#define STASIS_GROUP_NATIVE_H

/*
 * The driver's own steps, for all processes of a group: locks before the first checkpoint, all or none. One thread,
 * since a call that hangs is named by the one that makes it.
 */

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"

/*
 * RUNNING to LOCKED, all of them or none: where one cannot be had in a short time the others are let go, and all is
 * tried again, some times. One that is found in another state is left so, and refused.
 */
NODISCARD int stasis_native_lock(struct stasis_group *group, struct stasis_error *err);

/* LOCKED to CHECKPOINTED, one after the other; stops at the first failure. */
NODISCARD int stasis_native_checkpoint(struct stasis_group *group, struct stasis_error *err);

/* Each process must be in this state; STASIS_LOST where one is not. */
NODISCARD int stasis_native_confirm(struct stasis_group *group, CUprocessState expected,
				    struct stasis_error *err);

/*
 * Towards RUNNING, whatever state each is in: what is CHECKPOINTED is restored, then what is LOCKED unlocked. One that
 * the driver cannot bring back, or that has ended, is marked as lost and left out from then on (`is_out`); the others
 * go on. -1 where any was lost.
 */
NODISCARD int stasis_native_return(struct stasis_group *group, struct stasis_error *err);

#endif
