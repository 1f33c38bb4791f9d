/* See watch.h. */

#include "group/watch.h"

#include <stdarg.h>
#include <stdio.h>

struct phase_row {
	const char *name;
	const char *waits_for;
};

/* clang-format off */
static const struct phase_row rows[STASIS_GROUP_PHASE_COUNT] = {
	[STASIS_GROUP_INSPECT]              = {"inspect", "the answers of the processes"},
	[STASIS_GROUP_PREFLIGHT]            = {"preflight", "the driver and the file system"},
	[STASIS_GROUP_GATE]                 = {"gate", "the programs' GPU work"},
	[STASIS_GROUP_INSPECT_AGAIN]        = {"inspect_again", "the answers of the processes"},
	[STASIS_GROUP_SAVE_ALLOCATIONS]     = {"save_allocations", "copies from the device to files"},
	[STASIS_GROUP_SEAL]                 = {"seal", "fdatasync of the image's files"},
	[STASIS_GROUP_ARM]                  = {"arm", "the answers of the processes"},
	[STASIS_GROUP_PREPARE_MULTICAST]    = {"prepare_multicast", "the answers of the processes"},
	[STASIS_GROUP_PREPARE_UNICAST]      = {"prepare_unicast", "the answers of the processes"},
	[STASIS_GROUP_LOCK]                 = {"lock", "the driver"},
	[STASIS_GROUP_CHECKPOINT]           = {"checkpoint", "the driver"},
	[STASIS_GROUP_CONFIRM_CHECKPOINTED] = {"confirm_checkpointed", "the driver"},
	[STASIS_GROUP_PUBLISH]              = {"publish", "rename of the image to its name"},
	[STASIS_GROUP_COMMIT]               = {"commit", "the driver"},
	[STASIS_GROUP_VALIDATE]             = {"validate", "reads of the image's manifest"},
	[STASIS_GROUP_VERIFY]               = {"verify", "reads of the image's files"},
	[STASIS_GROUP_RESTORE]              = {"restore", "the driver"},
	[STASIS_GROUP_UNLOCK]               = {"unlock", "the driver"},
	[STASIS_GROUP_LOAD_ALLOCATIONS]     = {"load_allocations", "copies from files to the device"},
	[STASIS_GROUP_RESTORE_UNICAST]      = {"restore_unicast", "the answers of the processes"},
	[STASIS_GROUP_RESTORE_MULTICAST]    = {"restore_multicast", "the answers of the processes"},
	[STASIS_GROUP_COMPARE]              = {"compare_topology", "the answers of the processes"},
	[STASIS_GROUP_OPEN]                 = {"open", "the answers of the processes"},
	[STASIS_GROUP_UNDO]                 = {"undo", "what brings the processes back"},
};
/* clang-format on */

const char *stasis_group_phase_name(enum stasis_group_phase phase)
{
	return rows[phase].name;
}

const char *stasis_group_phase_waits_for(enum stasis_group_phase phase)
{
	return rows[phase].waits_for;
}

void stasis_group_event(const struct stasis_group_watch *watch, const char *key, const char *format,
			...)
{
	char value[STASIS_ERROR_TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	watch->event(watch->data, key, value);
}
