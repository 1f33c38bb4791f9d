#ifndef SIM_ALLOCATION_H
#define SIM_ALLOCATION_H

/*
 * What an application got as one pointer: device memory of cuMemAlloc and of pools, managed memory,
 * memory opened by IPC, and host memory that is pinned or registered. Mappings of cuMemMap are not
 * among them. Core lock held.
 */

#include "address.h"
#include "context.h"

enum sim_allocation_kind {
	SIM_ALLOCATION_LEGACY, /* cuMemAlloc, cuMemAllocPitch; globals of modules */
	SIM_ALLOCATION_POOL,
	SIM_ALLOCATION_GRAPH,
	SIM_ALLOCATION_MANAGED,
	SIM_ALLOCATION_IPC,
	SIM_ALLOCATION_HOST,       /* cuMemHostAlloc, cuMemAllocHost */
	SIM_ALLOCATION_REGISTERED, /* cuMemHostRegister */
};

struct sim_pool;

struct sim_allocation {
	struct sim_span span; /* as requested */
	enum sim_allocation_kind kind;
	struct sim_context *context;
	uint64_t id;
	unsigned flags;  /* host memory: as asked for */
	unsigned opened; /* IPC: how often */
	bool sync_memops;
	bool is_freeing; /* cuMemFree waits, or cuMemFreeAsync is queued: gone for the application */
	struct sim_pool *pool;     /* where it was allocated from, or NULL */
	bool is_pool_import;       /* IPC: freed like memory of a pool, not closed */
	CUipcMemHandle ipc_handle; /* IPC: what it was opened with */
};

/* A new record; its id is set. OUT_OF_MEMORY. */
CUresult sim_allocation_add(enum sim_allocation_kind kind, uint64_t start, uint64_t bytes,
			    struct sim_context *context, struct sim_allocation **ret_allocation);
/* Forgets it and frees the record; memory and mapping are the caller's. */
void sim_allocation_remove(struct sim_allocation *allocation);
struct sim_allocation *sim_allocation_find(uint64_t address); /* any address inside */
size_t sim_allocation_count(void);
struct sim_allocation *sim_allocation_at(size_t index);
size_t sim_allocation_first_behind(uint64_t address); /* index; see table.h */
bool sim_allocation_overlaps(uint64_t start, uint64_t bytes);

static inline bool sim_allocation_is_host(const struct sim_allocation *allocation)
{
	return allocation->kind == SIM_ALLOCATION_HOST ||
	       allocation->kind == SIM_ALLOCATION_REGISTERED;
}

/*
 * Device memory in 512-byte steps inside blocks of 2 MiB, larger requests in blocks of their own.
 * Blocks
 * are shared by what has the same owner, a context or a pool; an empty block is unmapped.
 */
CUresult sim_legacy_allocate(struct sim_context *context, enum sim_allocation_kind kind,
			     const void *owner, uint64_t bytes,
			     struct sim_allocation **ret_allocation);
void sim_legacy_free(struct sim_allocation *allocation);

/* Frees memory, mapping and record of an allocation of any kind, at once. */
void sim_allocation_free(struct sim_allocation *allocation);
/* Frees everything that belongs to a context that ends. */
void sim_allocation_free_context(const struct sim_context *context);

#endif
