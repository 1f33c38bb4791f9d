/* The table of what applications hold pointers to; see allocation.h. */

#include "allocation.h"

#include "host.h"

#include <stdlib.h>

static struct sim_table allocations;

CUresult sim_allocation_add(enum sim_allocation_kind kind, uint64_t start, uint64_t bytes,
			    struct sim_context *context, struct sim_allocation **ret_allocation)
{
	struct sim_allocation *allocation = malloc(sizeof(*allocation));

	if (allocation == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*allocation = (struct sim_allocation){
		.span = {.start = start, .bytes = bytes},
		.kind = kind,
		.context = context,
		.id = sim_core_new_id_locked(),
	};
	if (!sim_table_insert(&allocations, &allocation->span)) {
		free(allocation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_allocation = allocation;
	return CUDA_SUCCESS;
}

void sim_allocation_remove(struct sim_allocation *allocation)
{
	sim_table_remove(&allocations, &allocation->span);
	free(allocation);
}

struct sim_allocation *sim_allocation_find(uint64_t address)
{
	return sim_table_find(&allocations, address);
}

size_t sim_allocation_count(void)
{
	return allocations.count;
}

struct sim_allocation *sim_allocation_at(size_t index)
{
	return (struct sim_allocation *)(void *)allocations.items[index];
}

size_t sim_allocation_first_behind(uint64_t address)
{
	return sim_table_first_behind(&allocations, address);
}

bool sim_allocation_overlaps(uint64_t start, uint64_t bytes)
{
	return sim_table_overlaps(&allocations, start, bytes);
}

void sim_allocation_free(struct sim_allocation *allocation)
{
	switch (allocation->kind) {
	case SIM_ALLOCATION_HOST:
	case SIM_ALLOCATION_REGISTERED:
		sim_host_free(allocation);
		return;
	case SIM_ALLOCATION_MANAGED:
	case SIM_ALLOCATION_IPC:
		sim_address_displace(sim_address_find(allocation->span.start)->span.start);
		sim_allocation_remove(allocation);
		return;
	case SIM_ALLOCATION_LEGACY:
	case SIM_ALLOCATION_POOL:
	case SIM_ALLOCATION_GRAPH:
		sim_legacy_free(allocation);
		return;
	}
}

void sim_allocation_free_context(const struct sim_context *context)
{
	size_t i = 0;

	while (i < allocations.count) {
		struct sim_allocation *allocation = sim_allocation_at(i);

		if (allocation->context == context && allocation->kind != SIM_ALLOCATION_POOL)
			sim_allocation_free(allocation);
		else
			i++;
	}
}
