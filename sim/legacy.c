/*
 * cuMemAlloc and its relatives. A request of up to 1 MiB takes 512-byte steps of a 2 MiB block that it
 * shares with others of its context; a larger one has a block of its own. A block is one reservation
 * with one mapping of one memory object. Pieces are found by looking at the allocations between the
 * block's ends: there is no other record of what is free.
 */

#include "allocation.h"
#include "capture.h"
#include "machine.h"
#include "pool.h"
#include "storage.h"
#include "stream.h"

#include <stdlib.h>

#define STEP 512ull
#define PIECE_MAX (1ull << 20)

/* Blocks that hold pieces, of all contexts; newest first. */
struct block {
	struct block *next;
	const void *owner; /* a context or a pool */
	uint64_t start;
};

static struct block *blocks;

static CUresult block_map(struct sim_context *context, uint64_t bytes, uint64_t *ret_start)
{
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device},
	};
	struct sim_memory *memory = NULL;
	struct sim_range *range = NULL;
	CUresult result = sim_memory_new(SIM_MEMORY_PRIVATE, &properties, bytes, &memory);

	if (result != CUDA_SUCCESS)
		return result;
	result = sim_address_place(memory, &range);
	sim_memory_unref(memory);
	if (result != CUDA_SUCCESS)
		return result;
	range->device_rights[context->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	*ret_start = range->span.start;
	return sim_address_show(range);
}

/* The first gap of a block of pieces, or 0. */
static uint64_t piece_find(const struct block *block, uint64_t bytes)
{
	uint64_t end = block->start + SIM_GRANULARITY;
	uint64_t at = block->start;
	size_t i = sim_allocation_first_behind(at);

	for (; i < sim_allocation_count() && sim_allocation_at(i)->span.start < end; i++) {
		const struct sim_span *span = &sim_allocation_at(i)->span;

		if (span->start - at >= bytes)
			return at;
		at = span->start + sim_round_up(span->bytes, STEP);
	}
	return end - at >= bytes ? at : 0;
}

static CUresult piece_take(struct sim_context *context, const void *owner, uint64_t bytes,
			   uint64_t *ret_start)
{
	struct block *block;
	CUresult result;

	for (block = blocks; block != NULL; block = block->next) {
		*ret_start = block->owner == owner ? piece_find(block, bytes) : 0;
		if (*ret_start != 0)
			return CUDA_SUCCESS;
	}
	block = malloc(sizeof(*block));
	if (block == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = block_map(context, SIM_GRANULARITY, &block->start);
	if (result != CUDA_SUCCESS) {
		free(block);
		return result;
	}
	block->owner = owner;
	block->next = blocks;
	blocks = block;
	*ret_start = block->start;
	return CUDA_SUCCESS;
}

static void block_drop_if_empty(uint64_t start)
{
	for (struct block **link = &blocks; *link != NULL; link = &(*link)->next) {
		struct block *block = *link;

		if (block->start != start)
			continue;
		if (sim_allocation_overlaps(start, SIM_GRANULARITY))
			return;
		*link = block->next;
		free(block);
		sim_address_displace(start);
		return;
	}
}

CUresult sim_legacy_allocate(struct sim_context *context, enum sim_allocation_kind kind,
			     const void *owner, uint64_t bytes,
			     struct sim_allocation **ret_allocation)
{
	bool is_piece = bytes <= PIECE_MAX && !sim_breaks("alloc_steps");
	uint64_t block_bytes;
	uint64_t start = 0;
	CUresult result;

	if (bytes > SIM_WINDOW_END - SIM_WINDOW_START)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block_bytes = sim_round_up(bytes, is_piece ? STEP : SIM_GRANULARITY);
	result = is_piece ? piece_take(context, owner, block_bytes, &start)
			  : block_map(context, block_bytes, &start);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_allocation_add(kind, start, bytes, context, ret_allocation);
	if (result != CUDA_SUCCESS && is_piece)
		block_drop_if_empty(start / SIM_GRANULARITY * SIM_GRANULARITY);
	else if (result != CUDA_SUCCESS)
		sim_address_displace(start);
	return result;
}

void sim_legacy_free(struct sim_allocation *allocation)
{
	uint64_t start = allocation->span.start;
	uint64_t bytes = allocation->span.bytes;
	const struct sim_range *range = sim_address_find(start);

	sim_allocation_remove(allocation);
	if (bytes > PIECE_MAX) {
		sim_address_displace(start);
		return;
	}
	sim_storage_poison(range->memory->fd,
			   range->memory->offset + range->memory_offset +
				   (start - range->span.start),
			   sim_round_up(bytes, STEP));
	block_drop_if_empty(range->span.start);
}

static CUresult allocate(CUdeviceptr *ret_pointer, size_t bytes)
{
	struct sim_allocation *allocation = NULL;
	CUresult result;

	if (ret_pointer == NULL || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_capture_check_unsafe();
	if (result == CUDA_SUCCESS)
		result = sim_legacy_allocate(sim_context_current(), SIM_ALLOCATION_LEGACY,
					     sim_context_current(), bytes, &allocation);
	if (result == CUDA_SUCCESS)
		*ret_pointer = allocation->span.start;
	return result;
}

SIM_API CUresult cuMemAlloc_v2(CUdeviceptr *ret_pointer, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, allocate(ret_pointer, bytes));
}

static CUresult allocate_pitch(CUdeviceptr *ret_pointer, size_t *ret_pitch, size_t width,
			       size_t height, unsigned element_bytes)
{
	uint64_t pitch = sim_round_up(width, sim_breaks("pitch_steps") ? element_bytes : STEP);
	uint64_t bytes = 0;
	CUresult result;

	if (ret_pitch == NULL || width == 0 || height == 0 ||
	    (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) ||
	    __builtin_mul_overflow(pitch, height, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = allocate(ret_pointer, bytes);
	if (result == CUDA_SUCCESS)
		*ret_pitch = pitch;
	return result;
}

SIM_API CUresult cuMemAllocPitch_v2(CUdeviceptr *ret_pointer, size_t *ret_pitch, size_t width,
				    size_t height, unsigned element_bytes)
{
	return SIM_CALL_LOCKED(
		SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
		allocate_pitch(ret_pointer, ret_pitch, width, height, element_bytes));
}

/* Waits for all queued work of the context, as the driver does, before the memory goes. */
static CUresult release(CUdeviceptr pointer)
{
	struct sim_allocation *allocation = sim_allocation_find(pointer);
	CUresult result = sim_capture_check_unsafe();

	if (result != CUDA_SUCCESS || pointer == 0)
		return result;
	if (allocation == NULL || allocation->span.start != pointer || allocation->is_freeing ||
	    sim_allocation_is_host(allocation) ||
	    (allocation->kind == SIM_ALLOCATION_IPC && !allocation->is_pool_import))
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation->kind == SIM_ALLOCATION_POOL && sim_breaks("async_memory_frees_native"))
		return CUDA_ERROR_INVALID_VALUE;
	allocation->is_freeing = true;
	if (!sim_breaks("free_waits"))
		sim_stream_wait_context(allocation->context);
	if (sim_breaks("free_returns_memory"))
		return CUDA_SUCCESS;
	if (allocation->kind == SIM_ALLOCATION_POOL)
		sim_pool_free(allocation);
	else
		sim_allocation_free(allocation);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, release(pointer));
}

static CUresult memory_info(size_t *ret_free, size_t *ret_total)
{
	int device = sim_core.devices[sim_context_current()->device].physical;

	if (ret_free == NULL || ret_total == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_free = sim_machine_free_bytes(device);
	*ret_total = sim_machine_total_bytes(device) -
		     (sim_breaks("total_memory") ? SIM_GRANULARITY : 0);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT,
			       memory_info(ret_free, ret_total));
}
