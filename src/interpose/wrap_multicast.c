/*
 * The handlers of multicast: translate, call, record. A bind may wait in the driver until every process of the team has
 * added its devices, so nothing is locked meanwhile. Room for a record is had before the driver is asked.
 */

#include <stdlib.h>

#include "base/cleanup.h"
#include "interpose/calls.h"
#include "interpose/control.h"
#include "interpose/devices.h"
#include "interpose/handlers.h"
#include "interpose/identity.h"
#include "interpose/multicast.h"
#include "interpose/objects.h"

static const struct stasis_id no_device;

/* Whether it is recorded here: neither another's handle nor an object that no one here has made. */
static bool is_recorded(const struct stasis_use *use)
{
	return use->object && use->object->kind == STASIS_OBJECT_MULTICAST;
}

/* ---- create ---- */

static bool is_carried(const CUmulticastObjectProp *prop)
{
	return (prop->handleTypes &
		~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0;
}

static CUresult create_recorded(__typeof__(cuMulticastCreate) *target,
				CUmemGenericAllocationHandle *ret_handle,
				const CUmulticastObjectProp *prop)
{
	const struct stasis_identity *identity = stasis_identity_get();
	struct stasis_object *object = stasis_object_new(STASIS_OBJECT_MULTICAST);
	CUresult result;

	if (!object || !identity || stasis_id_random(&object->id, NULL) != 0) {
		if (object)
			stasis_object_free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* What the driver writes where it fails is for the program to see. */
	result = target(ret_handle, prop);
	if (result != CUDA_SUCCESS) {
		stasis_object_free(object);
		return result;
	}
	object->driver_handle = *ret_handle;
	object->has_driver_handle = true;
	object->creator = identity->participant;
	object->multicast = *prop;
	object->bytes = prop->size;
	stasis_registry_lock();
	*ret_handle = stasis_object_add(object);
	stasis_registry_unlock();
	return CUDA_SUCCESS;
}

CUresult stasis_handle_cuMulticastCreate(__typeof__(cuMulticastCreate) *target,
					 CUmemGenericAllocationHandle *ret_handle,
					 const CUmulticastObjectProp *prop)
{
	stasis_control_start();
	if (!ret_handle || !prop)
		return target(ret_handle, prop);
	/* As for memory: libraries that try fabric handles take descriptors where they are refused. */
	if (!is_carried(prop))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create_recorded(target, ret_handle, prop);
}

/* ---- devices ---- */

static void device_record(struct stasis_object *object, struct stasis_team_device *device)
{
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal};

	device->is_up = true;
	stasis_device_uuid(&location, &device->uuid);
	if (stasis_id_equal(&device->uuid, &no_device)) {
		free(device);
		stasis_registry_damage();
		return;
	}
	stasis_registry_lock();
	stasis_team_add(object, device);
	stasis_registry_unlock();
}

CUresult stasis_handle_cuMulticastAddDevice(__typeof__(cuMulticastAddDevice) *target,
					    CUmemGenericAllocationHandle handle, CUdevice device)
{
	CLEANUP(free) struct stasis_team_device *record = stasis_team_device_new();
	struct stasis_use object;
	CUresult result;

	if (!record)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!stasis_use_begin(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	record->ordinal = device;
	result = target(object.driver_handle, device);
	if (result == CUDA_SUCCESS && is_recorded(&object))
		device_record(object.object, ptr_steal(&record));
	stasis_use_end(&object);
	return result;
}

/* ---- binds ---- */

/* A bind while the driver is at it. */
struct bind {
	struct stasis_use object;
	struct stasis_use member; /* without an object: memory that is none of ours */
	struct stasis_binding *binding;
};

static CUresult bind_begin(struct bind *bind, CUmemGenericAllocationHandle handle)
{
	*bind = (struct bind){.binding = stasis_binding_new()};
	if (!bind->binding)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (stasis_use_begin(handle, &bind->object))
		return CUDA_SUCCESS;
	free(bind->binding);
	return CUDA_ERROR_INVALID_VALUE;
}

/* The device that the driver takes where the call names none: that of the memory. */
static void device_find(struct stasis_binding *binding)
{
	const struct stasis_calls *calls = stasis_calls_get();
	int ordinal = -1;

	if (binding->call_version > 1)
		return;
	if (binding->member && binding->member->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		binding->device = binding->member->prop.location.id;
		return;
	}
	if (binding->address != 0 && calls && calls->cuPointerGetAttribute &&
	    calls->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					 binding->address) == CUDA_SUCCESS)
		binding->device = ordinal;
	else
		binding->is_unsupported = true;
}

static CUresult bind_end(struct bind *bind, CUresult result)
{
	if (result == CUDA_SUCCESS && is_recorded(&bind->object)) {
		if (bind->member.object && bind->member.object->kind == STASIS_OBJECT_ALLOCATION)
			bind->binding->member = bind->member.object;
		else if (bind->binding->address == 0)
			bind->binding->is_unsupported = true;
		device_find(bind->binding);
		bind->binding->is_up = true;
		stasis_registry_lock();
		stasis_binding_add(bind->object.object, ptr_steal(&bind->binding));
		stasis_registry_unlock();
	}
	free(bind->binding);
	stasis_use_end(&bind->member);
	stasis_use_end(&bind->object);
	return result;
}

static CUresult memory_begin(struct bind *bind, CUmemGenericAllocationHandle handle,
			     CUmemGenericAllocationHandle member_handle)
{
	CUresult result = bind_begin(bind, handle);

	if (result != CUDA_SUCCESS || stasis_use_begin(member_handle, &bind->member))
		return result;
	return bind_end(bind, CUDA_ERROR_INVALID_VALUE);
}

CUresult stasis_handle_cuMulticastBindMem(__typeof__(cuMulticastBindMem) *target,
					  CUmemGenericAllocationHandle handle, size_t offset,
					  CUmemGenericAllocationHandle member_handle,
					  size_t member_offset, size_t bytes,
					  unsigned long long flags)
{
	struct bind bind;
	CUresult result = memory_begin(&bind, handle, member_handle);

	if (result != CUDA_SUCCESS)
		return result;
	*bind.binding = (struct stasis_binding){.member_offset = member_offset,
						.offset = offset,
						.bytes = bytes,
						.flags = flags,
						.call_version = 1};
	return bind_end(&bind, target(bind.object.driver_handle, offset, bind.member.driver_handle,
				      member_offset, bytes, flags));
}

/* The driver's signature. NOLINTNEXTLINE(readability-function-size) */
CUresult stasis_handle_cuMulticastBindMem_v2(__typeof__(cuMulticastBindMem_v2) *target,
					     CUmemGenericAllocationHandle handle, CUdevice device,
					     size_t offset,
					     CUmemGenericAllocationHandle member_handle,
					     size_t member_offset, size_t bytes,
					     unsigned long long flags)
{
	struct bind bind;
	CUresult result = memory_begin(&bind, handle, member_handle);

	if (result != CUDA_SUCCESS)
		return result;
	*bind.binding = (struct stasis_binding){.member_offset = member_offset,
						.offset = offset,
						.bytes = bytes,
						.flags = flags,
						.device = device,
						.call_version = 2};
	return bind_end(&bind, target(bind.object.driver_handle, device, offset,
				      bind.member.driver_handle, member_offset, bytes, flags));
}

/* The memory of ours that the range lies in, kept while the driver is at it. */
static void member_find(struct bind *bind)
{
	struct stasis_binding *binding = bind->binding;
	struct stasis_mapping *mapping;
	uint64_t inside;

	stasis_registry_lock();
	mapping = stasis_mapping_at(binding->address);
	inside = mapping ? binding->address - mapping->address : 0;
	if (mapping && binding->bytes <= mapping->bytes - inside) {
		bind->member.object = mapping->object;
		bind->member.handle = mapping->handle;
		stasis_object_pin(mapping->object);
		mapping->handle->mapping_count++;
		binding->member_offset = mapping->offset + inside;
	} else {
		/* It begins or ends in memory of ours, and is not all of it. */
		if (!mapping)
			mapping = stasis_mapping_from(binding->address);
		binding->is_unsupported =
			mapping && mapping->address < binding->address + binding->bytes;
	}
	stasis_registry_unlock();
}

static CUresult address_begin(struct bind *bind, CUmemGenericAllocationHandle handle,
			      struct stasis_binding what)
{
	CUresult result = bind_begin(bind, handle);

	if (result != CUDA_SUCCESS)
		return result;
	*bind->binding = what;
	member_find(bind);
	return CUDA_SUCCESS;
}

CUresult stasis_handle_cuMulticastBindAddr(__typeof__(cuMulticastBindAddr) *target,
					   CUmemGenericAllocationHandle handle, size_t offset,
					   CUdeviceptr address, size_t bytes,
					   unsigned long long flags)
{
	struct bind bind;
	CUresult result = address_begin(&bind, handle,
					(struct stasis_binding){.address = address,
								.offset = offset,
								.bytes = bytes,
								.flags = flags,
								.call_version = 1});

	if (result != CUDA_SUCCESS)
		return result;
	return bind_end(&bind, target(bind.object.driver_handle, offset, address, bytes, flags));
}

CUresult stasis_handle_cuMulticastBindAddr_v2(__typeof__(cuMulticastBindAddr_v2) *target,
					      CUmemGenericAllocationHandle handle, CUdevice device,
					      size_t offset, CUdeviceptr address, size_t bytes,
					      unsigned long long flags)
{
	struct bind bind;
	CUresult result = address_begin(&bind, handle,
					(struct stasis_binding){.address = address,
								.offset = offset,
								.bytes = bytes,
								.flags = flags,
								.device = device,
								.call_version = 2});

	if (result != CUDA_SUCCESS)
		return result;
	return bind_end(&bind,
			target(bind.object.driver_handle, device, offset, address, bytes, flags));
}

/* ---- unbind ---- */

static void unbound_record(struct stasis_object *object, CUdevice device, uint64_t offset,
			   uint64_t bytes)
{
	struct stasis_gone gone = {.object = NULL};
	struct stasis_binding *binding;

	stasis_registry_lock();
	binding = stasis_binding_take(object, device, offset, bytes);
	if (binding)
		stasis_binding_drop(binding, &gone);
	stasis_registry_unlock();
	(void)stasis_object_end(&gone, NULL);
	/* A part of one, which drivers refuse. */
	if (!binding)
		stasis_registry_damage();
}

CUresult stasis_handle_cuMulticastUnbind(__typeof__(cuMulticastUnbind) *target,
					 CUmemGenericAllocationHandle handle, CUdevice device,
					 size_t offset, size_t bytes)
{
	struct stasis_use object;
	CUresult result;

	if (!stasis_use_begin(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device, offset, bytes);
	if (result == CUDA_SUCCESS && is_recorded(&object))
		unbound_record(object.object, device, offset, bytes);
	stasis_use_end(&object);
	return result;
}
