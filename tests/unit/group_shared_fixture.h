#ifndef STASIS_TESTS_GROUP_SHARED_FIXTURE_H
#define STASIS_TESTS_GROUP_SHARED_FIXTURE_H

/* Groups whose shared.json is written and read. */

#include "unit.h"

#include <stddef.h>

#include "group/shared.h"

/* A group, and places of some of its allocations. */
struct t_group {
	struct stasis_topology topology;
	struct stasis_shared_place *places;
	size_t place_count;
};

void t_group_free(struct t_group *group);
void t_place_add(struct t_group *group, struct stasis_id object, struct stasis_id extent,
		 uint64_t offset);

/* One member with one record of each type, and a place of its allocation. */
void t_group_small(struct t_group *ret_group);

/* The text, which the caller frees, and back. */
char *t_group_text(const struct t_group *group, size_t *ret_bytes);
char *t_group_small_text(size_t *ret_bytes);
void t_group_read(const char *text, size_t bytes, struct t_group *ret_group);

#endif
