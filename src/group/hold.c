/* See hold.h. */

#include "group/hold.h"

#include <errno.h>
#include <stdlib.h>

#include "base/number.h"
#include "driver/cuda_error.h"
#include "driver/report.h"

/* The driver maps no smaller pages. */
#define GRANULE_BYTES (2 * STASIS_MIB)
/* Smaller pieces are not worth it: what is asked for is halved down to this. */
#define PIECE_BYTES_MIN (16 * STASIS_MIB)

static int free_read(const struct stasis_hold *hold, unsigned int index, uint64_t *ret_bytes,
		     struct stasis_error *err)
{
	CUresult result = stasis_device_free_bytes(hold->driver,
						   &hold->contexts->items[index].device, ret_bytes);

	if (result == CUDA_SUCCESS)
		return 0;
	return stasis_fail_cuda(err, STASIS_REFUSED, result, "read the free memory of GPU %d",
				hold->contexts->items[index].device.ordinal);
}

int stasis_hold_begin(struct stasis_hold *hold, const struct stasis_driver *driver,
		      const struct stasis_contexts *contexts, struct stasis_error *err)
{
	*hold = (struct stasis_hold){.driver = driver, .contexts = contexts};
	for (unsigned int i = 0; i < contexts->count; i++) {
		if (free_read(hold, i, &hold->free_bytes[i], err) != 0)
			return -1;
	}
	return 0;
}

static int item_add(struct stasis_hold *hold, CUmemGenericAllocationHandle handle, uint64_t bytes,
		    struct stasis_error *err)
{
	struct stasis_hold_item *items =
		realloc(hold->items, (hold->count + 1) * sizeof(hold->items[0]));

	if (!items) {
		(void)hold->driver->cuMemRelease(handle);
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "hold room on the GPU");
	}
	hold->items = items;
	hold->items[hold->count++].handle = handle;
	hold->bytes += bytes;
	return 0;
}

/* The memory may lie in pieces: what is not to be had whole is asked for in halves. */
static int room_take(struct stasis_hold *hold, int ordinal, uint64_t bytes,
		     struct stasis_error *err)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal},
	};
	uint64_t piece = bytes;

	while (bytes >= GRANULE_BYTES) {
		CUmemGenericAllocationHandle handle;
		CUresult result;

		piece = stasis_min_u64(piece, bytes) / GRANULE_BYTES * GRANULE_BYTES;
		result = hold->driver->cuMemCreate(&handle, piece, &prop, 0);
		if (result == CUDA_SUCCESS) {
			if (item_add(hold, handle, piece, err) != 0)
				return -1;
			bytes -= piece;
		} else if (result != CUDA_ERROR_OUT_OF_MEMORY) {
			return stasis_fail_cuda(err, STASIS_REFUSED, result, "hold room on GPU %d",
						ordinal);
		} else if (piece <= PIECE_BYTES_MIN) {
			return 0;
		} else {
			piece /= 2;
		}
	}
	return 0;
}

int stasis_hold_take(struct stasis_hold *hold, struct stasis_error *err)
{
	for (unsigned int i = 0; i < hold->contexts->count; i++) {
		uint64_t now_bytes = 0;

		if (free_read(hold, i, &now_bytes, err) != 0)
			return -1;
		if (now_bytes > hold->free_bytes[i] &&
		    room_take(hold, hold->contexts->items[i].device.ordinal,
			      now_bytes - hold->free_bytes[i], err) != 0)
			return -1;
	}
	return 0;
}

void stasis_hold_release(struct stasis_hold *hold)
{
	for (size_t i = 0; i < hold->count; i++)
		(void)hold->driver->cuMemRelease(hold->items[i].handle);
	free(hold->items);
	hold->items = NULL;
	hold->count = 0;
	hold->bytes = 0;
}
