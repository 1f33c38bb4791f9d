#ifndef STASIS_GROUP_CENSUS_H
#define STASIS_GROUP_CENSUS_H

/*
 * Who else on this machine holds memory of a group. A participant that imported from one of the group's and was not
 * named would keep the old memory, while the group's processes get new. One thread at a time.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"

/*
 * Refuses, naming it, a participant outside the group that holds an object of the group's topology. Processes that may
 * not be traced cannot be asked; they are other users', who cannot have come by a ticket's memory.
 */
NODISCARD int stasis_census_check(struct stasis_group *group, struct stasis_error *err);

/*
 * Refuses, naming it, a participant outside the group that made an object of the group's topology, which need not have
 * been checked. One that is not on this machine, or has ended, is left to stasis_topology_check().
 */
NODISCARD int stasis_census_creators(struct stasis_group *group, struct stasis_error *err);

#endif
