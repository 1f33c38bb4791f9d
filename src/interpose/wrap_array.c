/*
 * The handlers of the calls that map memory into sparse arrays: they take the handles of allocations in a list. Such
 * a mapping is not recorded, so a process that has made one with memory of ours cannot be captured.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interpose/handlers.h"
#include "interpose/objects.h"
#include "interpose/registry.h"

/* CUarrayMapInfo of cuda.h (11.1 to 13.5): what we must know of it. */
struct stasis_array_map {
	uint8_t resource[56];
	uint32_t operation;
	uint32_t handle_type;
	CUmemGenericAllocationHandle handle;
	uint8_t place[24];
};
_Static_assert(sizeof(struct stasis_array_map) == 96, "CUarrayMapInfo has 96 bytes");
_Static_assert(offsetof(struct stasis_array_map, handle) == 64, "its handle stands at 64");

#define OPERATION_MAP 1u /* CU_MEM_OPERATION_TYPE_MAP */

typedef CUresult map_array(struct stasis_array_map *, unsigned int, CUstream);

static bool is_ours(const struct stasis_array_map *item)
{
	return item->operation == OPERATION_MAP && stasis_handle_is_virtual(item->handle);
}

static bool has_ours(const struct stasis_array_map *list, unsigned int count)
{
	for (unsigned int i = 0; list && i < count; i++) {
		if (is_ours(&list[i]))
			return true;
	}
	return false;
}

/* The first `*ret_count` uses are begun, whatever it returns. */
static bool uses_begin(struct stasis_array_map *list, unsigned int count, struct stasis_use *uses,
		       unsigned int *ret_count)
{
	*ret_count = 0;
	for (unsigned int i = 0; i < count; i++) {
		if (!is_ours(&list[i]))
			continue;
		if (!stasis_use_begin(list[i].handle, &uses[*ret_count]))
			return false;
		list[i].handle = uses[(*ret_count)++].driver_handle;
	}
	return true;
}

static CUresult map(map_array *target, const struct stasis_array_map *list, unsigned int count,
		    CUstream stream)
{
	CLEANUP(free) struct stasis_array_map *copy = calloc(count, sizeof(*copy));
	CLEANUP(free) struct stasis_use *uses = calloc(count, sizeof(*uses));
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	unsigned int use_count;

	if (!copy || !uses)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, list, count * sizeof(*copy));
	if (uses_begin(copy, count, uses, &use_count))
		result = target(copy, count, stream);
	while (use_count > 0)
		stasis_use_end(&uses[--use_count]);
	if (result == CUDA_SUCCESS)
		stasis_registry_note_sparse();
	return result;
}

CUresult stasis_handle_cuMemMapArrayAsync(map_array *target, struct stasis_array_map *list,
					  unsigned int count, CUstream stream)
{
	return has_ours(list, count) ? map(target, list, count, stream)
				     : target(list, count, stream);
}

CUresult stasis_handle_cuMemMapArrayAsync_ptsz(map_array *target, struct stasis_array_map *list,
					       unsigned int count, CUstream stream)
{
	return stasis_handle_cuMemMapArrayAsync(target, list, count, stream);
}
