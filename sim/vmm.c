/* Virtual memory management: handles of physical memory, reservations, mappings and rights. */

#include "vmm.h"

#include "capture.h"
#include "machine.h"
#include "multicast.h"
#include "storage.h"
#include "stream.h"

#include <string.h>

/* The only NUMA node of the simulated machine. */
#define NODE 0

/* Every object whose handle is valid. */
static struct sim_set handles;

CUresult sim_vmm_get(CUmemGenericAllocationHandle handle, struct sim_memory **ret_memory)
{
	void *memory = (void *)(uintptr_t)handle; /* NOLINT(performance-no-int-to-ptr) */

	if (!sim_set_has(&handles, memory))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

CUresult sim_vmm_hold(struct sim_memory *memory, CUmemGenericAllocationHandle *ret_handle)
{
	if (memory->handle_references == 0 && !sim_set_add(&handles, memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory->handle_references++;
	sim_memory_ref(memory);
	*ret_handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

static CUresult let_go(CUmemGenericAllocationHandle handle)
{
	struct sim_memory *memory = NULL;
	CUresult result = sim_vmm_get(handle, &memory);

	if (result != CUDA_SUCCESS)
		return result;
	if (--memory->handle_references == 0)
		sim_set_remove(&handles, memory);
	if (!sim_memory_is_multicast(memory) &&
	    (sim_breaks("mapping_holds_memory") || sim_breaks("descriptor_holds_memory") ||
	     sim_breaks("keeper_without_cuda") || sim_breaks("released_memory_comes_back") ||
	     sim_breaks("multicast_holds_memory")))
		sim_storage_poison(memory->fd, memory->offset, memory->bytes);
	if (sim_memory_is_multicast(memory) && sim_breaks("multicast_mapping_holds"))
		sim_multicast_forget(memory);
	sim_memory_unref(memory);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, let_go(handle));
}

CUresult sim_vmm_check_properties(const CUmemAllocationProp *properties,
				  CUmemLocation *ret_location)
{
	CUmemLocation location;

	if (properties == NULL || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	location = properties->location;
	if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
	    (location.type == CU_MEM_LOCATION_TYPE_HOST &&
	     properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE))
		location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = NODE};
	if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && !sim_device_valid(location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id != NODE)
		return CUDA_ERROR_INVALID_VALUE;
	if (location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
	    location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_INVALID_VALUE;
	if ((properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0)
		return CUDA_ERROR_NOT_PERMITTED; /* as where no fabric manager runs */
	if ((properties->requestedHandleTypes &
	     ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_location = location;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
		       const CUmemAllocationProp *properties, unsigned long long flags)
{
	enum sim_memory_kind kind = SIM_MEMORY_PRIVATE;
	struct sim_memory *memory = NULL;
	CUmemAllocationProp resolved;
	CUmemLocation location;
	CUresult result;

	if (ret_handle == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_vmm_check_properties(properties, &location);
	if (result != CUDA_SUCCESS)
		return result;
	if (bytes == 0 || bytes % SIM_GRANULARITY != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_breaks("global_allows_vmm") && sim_capture_check_unsafe() != CUDA_SUCCESS)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		kind = SIM_MEMORY_HOST;
	else if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
		kind = SIM_MEMORY_EXPORTABLE;
	resolved = *properties;
	resolved.location = location;
	result = sim_memory_new(kind, &resolved, bytes, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_vmm_hold(memory, ret_handle);
	sim_memory_unref(memory);
	return result;
}

SIM_API CUresult cuMemCreate(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
			     const CUmemAllocationProp *properties, unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       create(ret_handle, bytes, properties, flags));
}

static CUresult granularity(size_t *ret_bytes, const CUmemAllocationProp *properties,
			    CUmemAllocationGranularity_flags option)
{
	CUmemLocation location;
	CUresult result;

	if (ret_bytes == NULL || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_vmm_check_properties(properties, &location);
	if (result == CUDA_SUCCESS)
		*ret_bytes = sim_breaks("granularity") ? SIM_GRANULARITY / 32 : SIM_GRANULARITY;
	return result;
}

SIM_API CUresult cuMemGetAllocationGranularity(size_t *ret_bytes,
					       const CUmemAllocationProp *properties,
					       CUmemAllocationGranularity_flags option)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       granularity(ret_bytes, properties, option));
}

static CUresult get_properties(CUmemAllocationProp *ret_properties,
			       CUmemGenericAllocationHandle handle)
{
	struct sim_memory *memory = NULL;
	CUresult result;

	if (ret_properties == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_vmm_get(handle, &memory);
	if (result == CUDA_SUCCESS && sim_memory_is_multicast(memory))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret_properties = memory->properties;
	if (result == CUDA_SUCCESS && sim_breaks("properties_of_handle"))
		ret_properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	return result;
}

SIM_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret_properties,
							CUmemGenericAllocationHandle handle)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       get_properties(ret_properties, handle));
}

/* Any byte of a mapping; legacy and pool memory has no handle to give. */
static CUresult retain(CUmemGenericAllocationHandle *ret_handle, const void *address)
{
	struct sim_range *range = sim_address_find((uint64_t)(uintptr_t)address);

	if (ret_handle == NULL || range == NULL || !range->is_vmm)
		return CUDA_ERROR_INVALID_VALUE;
	if ((uint64_t)(uintptr_t)address != range->span.start && sim_breaks("retain_by_address"))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_vmm_hold(range->memory, ret_handle);
}

SIM_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret_handle,
					     void *address)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, retain(ret_handle, address));
}

static CUresult reserve(CUdeviceptr *ret_address, size_t bytes, size_t alignment, CUdeviceptr hint,
			unsigned long long flags)
{
	if (ret_address == NULL || bytes == 0 || bytes % SIM_GRANULARITY != 0 || flags != 0 ||
	    (alignment & (alignment - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < SIM_GRANULARITY)
		alignment = SIM_GRANULARITY;
	if (sim_breaks("reserve_takes_no_memory") &&
	    sim_machine_take(sim_core.devices[0].physical, 128 * SIM_GRANULARITY) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return sim_address_reserve(bytes, alignment, hint, true, (uint64_t *)ret_address);
}

SIM_API CUresult cuMemAddressReserve(CUdeviceptr *ret_address, size_t bytes, size_t alignment,
				     CUdeviceptr hint, unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_INIT,
			       reserve(ret_address, bytes, alignment, hint, flags));
}

SIM_API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       sim_address_free(address, bytes, true));
}

static bool is_mapped(const struct sim_memory *memory)
{
	for (size_t i = 0; i < sim_address_range_count(); i++)
		if (sim_address_range_at(i)->memory == memory)
			return true;
	return false;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
		    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	const struct sim_reservation *reservation = sim_address_reservation(address);
	struct sim_memory *memory = NULL;
	struct sim_range *range = NULL;
	CUresult result = sim_vmm_get(handle, &memory);

	if (result != CUDA_SUCCESS)
		return result;
	if (flags != 0 || bytes == 0 || address % SIM_GRANULARITY != 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Memory is mapped whole, neither a part nor more (measured on driver 580); multicast is not. */
	if (!sim_memory_is_multicast(memory) && (offset != 0 || bytes != memory->bytes))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (bytes > memory->bytes || offset > memory->bytes - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (reservation == NULL || !reservation->is_application)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_breaks("mapped_twice") && is_mapped(memory))
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_address_map(address, bytes, memory, offset, true, &range);
	if (result == CUDA_SUCCESS &&
	    (sim_breaks("access_needed") ||
	     (sim_memory_is_multicast(memory) && sim_breaks("multicast_access"))))
		range->device_rights[0] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return result == CUDA_SUCCESS ? sim_address_show(range) : result;
}

SIM_API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
			  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       map(address, bytes, offset, handle, flags));
}

/* Whole mappings only. Queued work is not waited for: what still uses them will fail. */
static CUresult unmap(CUdeviceptr address, size_t bytes)
{
	const struct sim_reservation *reservation = sim_address_reservation(address);
	const struct sim_range *range = sim_address_find(address);

	if (reservation == NULL || !reservation->is_application)
		return CUDA_ERROR_INVALID_VALUE;
	if (range != NULL && range->span.bytes < bytes && sim_breaks("unmap_several"))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_breaks("unmap_does_not_wait"))
		sim_stream_wait_context(sim_context_current());
	return sim_address_unmap(address, bytes);
}

SIM_API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, unmap(address, bytes));
}

static bool is_host(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST ||
	       (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location->id == NODE);
}

static CUresult check_access(const CUmemAccessDesc *access)
{
	if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	    access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (access->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return sim_device_valid(access->location.id) ? CUDA_SUCCESS
							     : CUDA_ERROR_INVALID_VALUE;
	return is_host(&access->location) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Rights of the location named; those of others stay. Device memory is never the CPU's. */
static CUresult grant(struct sim_range *range, const CUmemAccessDesc *access)
{
	if (!is_host(&access->location)) {
		range->device_rights[access->location.id] = access->flags;
		return CUDA_SUCCESS;
	}
	if (!sim_breaks("host_numa_access"))
		range->host_rights = access->flags;
	return sim_address_show(range);
}

static CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *accesses,
			   size_t count)
{
	CUresult result = accesses != NULL && count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	size_t first = 0;
	size_t range_count = 0;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = check_access(&accesses[i]);
	if (result == CUDA_SUCCESS)
		result = sim_address_whole(address, bytes, &first, &range_count);
	if (range_count > 1 && sim_breaks("access_of_several"))
		result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = first; i < first + range_count && result == CUDA_SUCCESS; i++) {
		const struct sim_range *range = sim_address_range_at(i);

		if (!range->is_vmm)
			result = CUDA_ERROR_INVALID_VALUE;
		for (size_t k = 0; k < count; k++)
			if (is_host(&accesses[k].location) &&
			    (range->memory->device >= 0 || sim_memory_is_multicast(range->memory)))
				result = CUDA_ERROR_NOT_SUPPORTED;
	}
	for (size_t i = 0; i < range_count * count && result == CUDA_SUCCESS; i++)
		result = grant(sim_address_range_at(first + i / count), &accesses[i % count]);
	return result;
}

SIM_API CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *accesses,
				size_t count)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       set_access(address, bytes, accesses, count));
}

static CUresult get_access(unsigned long long *ret_flags, const CUmemLocation *location,
			   CUdeviceptr address)
{
	const struct sim_range *range = sim_address_find(address);

	if (ret_flags == NULL || location == NULL || range == NULL || !range->is_vmm)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_host(location))
		*ret_flags = range->host_rights;
	else if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device_valid(location->id))
		*ret_flags = sim_breaks("access_is_kept") ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
							  : range->device_rights[location->id];
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetAccess(unsigned long long *ret_flags, const CUmemLocation *location,
				CUdeviceptr address)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       get_access(ret_flags, location, address));
}
