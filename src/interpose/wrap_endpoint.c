/*
 * The handlers of logical endpoints, to which allocations are bound by their handles. Neither endpoints nor what is
 * bound to them is recorded, so a process that has made or imported one cannot be captured.
 */

#include "interpose/handlers.h"
#include "interpose/objects.h"
#include "interpose/registry.h"

/* The driver's signature. NOLINTNEXTLINE(readability-function-size) */
CUresult stasis_handle_cuLogicalEndpointBindMem(stasis_endpoint_bind *target, uint32_t endpoint,
						CUdevice device, uint64_t offset,
						CUmemGenericAllocationHandle handle,
						uint64_t memory_offset, uint64_t bytes,
						unsigned long long flags)
{
	struct stasis_use use;
	CUresult result;

	if (!stasis_use_begin(handle, &use))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(endpoint, device, offset, use.driver_handle, memory_offset, bytes, flags);
	stasis_use_end(&use);
	return result;
}

CUresult stasis_handle_cuLogicalEndpointCreate(CUresult (*target)(uint32_t, const void *),
					       uint32_t endpoint, const void *prop)
{
	CUresult result = target(endpoint, prop);

	if (result == CUDA_SUCCESS)
		stasis_registry_note_endpoint();
	return result;
}

CUresult
stasis_handle_cuLogicalEndpointImport(CUresult (*target)(uint32_t, const void *, unsigned int),
				      uint32_t endpoint, const void *shareable, unsigned int type)
{
	CUresult result = target(endpoint, shareable, type);

	if (result == CUDA_SUCCESS)
		stasis_registry_note_endpoint();
	return result;
}
