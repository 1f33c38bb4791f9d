/*
 * See multicast.h.
 */

#include "interpose/multicast.h"

#include <stdlib.h>

#include "interpose/objects.h"

struct stasis_team_device *stasis_team_device_new(void)
{
	return calloc(1, sizeof(struct stasis_team_device));
}

struct stasis_binding *stasis_binding_new(void)
{
	return calloc(1, sizeof(struct stasis_binding));
}

void stasis_team_add(struct stasis_object *object, struct stasis_team_device *device)
{
	struct stasis_team_device **link = &object->team;

	while (*link && (*link)->ordinal != device->ordinal)
		link = &(*link)->next;
	if (*link) {
		free(device);
		return;
	}
	device->next = NULL;
	*link = device;
	stasis_registry.generation++;
}

static bool is_native(const struct stasis_binding *binding)
{
	return !binding->member && binding->address != 0;
}

void stasis_binding_add(struct stasis_object *object, struct stasis_binding *binding)
{
	struct stasis_binding **link = &object->bindings;

	while (*link)
		link = &(*link)->next;
	binding->next = NULL;
	*link = binding;
	if (binding->member) {
		binding->member->binding_member_count++;
		stasis_object_mark_shared(binding->member);
	}
	stasis_registry.native_binding_count += is_native(binding);
	stasis_registry.generation++;
}

static bool is_at(const struct stasis_binding *binding, CUdevice device, uint64_t offset,
		  uint64_t bytes)
{
	/* The device of an unsupported one may not be known. */
	return (binding->device == device || binding->is_unsupported) &&
	       binding->offset == offset && binding->bytes == bytes;
}

/* The older of two: a place may have been bound again before its unbinding came to be told. */
struct stasis_binding *stasis_binding_take(struct stasis_object *object, CUdevice device,
					   uint64_t offset, uint64_t bytes)
{
	struct stasis_binding **link = &object->bindings;
	struct stasis_binding *found;

	while (*link && !is_at(*link, device, offset, bytes))
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = found->next;
		stasis_registry.generation++;
	}
	return found;
}

void stasis_binding_drop(struct stasis_binding *binding, struct stasis_gone *ret_gone)
{
	struct stasis_object *member = binding->member;

	*ret_gone = (struct stasis_gone){.object = NULL};
	stasis_registry.native_binding_count -= is_native(binding);
	free(binding);
	if (!member)
		return;
	stasis_object_pin(member);
	member->binding_member_count--;
	stasis_object_unpin(member, ret_gone);
}

static void object_unmapped(struct stasis_object *object, uint64_t address, uint64_t bytes)
	REQUIRES(stasis_registry.mutex)
{
	for (struct stasis_binding *binding = object->bindings; binding; binding = binding->next) {
		if (is_native(binding) && !binding->is_unsupported &&
		    binding->address < address + bytes &&
		    address < binding->address + binding->bytes) {
			binding->is_unsupported = true;
			stasis_registry.generation++;
		}
	}
}

void stasis_bindings_unmapped(uint64_t address, uint64_t bytes)
{
	stasis_registry_lock();
	if (stasis_registry.native_binding_count > 0) {
		for (struct stasis_object *object = stasis_registry.first; object;
		     object = object->next)
			object_unmapped(object, address, bytes);
	}
	stasis_registry_unlock();
}

uint64_t stasis_binding_count_unsupported(const struct stasis_object *object)
{
	uint64_t count = 0;

	for (const struct stasis_binding *binding = object->bindings; binding;
	     binding = binding->next)
		count += binding->is_unsupported;
	return count;
}

void stasis_multicast_free(struct stasis_object *object)
{
	while (object->team) {
		struct stasis_team_device *next = object->team->next;

		free(object->team);
		object->team = next;
	}
	while (object->bindings) {
		struct stasis_binding *next = object->bindings->next;

		free(object->bindings);
		object->bindings = next;
	}
}
