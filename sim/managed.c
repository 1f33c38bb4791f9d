/*
 * Managed memory: a file of its own, mapped at its address for the CPU and open to every device. It
 * takes nothing of a GPU, since it could be anywhere.
 */

#include "allocation.h"
#include "capture.h"

static CUresult place(struct sim_memory *memory, uint64_t *ret_start)
{
	struct sim_range *range = NULL;
	CUresult result = sim_address_place(memory, &range);

	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < SIM_DEVICES_MAX; i++)
		range->device_rights[i] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	if (!sim_breaks("managed_is_seen_by_both"))
		range->host_rights = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	*ret_start = range->span.start;
	result = sim_address_show(range);
	if (result != CUDA_SUCCESS)
		sim_address_displace(*ret_start);
	return result;
}

static CUresult allocate(CUdeviceptr *ret_pointer, size_t bytes, unsigned flags)
{
	struct sim_context *context = sim_context_current();
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_MANAGED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device},
	};
	struct sim_allocation *allocation = NULL;
	struct sim_memory *memory = NULL;
	uint64_t start = 0;
	CUresult result;

	if (ret_pointer == NULL || bytes == 0 || bytes > SIM_WINDOW_END - SIM_WINDOW_START ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_capture_check_unsafe();
	if (result == CUDA_SUCCESS)
		result = sim_memory_new(SIM_MEMORY_MANAGED, &properties,
					sim_round_up(bytes, SIM_GRANULARITY), &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = place(memory, &start);
	sim_memory_unref(memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_allocation_add(SIM_ALLOCATION_MANAGED, start, bytes, context, &allocation);
	if (result != CUDA_SUCCESS) {
		sim_address_displace(start);
		return result;
	}
	allocation->flags = flags;
	*ret_pointer = start;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemAllocManaged(CUdeviceptr *ret_pointer, size_t bytes, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       allocate(ret_pointer, bytes, flags));
}
