#ifndef STASIS_GROUP_CONTENTS_H
#define STASIS_GROUP_CONTENTS_H

/* The contents of a group's memory, from views into an image and back. One thread at a time. */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"
#include "group/layout.h"
#include "group/views.h"
#include "image/image.h"
#include "transfer/transfer.h"

struct stasis_contents_target {
	struct stasis_image_writer *writer;
	uint64_t chunk_bytes;
	struct stasis_image_reserve_info reserve; /* whose files become stripes; zeroed: none */
};

/*
 * Saves every extent; the ids in the layout are filled. The processes of the group were added to the writer in their
 * order. Can be cancelled: nothing has been touched yet.
 */
NODISCARD int stasis_contents_save(struct stasis_group *group, struct stasis_layout *layout,
				   const struct stasis_group_views *views,
				   const struct stasis_contents_target *target,
				   struct stasis_transfer *transfer, struct stasis_error *err);

/* Loads every extent, each chunk held against its digest before it reaches the device if `is_verified`. */
NODISCARD int stasis_contents_load(struct stasis_group *group, const struct stasis_layout *layout,
				   const struct stasis_group_views *views,
				   const struct stasis_image *image, bool is_verified,
				   struct stasis_transfer *transfer, struct stasis_error *err);

/* Holds every byte of the image against its digest. */
NODISCARD int stasis_contents_verify(struct stasis_group *group, const struct stasis_image *image,
				     struct stasis_error *err);

#endif
