/*
 * Memory objects and the files behind them; see memory.h. The heap file of a device is handed out in
 * pieces of 2 MiB, first fit; what is freed is punched out of the file, so that it costs nothing, and
 * then marked with poison, so that nobody reads old bytes and takes them for right.
 */

#include "memory.h"

#include "config.h"
#include "machine.h"
#include "multicast.h"
#include "storage.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct heap {
	struct sim_table pieces;
	uint64_t lowest_free; /* nothing is free below */
};

static struct sim_memory *first;
static struct heap heaps[SIM_DEVICES_MAX];

struct sim_memory *sim_memory_first(void)
{
	return first;
}

static void link_first(struct sim_memory *memory)
{
	memory->next = first;
	if (first != NULL)
		first->previous = memory;
	first = memory;
}

static void unlink_memory(struct sim_memory *memory)
{
	if (memory->next != NULL)
		memory->next->previous = memory->previous;
	if (memory->previous != NULL)
		memory->previous->next = memory->next;
	else
		first = memory->next;
}

/* The lowest gap of the heap that is large enough; its end where there is none. */
static uint64_t heap_find(const struct heap *heap, uint64_t bytes)
{
	uint64_t offset = heap->lowest_free;

	for (size_t i = sim_table_first_behind(&heap->pieces, offset); i < heap->pieces.count;
	     i++) {
		if (heap->pieces.items[i]->start >= offset + bytes)
			break;
		offset = sim_span_end(heap->pieces.items[i]);
	}
	return offset;
}

/* Puts the object into the heap file, which grows as needed. */
static CUresult heap_attach(struct sim_memory *memory)
{
	struct sim_device *device = &sim_core.devices[memory->device];
	uint64_t end = sim_span_end(&memory->heap_piece);

	if (device->heap_fd < 0) {
		device->heap_bytes = 0;
		if (sim_storage_open("sim-gpu-heap", 0, &device->heap_fd) != 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (end > device->heap_bytes) {
		if (ftruncate(device->heap_fd, (off_t)end) != 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
		device->heap_bytes = end;
	}
	memory->fd = device->heap_fd;
	memory->offset = memory->heap_piece.start;
	return CUDA_SUCCESS;
}

static CUresult heap_place(struct sim_memory *memory)
{
	struct heap *heap = &heaps[memory->device];

	memory->heap_piece.start = heap_find(heap, memory->bytes);
	memory->heap_piece.bytes = memory->bytes;
	if (!sim_table_insert(&heap->pieces, &memory->heap_piece))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (memory->heap_piece.start == heap->lowest_free)
		heap->lowest_free += memory->bytes;
	return heap_attach(memory);
}

static void heap_remove(struct sim_memory *memory)
{
	struct heap *heap = &heaps[memory->device];

	sim_table_remove(&heap->pieces, &memory->heap_piece);
	if (memory->heap_piece.start < heap->lowest_free)
		heap->lowest_free = memory->heap_piece.start;
}

static CUresult file_attach(struct sim_memory *memory)
{
	memory->offset = 0;
	if (sim_storage_open("sim-gpu-memory", memory->bytes, &memory->fd) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult charge(const struct sim_memory *memory)
{
	if (memory->device < 0)
		return CUDA_SUCCESS;
	return sim_machine_take(sim_core.devices[memory->device].physical, memory->bytes);
}

static void discharge(struct sim_memory *memory)
{
	if (memory->claim_fd >= 0)
		(void)close(memory->claim_fd);
	else if (memory->device >= 0 && memory->kind != SIM_MEMORY_IMPORTED &&
		 memory->kind != SIM_MEMORY_IPC_OPENED)
		sim_machine_give(sim_core.devices[memory->device].physical, memory->bytes);
	memory->claim_fd = -1;
}

/* Managed and host memory live in host memory and take nothing of a GPU. */
static int charged_device(enum sim_memory_kind kind, const CUmemAllocationProp *properties)
{
	if (kind == SIM_MEMORY_MANAGED || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return -1;
	return properties->location.id;
}

CUresult sim_memory_new(enum sim_memory_kind kind, const CUmemAllocationProp *properties,
			uint64_t bytes, struct sim_memory **ret_memory)
{
	struct sim_memory *memory = malloc(sizeof(*memory));
	CUresult result;

	if (memory == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*memory = (struct sim_memory){
		.kind = kind,
		.properties = *properties,
		.device = charged_device(kind, properties),
		.id = sim_core_new_id_locked(),
		.bytes = bytes,
		.fd = -1,
		.claim_fd = -1,
		.references = 1,
	};
	result = charge(memory);
	if (result == CUDA_SUCCESS) {
		result = kind == SIM_MEMORY_PRIVATE ? heap_place(memory) : file_attach(memory);
		if (result != CUDA_SUCCESS)
			discharge(memory);
	}
	if (result != CUDA_SUCCESS) {
		if (kind == SIM_MEMORY_PRIVATE)
			heap_remove(memory);
		free(memory);
		return result;
	}
	link_first(memory);
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

CUresult sim_memory_adopt(enum sim_memory_kind kind, const CUmemAllocationProp *properties,
			  uint64_t bytes, uint64_t offset, int fd, int claim_fd,
			  struct sim_memory **ret_memory)
{
	struct sim_memory *memory = malloc(sizeof(*memory));

	if (memory == NULL) {
		(void)close(fd);
		if (claim_fd >= 0)
			(void)close(claim_fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*memory = (struct sim_memory){
		.kind = kind,
		.properties = *properties,
		.device = charged_device(kind, properties),
		.id = sim_core_new_id_locked(),
		.bytes = bytes,
		.offset = offset,
		.fd = fd,
		.claim_fd = claim_fd,
		.references = 1,
	};
	link_first(memory);
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

void sim_memory_ref(struct sim_memory *memory)
{
	memory->references++;
}

void sim_memory_unref(struct sim_memory *memory)
{
	if (--memory->references != 0)
		return;
	unlink_memory(memory);
	if (sim_memory_is_multicast(memory))
		sim_multicast_forget(memory);
	if (memory->kind == SIM_MEMORY_PRIVATE && memory->fd >= 0)
		sim_storage_poison(memory->fd, memory->offset, memory->bytes);
	else if (memory->fd >= 0)
		(void)close(memory->fd);
	if (memory->kind == SIM_MEMORY_PRIVATE)
		heap_remove(memory);
	discharge(memory);
	if (memory->saved != NULL)
		(void)munmap(memory->saved, memory->bytes);
	free(memory);
}

CUresult sim_memory_evict(struct sim_memory *memory, bool keep_contents)
{
	if (keep_contents &&
	    sim_storage_save(memory->fd, memory->offset, memory->bytes, &memory->saved) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (memory->kind != SIM_MEMORY_PRIVATE)
		(void)close(memory->fd);
	memory->fd = -1;
	if (memory->claim_fd >= 0)
		(void)close(memory->claim_fd);
	/* -2: revive must take the bytes on the process's own account. */
	memory->claim_fd = memory->claim_fd >= 0 ? -2 : -1;
	return CUDA_SUCCESS;
}

CUresult sim_memory_revive(struct sim_memory *memory)
{
	CUresult result = CUDA_SUCCESS;

	if (memory->claim_fd == -2)
		result = charge(memory);
	if (result != CUDA_SUCCESS)
		return result;
	memory->claim_fd = -1;
	result = memory->kind == SIM_MEMORY_PRIVATE ? heap_attach(memory) : file_attach(memory);
	if (result != CUDA_SUCCESS || memory->saved == NULL)
		return result;
	if (sim_storage_load(memory->fd, memory->offset, memory->bytes, memory->saved) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)munmap(memory->saved, memory->bytes);
	memory->saved = NULL;
	return CUDA_SUCCESS;
}

void sim_memory_close_heaps(void)
{
	for (int i = 0; i < sim_core.device_count; i++) {
		struct sim_device *device = &sim_core.devices[i];

		if (device->heap_fd >= 0)
			(void)close(device->heap_fd);
		device->heap_fd = -1;
		device->heap_bytes = 0;
	}
}
