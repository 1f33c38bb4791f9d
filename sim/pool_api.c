/* What pools are asked and told: the device's pools, attributes, trimming, access. */

#include "pool.h"

#include <string.h>

static CUresult default_pool(int device, CUmemoryPool *ret_pool)
{
	CUmemPoolProps properties = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};
	CUmemoryPool *pool = &sim_core.devices[device].default_pool;
	CUresult result = CUDA_SUCCESS;

	if (*pool == NULL) {
		result = sim_pool_new(&properties, pool);
		if (result != CUDA_SUCCESS)
			return result;
		((struct sim_pool *)(void *)*pool)->is_default = true;
	}
	*ret_pool = *pool;
	return CUDA_SUCCESS;
}

CUresult sim_pool_current(int device, CUmemoryPool *ret_pool)
{
	if (sim_core.devices[device].current_pool == NULL)
		return default_pool(device, ret_pool);
	*ret_pool = sim_core.devices[device].current_pool;
	return CUDA_SUCCESS;
}

static CUresult device_pool(CUmemoryPool *ret_pool, CUdevice device, bool current)
{
	if (ret_pool == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return current ? sim_pool_current(device, ret_pool) : default_pool(device, ret_pool);
}

SIM_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret_pool, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, device_pool(ret_pool, device, false));
}

SIM_API CUresult cuDeviceGetMemPool(CUmemoryPool *ret_pool, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, device_pool(ret_pool, device, true));
}

static CUresult set_device_pool(CUdevice device, CUmemoryPool handle)
{
	struct sim_pool *pool = NULL;
	CUresult result;

	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = sim_pool_get(handle, &pool);
	if (result == CUDA_SUCCESS && pool->device != device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		sim_core.devices[device].current_pool = handle;
	return result;
}

SIM_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, set_device_pool(device, pool));
}

/* The counters that can be set are the high-water marks, to 0, which means: to the present. */
static CUresult set_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, const void *value)
{
	struct sim_pool *pool = NULL;
	CUresult result = value != NULL ? sim_pool_get(handle, &pool) : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
			*(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->release_threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		pool->reserved_high = pool->used_bytes + pool->kept_bytes;
		return *(const cuuint64_t *)value == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		pool->used_high = pool->used_bytes;
		return *(const cuuint64_t *)value == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SIM_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				       void *value)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       set_attribute(pool, attribute, value));
}

static bool get_bytes(const struct sim_pool *pool, CUmemPool_attribute attribute,
		      cuuint64_t *ret_bytes)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*ret_bytes = pool->release_threshold;
		return true;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*ret_bytes = sim_round_up(pool->used_bytes + pool->kept_bytes, SIM_POOL_CHUNK);
		return true;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*ret_bytes = sim_round_up(pool->reserved_high, SIM_POOL_CHUNK);
		return true;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*ret_bytes = pool->used_bytes;
		return true;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*ret_bytes = pool->used_high;
		return true;
	default:
		return false;
	}
}

static CUresult get_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *ret_value)
{
	struct sim_pool *pool = NULL;
	cuuint64_t bytes = 0;
	CUresult result =
		ret_value != NULL ? sim_pool_get(handle, &pool) : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	if (get_bytes(pool, attribute, &bytes)) {
		memcpy(ret_value, &bytes, sizeof(bytes));
		return CUDA_SUCCESS;
	}
	if (attribute < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	    attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret_value, &pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES],
	       sizeof(int));
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
				       void *ret_value)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       get_attribute(pool, attribute, ret_value));
}

static CUresult trim(CUmemoryPool handle, size_t bytes_to_keep)
{
	struct sim_pool *pool = NULL;
	CUresult result = sim_pool_get(handle, &pool);

	if (result == CUDA_SUCCESS)
		sim_pool_trim(pool, bytes_to_keep);
	return result;
}

SIM_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, trim(pool, bytes_to_keep));
}

static CUresult check_access(const struct sim_pool *pool, const CUmemAccessDesc *access)
{
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(access->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	/* The owner's own rights cannot be taken away. */
	if (access->location.id == pool->device &&
	    access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult set_access(CUmemoryPool handle, const CUmemAccessDesc *accesses, size_t count)
{
	struct sim_pool *pool = NULL;
	CUresult result = sim_pool_get(handle, &pool);

	if (result == CUDA_SUCCESS && (accesses == NULL || count == 0))
		result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = check_access(pool, &accesses[i]);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < count; i++)
		pool->device_rights[accesses[i].location.id] = accesses[i].flags;
	for (size_t i = 0; i < sim_allocation_count(); i++)
		if (sim_allocation_at(i)->pool == pool)
			sim_pool_grant(pool, sim_allocation_at(i));
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *accesses,
				    size_t count)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, set_access(pool, accesses, count));
}

static CUresult get_access(CUmemAccess_flags *ret_flags, CUmemoryPool handle,
			   const CUmemLocation *location)
{
	struct sim_pool *pool = NULL;
	CUresult result = sim_pool_get(handle, &pool);

	if (result != CUDA_SUCCESS)
		return result;
	if (ret_flags == NULL || location == NULL || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_flags = pool->device_rights[location->id];
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolGetAccess(CUmemAccess_flags *ret_flags, CUmemoryPool pool,
				    CUmemLocation *location)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       get_access(ret_flags, pool, location));
}
