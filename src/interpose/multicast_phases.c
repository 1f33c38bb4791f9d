/*
 * The phases in which multicast objects are taken apart and put together again, one barrier after the other, since a
 * bind waits in the driver until every process of the team has added its devices. The gate is shut. What is bound is up
 * all the while: it is given up after multicast, and taken back before it.
 *
 * Whatever fails leaves each device, binding, mapping and handle marked as it is, up or down, so that the phase that
 * undoes it goes on from there.
 */

#include "base/clock.h"
#include "driver/cuda_error.h"
#include "interpose/calls.h"
#include "interpose/descriptors.h"
#include "interpose/multicast.h"
#include "interpose/objects.h"
#include "interpose/peer.h"
#include "interpose/phases.h"

typedef int object_function(const struct stasis_calls *calls, struct stasis_object *object,
			    struct stasis_error *err);

/* The objects are those of the registry's list, which nobody changes while the gate is shut. */
static struct stasis_object *object_first(void)
{
	struct stasis_object *object;

	stasis_registry_lock();
	object = stasis_registry.first;
	stasis_registry_unlock();
	while (object && object->kind != STASIS_OBJECT_MULTICAST)
		object = object->next;
	return object;
}

static struct stasis_object *object_next(const struct stasis_object *object)
{
	struct stasis_object *next = object->next;

	while (next && next->kind != STASIS_OBJECT_MULTICAST)
		next = next->next;
	return next;
}

static bool has_multicast(const struct stasis_calls *calls)
{
	return calls && calls->cuMulticastCreate && calls->cuMulticastAddDevice &&
	       calls->cuMulticastBindMem && calls->cuMulticastBindAddr && calls->cuMulticastUnbind;
}

/* Each object in turn, until one fails, which is named. */
static int objects_do(object_function *function, struct stasis_wire_done *ret_done,
		      struct stasis_error *err)
{
	const struct stasis_calls *calls = stasis_calls_get();
	struct stasis_wire_done done = {.bytes = 0};
	char text[STASIS_ID_TEXT_BYTES];

	for (struct stasis_object *object = object_first(); object; object = object_next(object)) {
		if (!has_multicast(calls))
			return stasis_fail(err, STASIS_SUSPENDED,
					   "the driver of this process has no multicast");
		if (function(calls, object, err) != 0) {
			stasis_error_context(err, "multicast object %s",
					     stasis_id_format(&object->id, text));
			return -1;
		}
		done.objects++;
		done.bytes += object->bytes;
	}
	*ret_done = done;
	return 0;
}

/* ---- taking apart ---- */

static int bindings_take_down(const struct stasis_calls *calls, struct stasis_object *object,
			      struct stasis_error *err)
{
	for (struct stasis_binding *binding = object->bindings; binding; binding = binding->next) {
		CUresult result;

		if (!binding->is_up)
			continue;
		if (binding->is_unsupported)
			return stasis_fail(err, STASIS_REFUSED,
					   "what is bound at %llu cannot be bound again: it is "
					   "memory without descriptors",
					   (unsigned long long)binding->offset);
		result = calls->cuMulticastUnbind(object->driver_handle, binding->device,
						  binding->offset, binding->bytes);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_REFUSED, result,
						"unbind %llu bytes at %llu of device %d",
						(unsigned long long)binding->bytes,
						(unsigned long long)binding->offset,
						binding->device);
		binding->is_up = false;
	}
	return 0;
}

static void handle_drop(struct stasis_object *object)
{
	for (struct stasis_team_device *device = object->team; device; device = device->next)
		device->is_up = false;
	stasis_registry_lock();
	object->has_driver_handle = false;
	stasis_registry.generation++;
	stasis_registry_unlock();
}

/* A descriptor that we still had of it would keep the driver's object alive behind its last handle. */
static int object_take_down(const struct stasis_calls *calls, struct stasis_object *object,
			    struct stasis_error *err)
{
	CUresult result;

	stasis_descriptors_close(&object->descriptor);
	if (stasis_object_unmap(calls, object, err) != 0 ||
	    bindings_take_down(calls, object, err) != 0)
		return -1;
	if (!object->has_driver_handle)
		return 0;
	result = calls->cuMemRelease(object->driver_handle);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "release it");
	handle_drop(object);
	return 0;
}

int stasis_phase_prepare_multicast(struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	return objects_do(object_take_down, ret_done, err);
}

/* ---- putting together ---- */

static void handle_take(struct stasis_object *object, CUmemGenericAllocationHandle handle)
{
	stasis_registry_lock();
	object->driver_handle = handle;
	object->has_driver_handle = true;
	stasis_registry.generation++;
	stasis_registry_unlock();
}

/*
 * What a failed PREPARE_MULTICAST has left is taken down first, everywhere: an importer that kept a part of the old
 * object would have it for the new one.
 */
static int object_create(const struct stasis_calls *calls, struct stasis_object *object,
			 struct stasis_error *err)
{
	CUmemGenericAllocationHandle handle;
	CUresult result;

	if (object_take_down(calls, object, err) != 0) {
		stasis_error_worsen(err, STASIS_SUSPENDED);
		return -1;
	}
	if (object->is_importer)
		return 0;
	/* As it was asked for: the driver rounds up again. */
	result = calls->cuMulticastCreate(&handle, &object->multicast);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(
			err, STASIS_SUSPENDED, result, "create it for %u devices and %llu bytes",
			object->multicast.numDevices, (unsigned long long)object->bytes);
	handle_take(object, handle);
	return 0;
}

int stasis_phase_restore_multicast_creators(struct stasis_wire_done *ret_done,
					    struct stasis_error *err)
{
	return objects_do(object_create, ret_done, err);
}

static int descriptor_import(const struct stasis_calls *calls, struct stasis_object *object, int fd,
			     struct stasis_error *err)
{
	CUmemGenericAllocationHandle handle;
	CUresult result = calls->cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_SUSPENDED, result, "import it");
	handle_take(object, handle);
	return 0;
}

static int object_import(const struct stasis_calls *calls, struct stasis_object *object,
			 struct stasis_error *err)
{
	uint64_t bytes;
	int result;
	int fd;

	if (!object->is_importer || object->has_driver_handle)
		return 0;
	if (stasis_peer_fetch(&object->creator, &object->id,
			      stasis_clock_now_ns() + STASIS_PEER_FETCH_NS, &fd, &bytes, err) != 0)
		return -1;
	if (bytes == object->bytes)
		result = descriptor_import(calls, object, fd, err);
	else
		result = stasis_fail(err, STASIS_SUSPENDED,
				     "its creator gave one of %llu bytes in place of %llu",
				     (unsigned long long)bytes, (unsigned long long)object->bytes);
	stasis_descriptors_close(&fd);
	return result;
}

int stasis_phase_restore_multicast_importers(struct stasis_wire_done *ret_done,
					     struct stasis_error *err)
{
	return objects_do(object_import, ret_done, err);
}

static int devices_add(const struct stasis_calls *calls, struct stasis_object *object,
		       struct stasis_error *err)
{
	for (struct stasis_team_device *device = object->team; device; device = device->next) {
		CUresult result;

		if (device->is_up)
			continue;
		result = calls->cuMulticastAddDevice(object->driver_handle, device->ordinal);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_SUSPENDED, result,
						"add device %d to its team", device->ordinal);
		device->is_up = true;
	}
	return 0;
}

int stasis_phase_restore_multicast_devices(struct stasis_wire_done *ret_done,
					   struct stasis_error *err)
{
	return objects_do(devices_add, ret_done, err);
}

/*
 * By the same call as the program's, but for an address of memory that is ours: that may be mapped elsewhere by now,
 * and the binding is of the memory.
 */
static CUresult memory_bind(const struct stasis_calls *calls, const struct stasis_object *object,
			    const struct stasis_binding *binding)
{
	if (binding->call_version == 1)
		return calls->cuMulticastBindMem(
			object->driver_handle, binding->offset, binding->member->driver_handle,
			binding->member_offset, binding->bytes, binding->flags);
	if (!calls->cuMulticastBindMem_v2)
		return CUDA_ERROR_NOT_FOUND;
	return calls->cuMulticastBindMem_v2(object->driver_handle, binding->device, binding->offset,
					    binding->member->driver_handle, binding->member_offset,
					    binding->bytes, binding->flags);
}

static CUresult address_bind(const struct stasis_calls *calls, const struct stasis_object *object,
			     const struct stasis_binding *binding)
{
	if (binding->call_version == 1)
		return calls->cuMulticastBindAddr(object->driver_handle, binding->offset,
						  binding->address, binding->bytes, binding->flags);
	if (!calls->cuMulticastBindAddr_v2)
		return CUDA_ERROR_NOT_FOUND;
	return calls->cuMulticastBindAddr_v2(object->driver_handle, binding->device,
					     binding->offset, binding->address, binding->bytes,
					     binding->flags);
}

static int bindings_bind(const struct stasis_calls *calls, struct stasis_object *object,
			 struct stasis_error *err)
{
	for (struct stasis_binding *binding = object->bindings; binding; binding = binding->next) {
		CUresult result;

		if (binding->is_up)
			continue;
		if (binding->member && !binding->member->has_driver_handle)
			return stasis_fail(err, STASIS_SUSPENDED,
					   "what was bound at %llu is not back yet",
					   (unsigned long long)binding->offset);
		result = binding->member ? memory_bind(calls, object, binding)
					 : address_bind(calls, object, binding);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_SUSPENDED, result,
						"bind %llu bytes of device %d at %llu",
						(unsigned long long)binding->bytes, binding->device,
						(unsigned long long)binding->offset);
		binding->is_up = true;
	}
	return 0;
}

static int object_bind(const struct stasis_calls *calls, struct stasis_object *object,
		       struct stasis_error *err)
{
	if (bindings_bind(calls, object, err) != 0)
		return -1;
	return stasis_object_map_again(calls, object, err);
}

int stasis_phase_restore_multicast_bindings(struct stasis_wire_done *ret_done,
					    struct stasis_error *err)
{
	return objects_do(object_bind, ret_done, err);
}
