/*
 * Stream-ordered allocation; see pool.h. An allocation has its address and its memory at once; a free
 * takes place when its turn in the stream comes.
 */

#include "pool.h"

#include "capture.h"
#include "graph.h"
#include "machine.h"
#include "stream.h"

#include <stdlib.h>

CUresult sim_pool_get(CUmemoryPool handle, struct sim_pool **ret_pool)
{
	if (!sim_set_has(&sim_core.pools, handle))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pool = (struct sim_pool *)(void *)handle;
	return CUDA_SUCCESS;
}

CUresult sim_pool_new(const CUmemPoolProps *properties, CUmemoryPool *ret_pool)
{
	struct sim_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL || !sim_set_add(&sim_core.pools, pool)) {
		free(pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pool->references = 1;
	pool->device = properties->location.id;
	pool->id = sim_core_new_id_locked();
	pool->properties = *properties;
	pool->device_rights[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	for (size_t i = 0; i < ARRAY_COUNT(pool->reuse); i++)
		pool->reuse[i] = 1;
	*ret_pool = (CUmemoryPool)(void *)pool;
	return CUDA_SUCCESS;
}

static void pool_unref(struct sim_pool *pool)
{
	if (--pool->references != 0)
		return;
	sim_pool_trim(pool, 0);
	free(pool);
}

static int physical(const struct sim_pool *pool)
{
	return sim_core.devices[pool->device].physical;
}

void sim_pool_trim(struct sim_pool *pool, uint64_t bytes_to_keep)
{
	uint64_t reserved = pool->used_bytes + pool->kept_bytes;
	uint64_t surplus = reserved > bytes_to_keep ? reserved - bytes_to_keep : 0;

	if (surplus > pool->kept_bytes)
		surplus = pool->kept_bytes;
	sim_machine_give(physical(pool), surplus);
	pool->kept_bytes -= surplus;
}

void sim_pool_grant(const struct sim_pool *pool, const struct sim_allocation *allocation)
{
	struct sim_range *range = sim_address_find(allocation->span.start);

	if (sim_breaks("async_memory_is_usable"))
		range->is_vmm = true; /* so that its rights are all there is */
	for (int i = 0; i < sim_core.device_count; i++)
		range->device_rights[i] = sim_breaks("async_memory_is_usable")
						  ? CU_MEM_ACCESS_FLAGS_PROT_NONE
						  : pool->device_rights[i];
}

static void count_used(struct sim_pool *pool, uint64_t bytes)
{
	pool->used_bytes += sim_breaks("pool_counts_use") ? 0 : bytes;
	if (pool->used_high < pool->used_bytes)
		pool->used_high = pool->used_bytes;
	if (pool->reserved_high < pool->used_bytes + pool->kept_bytes)
		pool->reserved_high = pool->used_bytes + pool->kept_bytes;
}

static CUresult allocate_from(struct sim_pool *pool, struct sim_context *context, uint64_t bytes,
			      CUdeviceptr *ret_pointer)
{
	struct sim_allocation *allocation = NULL;
	uint64_t before = pool->kept_bytes;
	CUresult result;

	if (pool->is_imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->properties.maxSize != 0 && pool->used_bytes + bytes > pool->properties.maxSize)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* What the pool keeps is there for this: the device is asked for the difference. */
	pool->kept_bytes -= before < bytes ? before : bytes;
	sim_machine_give(physical(pool), before - pool->kept_bytes);
	result = sim_legacy_allocate(context, SIM_ALLOCATION_POOL, pool, bytes, &allocation);
	if (result != CUDA_SUCCESS)
		return result;
	allocation->pool = pool;
	pool->references++;
	sim_pool_grant(pool, allocation);
	count_used(pool, bytes);
	*ret_pointer = allocation->span.start;
	return CUDA_SUCCESS;
}

void sim_pool_free(struct sim_allocation *allocation)
{
	struct sim_pool *pool = allocation->pool;
	uint64_t bytes = allocation->span.bytes;
	uint64_t reserved = pool->used_bytes + pool->kept_bytes;

	sim_allocation_free(allocation);
	pool->used_bytes -= bytes;
	if (reserved <= pool->release_threshold && !sim_breaks("pool_keeps_to_threshold") &&
	    sim_machine_take(physical(pool), bytes) == CUDA_SUCCESS)
		pool->kept_bytes += bytes;
	pool_unref(pool);
}

/* In a stream that records, the graph allocates: the memory lives as long as the graph. */
static CUresult allocate_captured(struct sim_stream *stream, uint64_t bytes,
				  CUdeviceptr *ret_pointer)
{
	struct sim_action action = {.context = stream->context};
	struct sim_allocation *allocation = NULL;
	CUresult result = sim_legacy_allocate(stream->context, SIM_ALLOCATION_GRAPH,
					      stream->context, bytes, &allocation);

	if (result != CUDA_SUCCESS)
		return result;
	result = sim_capture_add(stream, &action, NULL);
	if (result != CUDA_SUCCESS) {
		sim_allocation_free(allocation);
		return result;
	}
	stream->capture_ends[0]->allocation = allocation->span.start;
	*ret_pointer = allocation->span.start;
	return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *ret_pointer, size_t bytes, CUmemoryPool pool_handle,
			 CUstream stream_handle)
{
	struct sim_stream *stream = NULL;
	struct sim_pool *pool = NULL;
	CUresult result;

	if (ret_pointer == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pointer = 0;
	if (bytes == 0)
		return CUDA_SUCCESS;
	result = sim_stream_get(stream_handle, &stream);
	if (result == CUDA_SUCCESS)
		result = sim_capture_check_submit(stream);
	if (result == CUDA_SUCCESS && pool_handle == NULL)
		result = sim_pool_current(stream->context->device, &pool_handle);
	if (result == CUDA_SUCCESS)
		result = sim_pool_get(pool_handle, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture == NULL)
		result = sim_capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture != NULL)
		return allocate_captured(stream, bytes, ret_pointer);
	return allocate_from(pool, stream->context, bytes, ret_pointer);
}

SIM_API CUresult cuMemAllocAsync(CUdeviceptr *ret_pointer, size_t bytes, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       allocate(ret_pointer, bytes, NULL, stream));
}

SIM_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret_pointer, size_t bytes, CUmemoryPool pool,
					 CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       pool == NULL ? CUDA_ERROR_INVALID_VALUE
					    : allocate(ret_pointer, bytes, pool, stream));
}

/* The context may have ended first, and taken the memory with it. */
static CUresult run_free(const struct sim_action *action)
{
	struct sim_allocation *allocation;

	sim_core_lock();
	allocation = sim_allocation_find(action->address);
	if (allocation != NULL && allocation->kind == SIM_ALLOCATION_POOL)
		sim_pool_free(allocation);
	else if (allocation != NULL)
		sim_allocation_free(allocation);
	sim_core_unlock();
	return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr pointer, CUstream handle)
{
	struct sim_action action = {.run = run_free, .runs_after_error = true, .address = pointer};
	struct sim_allocation *allocation = sim_allocation_find(pointer);
	struct sim_stream *stream = NULL;
	CUresult result = sim_stream_get(handle, &stream);

	if (result == CUDA_SUCCESS)
		result = sim_capture_check_submit(stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (allocation == NULL || allocation->span.start != pointer || allocation->is_freeing)
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation->kind == SIM_ALLOCATION_LEGACY && sim_breaks("pool_frees_native"))
		return CUDA_ERROR_INVALID_VALUE;
	action.context = stream->context;
	if (stream->capture != NULL && allocation->kind == SIM_ALLOCATION_GRAPH) {
		action.run = NULL;
		return sim_capture_add(stream, &action, NULL);
	}
	if (stream->capture != NULL ||
	    (allocation->kind != SIM_ALLOCATION_POOL && allocation->kind != SIM_ALLOCATION_LEGACY &&
	     !allocation->is_pool_import))
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_submit(stream, &action, NULL, NULL);
	allocation->is_freeing = result == CUDA_SUCCESS;
	return result;
}

SIM_API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, release(pointer, stream));
}

static CUresult check_properties(const CUmemPoolProps *properties)
{
	if (properties == NULL || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->location.type == CU_MEM_LOCATION_TYPE_HOST ||
	    properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(properties->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
	    properties->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemoryPool *ret_pool, const CUmemPoolProps *properties)
{
	CUresult result =
		ret_pool != NULL ? check_properties(properties) : CUDA_ERROR_INVALID_VALUE;

	return result == CUDA_SUCCESS ? sim_pool_new(properties, ret_pool) : result;
}

SIM_API CUresult cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *properties)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, create(ret_pool, properties));
}

/* Allocations of the pool stay until they are freed. */
static CUresult destroy(CUmemoryPool handle)
{
	struct sim_pool *pool = NULL;
	CUresult result = sim_pool_get(handle, &pool);

	if (result == CUDA_SUCCESS && pool->is_default)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	sim_set_remove(&sim_core.pools, pool);
	if (sim_core.devices[pool->device].current_pool == handle)
		sim_core.devices[pool->device].current_pool =
			sim_core.devices[pool->device].default_pool;
	sim_pool_trim(pool, 0);
	pool_unref(pool);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, destroy(pool));
}
