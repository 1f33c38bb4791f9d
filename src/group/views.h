#ifndef STASIS_GROUP_VIEWS_H
#define STASIS_GROUP_VIEWS_H

/*
 * The memory of a group, mapped into this process: each extent of a layout is one run of addresses in which its
 * objects, imported from descriptors, lie side by side. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "group/kept.h"
#include "group/layout.h"

/* A run; index as in the layout's extents. */
struct stasis_group_view {
	CUcontext context;
	int device_ordinal;
	CUdeviceptr address;
	uint64_t bytes;
	size_t mapped_bytes; /* from the beginning */
};

/* Empty when zeroed. */
struct stasis_group_views {
	const struct stasis_driver *driver;
	struct stasis_group_view *items;
	size_t count;
};

/*
 * Objects that are not kept, because all their holders have ended, are filled in with memory of our own. Maps everything, readable and writable from the extent's device. Host memory is reached through the device of its
 * extent. Every device must have a context in `contexts`, which outlive the views.
 */
NODISCARD int
stasis_group_views_open(const struct stasis_driver *driver, const struct stasis_contexts *contexts,
			const struct stasis_layout *layout, const struct stasis_kept *kept,
			struct stasis_group_views *ret_views, struct stasis_error *err);
void stasis_group_views_close(struct stasis_group_views *views);

static inline void cleanup_group_views(struct stasis_group_views *views)
{
	stasis_group_views_close(views);
}

#endif
