#ifndef STASIS_GROUP_TOPOLOGY_PARTS_H
#define STASIS_GROUP_TOPOLOGY_PARTS_H

/* What the files of the topology share. */

#include "group/topology.h"

/* Of cuda.h: types of locations. */
#define LOCATION_DEVICE 1u
#define LOCATION_HOST_NUMA 3u

/* "process 7: object 0123…: " and what follows. Returns -1. */
FORMAT(4, 5)
int stasis_topology_refuse(struct stasis_error *err, const struct stasis_member *member,
			   const struct stasis_id *object, const char *format, ...);

/* The object that a record is about; NULL for access and notes. */
const struct stasis_id *stasis_record_object(const struct stasis_wire_record *record);

/* Order of records in a member: type, object, then what tells records of one object apart. */
int stasis_record_compare(const void *a, const void *b);

/* The member's own record of an object; NULL: none. */
const struct stasis_wire_record *stasis_member_find(const struct stasis_member *member,
						    const struct stasis_id *object);

/* Of one member alone; of one object over all its holders; of multicast objects. */
NODISCARD int stasis_topology_check_member(const struct stasis_member *member,
					   struct stasis_error *err);
NODISCARD int stasis_topology_check_object(const struct stasis_topology *topology,
					   const struct stasis_group_object *object,
					   struct stasis_error *err);
NODISCARD int stasis_topology_check_multicast(const struct stasis_group_object *object,
					      struct stasis_error *err);

#endif
