#ifndef STASIS_GROUP_HOLD_H
#define STASIS_GROUP_HOLD_H

/*
 * Room on the GPUs that a native checkpoint has freed and an undo may need again: held by allocations of our own
 * until then, so that no neighbour takes it. One thread at a time.
 */

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"

struct stasis_hold_item {
	CUmemGenericAllocationHandle handle;
};

/* Empty when zeroed. */
struct stasis_hold {
	const struct stasis_driver *driver;
	const struct stasis_contexts *contexts;
	uint64_t free_bytes[STASIS_DEVICES_MAX]; /* of each context's device, before */
	struct stasis_hold_item *items;
	size_t count;
	uint64_t bytes;
};

/* Remembers what is free; the contexts outlive the hold. */
NODISCARD int stasis_hold_begin(struct stasis_hold *hold, const struct stasis_driver *driver,
				const struct stasis_contexts *contexts, struct stasis_error *err);

/* Takes what has become free since the last time, as much of it as can be had. */
NODISCARD int stasis_hold_take(struct stasis_hold *hold, struct stasis_error *err);

void stasis_hold_release(struct stasis_hold *hold);

static inline void cleanup_hold(struct stasis_hold *hold)
{
	stasis_hold_release(hold);
}

#endif
