#ifndef STASIS_GROUP_LAYOUT_H
#define STASIS_GROUP_LAYOUT_H

/*
 * Where the contents of a group's memory lie in an image: of each process that owns some, what it has on one device
 * (or in host memory) lies in one extent, object behind object. Pure. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "group/shared.h"
#include "group/topology.h"
#include "image/image.h"

struct stasis_layout_extent {
	struct stasis_id owner;  /* the participant that hands the contents out */
	bool is_host;            /* of a NUMA node; `device` is then zero until one is chosen */
	struct stasis_id device; /* its UUID */
	uint64_t bytes;
	struct stasis_id id; /* in the image; zero until it is there */
	size_t image_index;  /* of a layout that was read: in the manifest */
};

struct stasis_layout_item {
	const struct stasis_group_object *object; /* the topology's */
	size_t extent_index;
	uint64_t offset;
};

/* Empty when zeroed. Items lie in the order of their extents and offsets, without a gap. */
struct stasis_layout {
	struct stasis_layout_extent *extents;
	size_t extent_count;
	struct stasis_layout_item *items;
	size_t item_count;
};

/* Of a checked topology, which must outlive the layout. */
NODISCARD int stasis_layout_make(const struct stasis_topology *topology,
				 struct stasis_layout *ret_layout, struct stasis_error *err);

/*
 * As an image says. Refused with STASIS_BAD_IMAGE: an object that has no place or two, one that is not in the
 * topology, places that overlap, leave a gap or do not fill their extent, an extent without a process or objects.
 */
NODISCARD int stasis_layout_read(const struct stasis_topology *topology,
				 const struct stasis_shared_place *places, size_t place_count,
				 const struct stasis_image_manifest *manifest,
				 struct stasis_layout *ret_layout, struct stasis_error *err);

/* For shared.json, once the extents have ids; the caller frees them. */
NODISCARD int stasis_layout_places(const struct stasis_layout *layout,
				   struct stasis_shared_place **ret_places,
				   struct stasis_error *err);

void stasis_layout_free(struct stasis_layout *layout);

static inline void cleanup_layout(struct stasis_layout *layout)
{
	stasis_layout_free(layout);
}

#endif
