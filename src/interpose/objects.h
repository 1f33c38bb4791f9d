#ifndef STASIS_INTERPOSE_OBJECTS_H
#define STASIS_INTERPOSE_OBJECTS_H

/*
 * What handlers do with objects around a driver call: hold one while the driver works on it, and give back to the
 * driver what nobody holds any more. Called without the registry's lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "driver/abi.h"
#include "interpose/registry.h"

/* An object that is kept while a call uses it. */
struct stasis_use {
	struct stasis_object
		*object; /* NULL: a handle of the driver's own, which is used as it is */
	struct stasis_handle *handle;
	CUmemGenericAllocationHandle driver_handle;
};

/* False: no handle of that value, or the driver has nothing behind it. */
bool stasis_use_begin(uint64_t handle, struct stasis_use *ret_use);
void stasis_use_end(struct stasis_use *use);

/*
 * Gives back what the registry let go: the driver's handle by `release` (NULL: libcuda's own), the descriptor, the
 * record. Returns the driver's answer; SUCCESS where there was nothing to do.
 */
CUresult stasis_object_end(struct stasis_gone *gone, __typeof__(cuMemRelease) *release);

/*
 * From now on we save and rebuild it and not the driver, for good: it was exported, imported, or bound to a multicast
 * object. To be called once the driver has done that, and before the gate can be shut.
 */
void stasis_object_mark_shared(struct stasis_object *object) REQUIRES(stasis_registry.mutex);

/*
 * The driver's descriptor for it, close-on-exec and the caller's: a duplicate of the one that is kept, or an
 * export. The object is in use, or the gate is shut.
 */
NODISCARD int stasis_object_export(struct stasis_object *object, int *ret_fd,
				   struct stasis_error *err);

/* Unmaps those of its mappings that the driver has. The gate is shut. */
struct stasis_calls;
NODISCARD int stasis_object_unmap(const struct stasis_calls *calls, struct stasis_object *object,
				  struct stasis_error *err);

/*
 * Maps again, with their rights, those of its mappings that are down; what a try that failed has mapped is given
 * its rights alone. The gate is shut.
 */
NODISCARD int stasis_object_map_again(const struct stasis_calls *calls,
				      struct stasis_object *object, struct stasis_error *err);

#endif
