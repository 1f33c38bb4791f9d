/*
 * Pools that processes share: the pool's own descriptor, and pointers of its allocations by name. An
 * imported pool can only import pointers; its memory belongs to the process that made it.
 */

#include "export.h"
#include "ipc_memory.h"
#include "pool.h"
#include "storage.h"

#include <string.h>
#include <unistd.h>

static CUresult export_pool(int *ret_fd, CUmemoryPool handle, CUmemAllocationHandleType type,
			    unsigned long long flags)
{
	struct sim_pool *pool = NULL;
	struct sim_export export = {.kind = SIM_EXPORT_POOL};
	CLEANUP(fd) int empty_fd = -1; /* an export carries a file; a pool has none of its own */
	CUresult result;

	if (ret_fd == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_pool_get(handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (pool->is_imported || (pool->properties.handleTypes & type) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	export.handle_types = pool->properties.handleTypes;
	export.location_type = CU_MEM_LOCATION_TYPE_DEVICE;
	export.physical_device = sim_core.devices[pool->device].physical;
	export.offset = pool->id;
	if (sim_storage_open("sim-gpu-pool", 0, &empty_fd) != 0 ||
	    sim_export_make(&export, empty_fd, -1, ret_fd) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolExportToShareableHandle(void *ret_shareable, CUmemoryPool pool,
						  CUmemAllocationHandleType type,
						  unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       export_pool(ret_shareable, pool, type, flags));
}

static CUresult import_pool(CUmemoryPool *ret_pool, int fd, CUmemAllocationHandleType type,
			    unsigned long long flags)
{
	CLEANUP(fd) int empty_fd = -1;
	CLEANUP(fd) int claim_fd = -1;
	CUmemPoolProps properties = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	struct sim_pool *pool = NULL;
	struct sim_export export;
	CUresult result;

	if (ret_pool == NULL || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_export_open(fd, SIM_EXPORT_POOL, &export, &empty_fd, &claim_fd) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_core_find_device_locked(export.physical_device, &properties.location.id);
	if (result == CUDA_SUCCESS)
		result = sim_pool_new(&properties, ret_pool);
	if (result == CUDA_SUCCESS)
		result = sim_pool_get(*ret_pool, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	pool->is_imported = true;
	pool->id = export.offset;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *ret_pool, void *shareable,
						    CUmemAllocationHandleType type,
						    unsigned long long flags)
{
	/* The descriptor itself, not a pointer to it. */
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       import_pool(ret_pool, (int)(intptr_t)shareable, type, flags));
}

static CUresult export_pointer(CUmemPoolPtrExportData *ret_data, CUdeviceptr pointer)
{
	const struct sim_allocation *allocation = sim_allocation_find(pointer);
	const struct sim_pool *pool = allocation != NULL ? allocation->pool : NULL;
	struct sim_ipc_name name;
	CUresult result;

	if (ret_data == NULL || pool == NULL || allocation->kind != SIM_ALLOCATION_POOL ||
	    pool->properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_ipc_name_allocation(allocation, &name);
	if (result != CUDA_SUCCESS)
		return result;
	name.pool = (uint32_t)pool->id;
	memcpy(ret_data, &name, sizeof(name));
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *ret_data, CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, export_pointer(ret_data, pointer));
}

static CUresult import_pointer(CUdeviceptr *ret_pointer, CUmemoryPool handle,
			       const CUmemPoolPtrExportData *data)
{
	struct sim_allocation *allocation = NULL;
	struct sim_pool *pool = NULL;
	struct sim_ipc_name name;
	CUresult result;

	if (ret_pointer == NULL || data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_pool_get(handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&name, data, sizeof(name));
	if (!pool->is_imported || name.pool != (uint32_t)pool->id)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_ipc_open_allocation(&name, &allocation);
	if (result != CUDA_SUCCESS)
		return result;
	/* Freed by cuMemFree or cuMemFreeAsync, as what the pool allocates itself. */
	allocation->is_pool_import = true;
	*ret_pointer = allocation->span.start;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolImportPointer(CUdeviceptr *ret_pointer, CUmemoryPool pool,
					CUmemPoolPtrExportData *data)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       import_pointer(ret_pointer, pool, data));
}
