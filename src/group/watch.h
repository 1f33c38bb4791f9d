#ifndef STASIS_GROUP_WATCH_H
#define STASIS_GROUP_WATCH_H

/*
 * The phases through which a group goes, and how whoever asked for it is told of them. The functions are called on
 * the thread that called into the group.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "transfer/transfer.h"

enum stasis_group_phase {
	STASIS_GROUP_INSPECT,
	STASIS_GROUP_PREFLIGHT,
	STASIS_GROUP_GATE,
	STASIS_GROUP_INSPECT_AGAIN,
	STASIS_GROUP_SAVE_ALLOCATIONS,
	STASIS_GROUP_SEAL,
	STASIS_GROUP_ARM,
	STASIS_GROUP_PREPARE_MULTICAST,
	STASIS_GROUP_PREPARE_UNICAST,
	STASIS_GROUP_LOCK,
	STASIS_GROUP_CHECKPOINT,
	STASIS_GROUP_CONFIRM_CHECKPOINTED,
	STASIS_GROUP_PUBLISH,
	STASIS_GROUP_COMMIT,
	STASIS_GROUP_VALIDATE,
	STASIS_GROUP_VERIFY,
	STASIS_GROUP_RESTORE,
	STASIS_GROUP_UNLOCK,
	STASIS_GROUP_LOAD_ALLOCATIONS,
	STASIS_GROUP_RESTORE_UNICAST,
	STASIS_GROUP_RESTORE_MULTICAST,
	STASIS_GROUP_COMPARE,
	STASIS_GROUP_OPEN,
	STASIS_GROUP_UNDO,
	STASIS_GROUP_PHASE_COUNT,
};

/* "prepare_unicast". */
const char *stasis_group_phase_name(enum stasis_group_phase phase);

/* "the driver": what is waited for in it. */
const char *stasis_group_phase_waits_for(enum stasis_group_phase phase);

struct stasis_group_watch {
	/* A phase begins; fails where whoever asked wants an end, which is then brought about by undoing. */
	int (*begin)(void *data, enum stasis_group_phase phase, struct stasis_error *err);
	/* A phase begins that goes on whatever anyone wants. */
	void (*enter)(void *data, enum stasis_group_phase phase);
	void (*event)(void *data, const char *key, const char *value);
	/* How a transfer is watched. */
	struct stasis_transfer_watch (*transfer)(void *data, const char *label, bool can_cancel);
	/* Where the image is being made, from when on it is there. */
	void (*partial)(void *data, const char *path);
	/* Every byte that undoing needs is durable in the partial. */
	void (*durable)(void *data);
	void *data;
};

/* An event with a formatted value. */
FORMAT(3, 4)
void stasis_group_event(const struct stasis_group_watch *watch, const char *key, const char *format,
			...);

#endif
