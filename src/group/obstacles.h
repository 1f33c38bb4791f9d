#ifndef STASIS_GROUP_OBSTACLES_H
#define STASIS_GROUP_OBSTACLES_H

/*
 * What hinders a capture and is seen from outside, in the machine and in the processes: states, compute mode, MIG, MPS,
 * limits on descriptors. Everything is read and nothing is changed. One thread at a time.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"

/* What does not depend on what the processes share. */
NODISCARD int stasis_obstacles_check(const struct stasis_group *group, struct stasis_error *err);

/*
 * Whether this process and those of the group may have as many descriptors as it takes to keep what the group's
 * topology, which has been checked, says that they share.
 */
NODISCARD int stasis_obstacles_check_descriptors(const struct stasis_group *group,
						 struct stasis_error *err);

#endif
