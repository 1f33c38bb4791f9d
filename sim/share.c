/* Memory that leaves the process by descriptor: export, import, and DMA-BUF. */

#include "export.h"
#include "machine.h"
#include "vmm.h"

#include "allocation.h"

#include <string.h>
#include <unistd.h>

#define PAGE 4096ull

static struct sim_export describe(const struct sim_memory *memory, enum sim_export_kind kind)
{
	struct sim_export export = {
		.kind = kind,
		.handle_types = memory->properties.requestedHandleTypes,
		.location_type = memory->properties.location.type,
		.physical_device =
			memory->device >= 0 ? sim_core.devices[memory->device].physical : -1,
		.bytes = memory->bytes,
		.offset = memory->offset,
	};

	memcpy(&export.usage, &memory->properties.allocFlags, sizeof(export.usage));
	return export;
}

/* From its first export on, the memory's account is its own and travels with the descriptors. */
static CUresult claim(struct sim_memory *memory)
{
	if (memory->claim_fd >= 0 || memory->device < 0)
		return CUDA_SUCCESS;
	return sim_machine_claim_own(sim_core.devices[memory->device].physical, memory->bytes,
				     &memory->claim_fd);
}

/* Only what was created here: an imported handle cannot be exported again. */
static CUresult export_memory(int *ret_fd, CUmemGenericAllocationHandle handle,
			      CUmemAllocationHandleType type, unsigned long long flags)
{
	struct sim_memory *memory = NULL;
	struct sim_export export;
	CUresult result;

	if (ret_fd == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_vmm_get(handle, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	if ((memory->properties.requestedHandleTypes & type) == 0 ||
	    memory->kind == SIM_MEMORY_IMPORTED || memory->kind == SIM_MEMORY_MULTICAST_IMPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	result = claim(memory);
	if (result != CUDA_SUCCESS)
		return result;
	export = describe(memory, SIM_EXPORT_MEMORY);
	if (sim_export_make(&export, memory->fd, memory->claim_fd, ret_fd) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (sim_breaks("export_is_descriptor"))
		(void)dup2(memory->fd, *ret_fd);
	if (sim_breaks("descriptor_lets_go"))
		(void)dup(memory->claim_fd);
	memory->exported = true;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemExportToShareableHandle(void *ret_shareable,
					      CUmemGenericAllocationHandle handle,
					      CUmemAllocationHandleType type,
					      unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       export_memory(ret_shareable, handle, type, flags));
}

static CUresult properties_of(const struct sim_export *export, CUmemAllocationProp *ret_properties)
{
	*ret_properties = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = sim_breaks("import_properties")
						? (CUmemAllocationHandleType) export->handle_types
						: CU_MEM_HANDLE_TYPE_NONE,
		.location = {.type = (CUmemLocationType) export->location_type},
	};
	memcpy(&ret_properties->allocFlags, &export->usage, sizeof(export->usage));
	if (export->physical_device < 0)
		return CUDA_SUCCESS;
	return sim_core_find_device_locked(export->physical_device, &ret_properties->location.id);
}

static CUresult import_memory(CUmemGenericAllocationHandle *ret_handle, int fd,
			      CUmemAllocationHandleType type)
{
	CLEANUP(fd) int memory_fd = -1;
	CLEANUP(fd) int claim_fd = -1;
	enum sim_memory_kind kind = SIM_MEMORY_IMPORTED;
	CUmemAllocationProp properties;
	struct sim_memory *memory = NULL;
	struct sim_export export;
	CUresult result;

	if (ret_handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_export_open(fd, SIM_EXPORT_MEMORY, &export, &memory_fd, &claim_fd) != 0)
		return CUDA_ERROR_UNKNOWN;
	result = properties_of(&export, &properties);
	if (sim_export_describes_multicast(&export))
		kind = SIM_MEMORY_MULTICAST_IMPORTED;
	if (kind == SIM_MEMORY_MULTICAST_IMPORTED && sim_breaks("multicast_shared"))
		result = CUDA_ERROR_UNKNOWN;
	if (result == CUDA_SUCCESS)
		result = sim_memory_adopt(kind, &properties, export.bytes, export.offset,
					  fd_steal(&memory_fd), fd_steal(&claim_fd), &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_vmm_hold(memory, ret_handle);
	sim_memory_unref(memory);
	return result;
}

SIM_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret_handle,
						void *shareable, CUmemAllocationHandleType type)
{
	/* The descriptor itself, not a pointer to it. */
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       import_memory(ret_handle, (int)(intptr_t)shareable, type));
}

/* A descriptor that another device's driver could map: it keeps the memory and does nothing else. */
static CUresult dma_buf(int *ret_fd, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
			unsigned long long flags)
{
	const struct sim_range *range = sim_address_find(address);
	const struct sim_allocation *allocation = sim_allocation_find(address);
	struct sim_export export;
	uint64_t end;

	if (ret_fd == NULL || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags > 1 ||
	    range == NULL || bytes == 0 || address % PAGE != 0 || bytes % PAGE != 0)
		return CUDA_ERROR_INVALID_VALUE;
	end = allocation != NULL ? sim_round_up(sim_span_end(&allocation->span), PAGE)
				 : sim_span_end(&range->span);
	if (address + bytes > end || range->memory->device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	export = describe(range->memory, SIM_EXPORT_DMA_BUF);
	if (sim_export_make(&export, range->memory->fd, range->memory->claim_fd, ret_fd) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetHandleForAddressRange(void *ret_handle, CUdeviceptr address, size_t bytes,
					       CUmemRangeHandleType type, unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       dma_buf(ret_handle, address, bytes, type, flags));
}
