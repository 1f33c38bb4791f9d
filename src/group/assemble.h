#ifndef STASIS_GROUP_ASSEMBLE_H
#define STASIS_GROUP_ASSEMBLE_H

/*
 * Putting shared memory together again in processes that stand without it: from descriptors that kept it, or anew
 * with its contents loaded from an image. The processes that are out are left out, and where one of them owned an
 * object, another holder is its owner.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"
#include "group/kept.h"
#include "group/layout.h"

/*
 * Each participant takes everything that it holds, and that is not up yet, from `kept`: LOAD_ALLOCATIONS and
 * RESTORE_UNICAST. `is_first`: no LOAD_ALLOCATIONS was done before.
 */
NODISCARD int stasis_assemble_attached(struct stasis_group *group, const struct stasis_kept *kept,
				       bool is_first, uint64_t limit_ns, struct stasis_error *err);

/* Owners make their objects anew, without contents: LOAD_ALLOCATIONS. */
NODISCARD int stasis_assemble_owned(struct stasis_group *group, const struct stasis_layout *layout,
				    uint64_t limit_ns, struct stasis_error *err);

/* The four barriers. */
NODISCARD int stasis_assemble_multicast(struct stasis_group *group, uint64_t limit_ns,
					struct stasis_error *err);

#endif
