#ifndef STASIS_LIB_PHASE_H
#define STASIS_LIB_PHASE_H

/*
 * The phases of a round trip in their order, and behind them those of a group (group/watch.h). Each has a name, which
 * the event `phase` carries, and says what is waited for in it, which the watchdog reports. A phase begins by passing
 * two fault points: in the worker "roundtrip_NAME" or "group_NAME", in the supervisor "supervisor_NAME".
 */

#include <stdbool.h>

#include "group/watch.h"

enum stasis_lib_phase {
	STASIS_LIB_PREPARE,
	STASIS_LIB_START_WORKLOAD,
	STASIS_LIB_FILL_WORKLOAD,
	STASIS_LIB_OPEN_DRIVER,
	STASIS_LIB_CONFIRM_RUNNING,
	STASIS_LIB_RESERVE,
	STASIS_LIB_LOCK,
	STASIS_LIB_CHECKPOINT,
	STASIS_LIB_SAVE,
	STASIS_LIB_MANIFEST,
	STASIS_LIB_COMPLETE_CHECKPOINT,
	STASIS_LIB_CONFIRM_CHECKPOINTED,
	STASIS_LIB_PUBLISH,
	STASIS_LIB_DAMAGE,
	STASIS_LIB_VALIDATE,
	STASIS_LIB_VERIFY,
	STASIS_LIB_EXPECT_REFUSAL,
	STASIS_LIB_REPAIR,
	STASIS_LIB_RESTORE,
	STASIS_LIB_LOAD,
	STASIS_LIB_COMPLETE_RESTORE,
	STASIS_LIB_CONFIRM_LOCKED,
	STASIS_LIB_UNLOCK,
	STASIS_LIB_CONFIRM_RESUMED,
	STASIS_LIB_COMPARE,
	STASIS_LIB_OPERATE,
	STASIS_LIB_FINISH,
	STASIS_LIB_UNDO,
	STASIS_LIB_RESCUE,
	STASIS_LIB_PHASE_COUNT,
	STASIS_LIB_GROUP_FIRST = STASIS_LIB_PHASE_COUNT, /* and so on, as enum stasis_group_phase */
};

static inline enum stasis_lib_phase stasis_lib_phase_of_group(enum stasis_group_phase phase)
{
	return (enum stasis_lib_phase)((int)STASIS_LIB_GROUP_FIRST + (int)phase);
}

/* What a phase undoes is brought to its end, however long that takes. */
bool stasis_lib_phase_is_undo(enum stasis_lib_phase phase);

/* "roundtrip" or "group". */
const char *stasis_lib_phase_family(enum stasis_lib_phase phase);

const char *stasis_lib_phase_name(enum stasis_lib_phase phase);

/* "fdatasync of the image's files". The watchdog names a driver call instead, where the worker is in one. */
const char *stasis_lib_phase_waits_for(enum stasis_lib_phase phase);

#endif
