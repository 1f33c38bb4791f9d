#ifndef STASIS_INTERPOSE_MULTICAST_H
#define STASIS_INTERPOSE_MULTICAST_H

/*
 * What the registry knows of a multicast object beside its handles and mappings: the devices that this process has
 * added to its team, and what it has bound. Both go with the object. What is bound is held by its binding, and is ours
 * to save from then on. Data only: no call of the driver's is made here.
 */

#include "interpose/registry.h"

/* NULL: no memory. What was not taken is freed with free(). */
struct stasis_team_device *stasis_team_device_new(void);
struct stasis_binding *stasis_binding_new(void);

/* Takes the device; one that was added before stays as it is. */
void stasis_team_add(struct stasis_object *object, struct stasis_team_device *device)
	REQUIRES(stasis_registry.mutex);

/* Takes the binding, as the last one of the object. Its member is not going: a call uses it. */
void stasis_binding_add(struct stasis_object *object, struct stasis_binding *binding)
	REQUIRES(stasis_registry.mutex);

/* Out of the object; the caller drops it. NULL: there is none of that place and size. */
struct stasis_binding *stasis_binding_take(struct stasis_object *object, CUdevice device,
					   uint64_t offset, uint64_t bytes)
	REQUIRES(stasis_registry.mutex);

/* Frees what was taken; its member may go with it. */
void stasis_binding_drop(struct stasis_binding *binding, struct stasis_gone *ret_gone)
	REQUIRES(stasis_registry.mutex);

/*
 * The program has unmapped the range. Memory that only the driver knows, and that was bound by an address in it, is held
 * by its binding alone now: it would be gone with that, and cannot be bound again. Any thread, no lock held.
 */
void stasis_bindings_unmapped(uint64_t address, uint64_t bytes);

/* How many of its bindings hinder a capture. */
uint64_t stasis_binding_count_unsupported(const struct stasis_object *object)
	REQUIRES(stasis_registry.mutex);

/* Devices and bindings of an object that is freed, whose members have been let go of. */
void stasis_multicast_free(struct stasis_object *object);

#endif
