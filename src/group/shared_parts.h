#ifndef STASIS_GROUP_SHARED_PARTS_H
#define STASIS_GROUP_SHARED_PARTS_H

/* What writing and reading of shared.json share: the tables of fields, and the checks of both directions. */

#include "base/compiler.h"
#include "base/error.h"
#include "group/shared.h"
#include "image/fields.h"

#define STASIS_SHARED_FORMAT_NAME "stasis-shared"

extern const struct stasis_image_field_table stasis_shared_root_table; /* of no structure */
extern const struct stasis_image_field_table stasis_shared_member_table;
extern const struct stasis_image_field_table stasis_shared_place_table;

/* Of one of the known types. The name of the type is the first field. */
const struct stasis_image_field_table *
stasis_shared_record_table(enum stasis_wire_record_type type);
const char *stasis_shared_type_name(enum stasis_wire_record_type type);

/* What the wire would refuse in a record; NULL: nothing. */
const char *stasis_shared_record_fault(const struct stasis_wire_record *record);

/*
 * Sorts places by object. Refuses, with STASIS_BAD_IMAGE, two of one object and one of an object of which no member
 * has an allocation.
 */
NODISCARD int stasis_shared_places_check(const struct stasis_topology *topology,
					 struct stasis_shared_place *places, size_t place_count,
					 struct stasis_error *err);

#endif
