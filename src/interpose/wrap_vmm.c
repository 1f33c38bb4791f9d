/*
 * The handlers of the driver's virtual memory calls: translate the handle, call, record. Room for the record is
 * had before the driver is asked, so that a want of memory is an error like the driver's own and leaves
 * nothing behind. Calls that concern nothing of ours go through as they are.
 */

#include <errno.h>

#include "driver/abi.h"
#include "interpose/calls.h"
#include "interpose/control.h"
#include "interpose/devices.h"
#include "interpose/handlers.h"
#include "interpose/identity.h"
#include "interpose/multicast.h"
#include "interpose/objects.h"
#include "interpose/registry.h"

/* ---- create ---- */

static bool is_kept_by_us(const CUmemAllocationProp *prop)
{
	return prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	       (prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE &&
		prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

static CUresult create_recorded(__typeof__(cuMemCreate) *target,
				CUmemGenericAllocationHandle *ret_handle, size_t bytes,
				const CUmemAllocationProp *prop)
{
	const struct stasis_identity *identity = stasis_identity_get();
	struct stasis_object *object = stasis_object_new(STASIS_OBJECT_ALLOCATION);
	CUmemAllocationProp asked = *prop;
	CUresult result;

	if (!object || !identity || stasis_id_random(&object->id, NULL) != 0) {
		if (object)
			stasis_object_free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	result = target(&object->driver_handle, bytes, &asked, 0);
	if (result != CUDA_SUCCESS) {
		stasis_object_free(object);
		return result;
	}
	object->has_driver_handle = true;
	object->creator = identity->participant;
	object->bytes = bytes;
	object->prop = *prop;
	stasis_device_uuid(&prop->location, &object->device);
	stasis_registry_lock();
	*ret_handle = stasis_object_add(object);
	stasis_registry_unlock();
	return CUDA_SUCCESS;
}

CUresult stasis_handle_cuMemCreate(__typeof__(cuMemCreate) *target,
				   CUmemGenericAllocationHandle *ret_handle, size_t bytes,
				   const CUmemAllocationProp *prop, unsigned long long flags)
{
	stasis_control_start();
	/* What the driver refuses, it refuses. */
	if (!ret_handle || !prop || flags != 0)
		return target(ret_handle, bytes, prop, flags);
	if (is_kept_by_us(prop))
		return create_recorded(target, ret_handle, bytes, prop);
	/*
	 * Fabric handles cannot be carried. Libraries that try them take POSIX descriptors where they are
	 * refused, so nothing has been made yet when we say so.
	 */
	if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return target(ret_handle, bytes, prop, flags);
}

/* ---- handles ---- */

CUresult stasis_handle_cuMemRelease(__typeof__(cuMemRelease) *target,
				    CUmemGenericAllocationHandle handle)
{
	struct stasis_handle *found;
	struct stasis_gone gone;

	if (!stasis_handle_is_virtual(handle))
		return target(handle);
	stasis_registry_lock();
	found = stasis_handle_find(handle);
	if (found)
		stasis_handle_release(found, &gone);
	stasis_registry_unlock();
	return found ? stasis_object_end(&gone, target) : CUDA_ERROR_INVALID_VALUE;
}

CUresult stasis_handle_cuMemRetainAllocationHandle(__typeof__(cuMemRetainAllocationHandle) *target,
						   CUmemGenericAllocationHandle *ret_handle,
						   void *address)
{
	struct stasis_mapping *mapping;

	stasis_registry_lock();
	mapping = ret_handle ? stasis_mapping_at((uintptr_t)address) : NULL;
	if (mapping) {
		mapping->handle->count++;
		mapping->object->handle_count++;
		stasis_registry.generation++;
		*ret_handle = mapping->handle->value;
	}
	stasis_registry_unlock();
	return mapping ? CUDA_SUCCESS : target(ret_handle, address);
}

CUresult stasis_handle_cuMemGetAllocationPropertiesFromHandle(
	__typeof__(cuMemGetAllocationPropertiesFromHandle) *target, CUmemAllocationProp *ret_prop,
	CUmemGenericAllocationHandle handle)
{
	struct stasis_use use;
	CUresult result;

	if (!stasis_use_begin(handle, &use))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(ret_prop, use.driver_handle);
	/* As it was asked for: what is made exportable for our sake does not show. */
	if (result == CUDA_SUCCESS && use.object && use.object->kind == STASIS_OBJECT_ALLOCATION)
		ret_prop->requestedHandleTypes = use.handle->is_import
							 ? CU_MEM_HANDLE_TYPE_NONE
							 : use.object->prop.requestedHandleTypes;
	stasis_use_end(&use);
	return result;
}

/* ---- mappings ---- */

static CUresult map_recorded(__typeof__(cuMemMap) *target, struct stasis_mapping *mapping,
			     const struct stasis_use *use)
{
	CUresult result = target(mapping->address, mapping->bytes, mapping->offset,
				 use->driver_handle, mapping->flags);

	if (result != CUDA_SUCCESS) {
		stasis_mapping_free(mapping);
		return result;
	}
	mapping->object = use->object;
	mapping->handle = use->handle;
	mapping->is_mapped = true;
	mapping->is_up = true;
	stasis_registry_lock();
	stasis_mapping_add(mapping);
	stasis_registry_unlock();
	return CUDA_SUCCESS;
}

CUresult stasis_handle_cuMemMap(__typeof__(cuMemMap) *target, CUdeviceptr address, size_t bytes,
				size_t offset, CUmemGenericAllocationHandle handle,
				unsigned long long flags)
{
	struct stasis_mapping *mapping;
	struct stasis_use use;
	CUresult result;

	if (!stasis_handle_is_virtual(handle))
		return target(address, bytes, offset, handle, flags);
	if (!stasis_use_begin(handle, &use))
		return CUDA_ERROR_INVALID_VALUE;
	mapping = stasis_mapping_new();
	if (mapping) {
		mapping->address = address;
		mapping->bytes = bytes;
		mapping->offset = offset;
		mapping->flags = flags;
	}
	result = mapping ? map_recorded(target, mapping, &use) : CUDA_ERROR_OUT_OF_MEMORY;
	stasis_use_end(&use);
	return result;
}

/*
 * Takes the mappings that lie wholly in the range out of the registry, as a list by `next`. Before the driver is
 * asked: afterwards another thread may have mapped something else there already.
 */
static struct stasis_mapping *mappings_take(uint64_t address, uint64_t bytes)
{
	struct stasis_mapping *list = NULL;
	struct stasis_mapping *mapping;

	stasis_registry_lock();
	for (mapping = stasis_mapping_from(address); mapping && mapping->address - address < bytes;
	     mapping = stasis_mapping_from(address)) {
		uint64_t end = mapping->address - address + mapping->bytes;

		if (end > bytes)
			break;
		address += end;
		bytes -= end;
		stasis_mapping_remove(mapping);
		/* Kept from going while it is out. */
		stasis_object_pin(mapping->object);
		mapping->handle->mapping_count++;
		mapping->next = list;
		list = mapping;
	}
	stasis_registry_unlock();
	return list;
}

static void mapping_give_back(struct stasis_mapping *mapping, bool is_gone,
			      struct stasis_gone *ret_gone)
{
	struct stasis_object *object = mapping->object;

	stasis_registry_lock();
	mapping->handle->mapping_count--;
	if (is_gone) {
		object->pin_count--;
		stasis_mapping_drop(mapping, ret_gone);
	} else {
		stasis_mapping_add(mapping);
		stasis_object_unpin(object, ret_gone);
	}
	stasis_registry_unlock();
}

CUresult stasis_handle_cuMemUnmap(__typeof__(cuMemUnmap) *target, CUdeviceptr address, size_t bytes)
{
	struct stasis_mapping *mapping = mappings_take(address, bytes);
	CUresult result = target(address, bytes);

	if (result == CUDA_SUCCESS)
		stasis_bindings_unmapped(address, bytes);
	while (mapping) {
		struct stasis_mapping *next = mapping->next;
		struct stasis_gone gone;

		mapping_give_back(mapping, result == CUDA_SUCCESS, &gone);
		(void)stasis_object_end(&gone, NULL);
		mapping = next;
	}
	return result;
}

/* ---- access ---- */

static bool access_record(uint64_t address, uint64_t bytes, const CUmemAccessDesc *access,
			  size_t count) REQUIRES(stasis_registry.mutex)
{
	bool is_recorded = true;
	struct stasis_mapping *mapping;

	for (mapping = stasis_mapping_from(address); mapping && mapping->address - address < bytes;
	     mapping = stasis_mapping_from(address)) {
		uint64_t end = mapping->address - address + mapping->bytes;

		for (size_t i = 0; i < count; i++)
			is_recorded = stasis_mapping_grant(mapping, &access[i]) && is_recorded;
		if (end >= bytes)
			break;
		address += end;
		bytes -= end;
	}
	stasis_registry.generation++;
	return is_recorded;
}

CUresult stasis_handle_cuMemSetAccess(__typeof__(cuMemSetAccess) *target, CUdeviceptr address,
				      size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	CUresult result = target(address, bytes, access, count);
	bool is_recorded;

	if (result != CUDA_SUCCESS)
		return result;
	stasis_registry_lock();
	is_recorded = access_record(address, bytes, access, count);
	stasis_registry_unlock();
	if (!is_recorded)
		stasis_registry_damage();
	return CUDA_SUCCESS;
}
