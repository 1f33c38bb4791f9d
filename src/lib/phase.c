/*
 * See phase.h.
 */

#include "lib/phase.h"

struct phase_row {
	const char *name;
	const char *waits_for;
};

/* clang-format off */
static const struct phase_row rows[STASIS_LIB_PHASE_COUNT] = {
	[STASIS_LIB_PREPARE]              = {"prepare", "the file system of the artifact directory"},
	[STASIS_LIB_START_WORKLOAD]       = {"start_workload", "the start of the workload process"},
	[STASIS_LIB_FILL_WORKLOAD]        = {"fill_workload", "the workload's answer 'ready' on its pipe"},
	[STASIS_LIB_OPEN_DRIVER]          = {"open_driver", "the driver and its devices"},
	[STASIS_LIB_CONFIRM_RUNNING]      = {"confirm_running", "the driver"},
	[STASIS_LIB_RESERVE]              = {"reserve", "memory and files set aside for the capture"},
	[STASIS_LIB_LOCK]                 = {"lock", "the driver"},
	[STASIS_LIB_CHECKPOINT]           = {"checkpoint", "the driver"},
	[STASIS_LIB_SAVE]                 = {"save", "copies from the device to files"},
	[STASIS_LIB_MANIFEST]             = {"manifest", "fdatasync of the image's files"},
	[STASIS_LIB_COMPLETE_CHECKPOINT]  = {"complete_checkpoint", "the driver"},
	[STASIS_LIB_CONFIRM_CHECKPOINTED] = {"confirm_checkpointed", "the driver"},
	[STASIS_LIB_PUBLISH]              = {"publish", "rename of the image to its name"},
	[STASIS_LIB_DAMAGE]               = {"damage", "the search for the workload's bytes in the image"},
	[STASIS_LIB_VALIDATE]             = {"validate", "reads of the image's manifest"},
	[STASIS_LIB_VERIFY]               = {"verify", "reads of the image's files"},
	[STASIS_LIB_EXPECT_REFUSAL]       = {"expect_refusal", "the driver"},
	[STASIS_LIB_REPAIR]               = {"repair", "writes to the image's files"},
	[STASIS_LIB_RESTORE]              = {"restore", "the driver"},
	[STASIS_LIB_LOAD]                 = {"load", "copies from files to the device"},
	[STASIS_LIB_COMPLETE_RESTORE]     = {"complete_restore", "the driver"},
	[STASIS_LIB_CONFIRM_LOCKED]       = {"confirm_locked", "the driver"},
	[STASIS_LIB_UNLOCK]               = {"unlock", "the driver"},
	[STASIS_LIB_CONFIRM_RESUMED]      = {"confirm_resumed", "the driver"},
	[STASIS_LIB_COMPARE]              = {"compare", "the workload's answer 'verified' on its pipe"},
	[STASIS_LIB_OPERATE]              = {"operate", "the workload's answer 'operated' on its pipe"},
	[STASIS_LIB_FINISH]               = {"finish", "the end of the workload process"},
	[STASIS_LIB_UNDO]                 = {"undo", "what brings the workload back"},
	[STASIS_LIB_RESCUE]               = {"rescue", "what brings the workload back"},
};
/* clang-format on */

static bool is_of_group(enum stasis_lib_phase phase)
{
	return (int)phase >= (int)STASIS_LIB_GROUP_FIRST;
}

static enum stasis_group_phase group_phase(enum stasis_lib_phase phase)
{
	return (enum stasis_group_phase)((int)phase - (int)STASIS_LIB_GROUP_FIRST);
}

const char *stasis_lib_phase_name(enum stasis_lib_phase phase)
{
	return is_of_group(phase) ? stasis_group_phase_name(group_phase(phase)) : rows[phase].name;
}

const char *stasis_lib_phase_waits_for(enum stasis_lib_phase phase)
{
	return is_of_group(phase) ? stasis_group_phase_waits_for(group_phase(phase))
				  : rows[phase].waits_for;
}

bool stasis_lib_phase_is_undo(enum stasis_lib_phase phase)
{
	return phase == STASIS_LIB_UNDO || phase == stasis_lib_phase_of_group(STASIS_GROUP_UNDO);
}

const char *stasis_lib_phase_family(enum stasis_lib_phase phase)
{
	return is_of_group(phase) ? "group" : "roundtrip";
}
