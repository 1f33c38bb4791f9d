#ifndef STASIS_GROUP_SHARED_H
#define STASIS_GROUP_SHARED_H

/*
 * The text of an image's shared.json: what the participants said of their memory when it was captured, and where the
 * contents of what they share lie in the image. docs/format.md has every field. Pure: opens nothing. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "group/topology.h"

#define STASIS_SHARED_VERSION 1

/* Of all members together; of places too. */
#define STASIS_SHARED_RECORDS_MAX (UINT64_C(1) << 24)

/* Where the content of an object lies in the image. */
struct stasis_shared_place {
	struct stasis_id object;
	struct stasis_id extent;
	uint64_t offset;
};

/*
 * The topology may be checked or not; of its objects nothing is written but the records they were made from. All
 * records are kept, notes too; what is not UTF-8 in a text becomes '?'. Refused: a record that the wire would not
 * take, two places of one object, one of an object that no member has, a text that no image takes. The caller frees
 * *ret_text.
 */
NODISCARD int stasis_shared_encode(const struct stasis_topology *topology,
				   const struct stasis_shared_place *places, size_t place_count,
				   char **ret_text, size_t *ret_bytes, struct stasis_error *err);

/*
 * Reads a text whole or refuses it with STASIS_BAD_IMAGE, naming the place. The topology is not checked yet: that is
 * the caller's to do, as it is to hold the extents of places against the image. Places are in the order of objects.
 * The caller frees both; *ret_places is NULL where there are none.
 */
NODISCARD int stasis_shared_decode(const char *text, size_t bytes,
				   struct stasis_topology *ret_topology,
				   struct stasis_shared_place **ret_places, size_t *ret_place_count,
				   struct stasis_error *err);

#endif
