/* See views.h. */

#include "group/views.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "driver/cuda_error.h"

static const struct stasis_context *context_find(const struct stasis_contexts *contexts,
						 const struct stasis_id *device)
{
	for (unsigned int i = 0; i < contexts->count; i++) {
		if (stasis_id_equal(&contexts->items[i].device.uuid, device))
			return &contexts->items[i];
	}
	return NULL;
}

static int view_reserve(const struct stasis_driver *driver, const struct stasis_context *context,
			uint64_t bytes, struct stasis_group_view *view, struct stasis_error *err)
{
	CUresult result = driver->cuMemAddressReserve(&view->address, bytes, 0, 0, 0);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"reserve addresses for %llu bytes of shared memory",
					(unsigned long long)bytes);
	view->context = context->context;
	view->device_ordinal = context->device.ordinal;
	view->bytes = bytes;
	return 0;
}

/* What takes the place of an object that nobody holds any more. */
static CUresult filler_make(const struct stasis_driver *driver,
			    const struct stasis_group_view *view, uint64_t bytes,
			    CUmemGenericAllocationHandle *ret_handle)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = view->device_ordinal},
	};

	return driver->cuMemCreate(ret_handle, bytes, &prop, 0);
}

/* Maps it behind what is mapped; the mapping keeps the memory. */
static int item_map(const struct stasis_driver *driver, const struct stasis_layout_item *item,
		    const struct stasis_kept *kept, struct stasis_group_view *view,
		    struct stasis_error *err)
{
	const struct stasis_kept_item *source = stasis_kept_find(kept, &item->object->id);
	uint64_t bytes = item->object->bytes;
	CUmemGenericAllocationHandle handle;
	char text[STASIS_ID_TEXT_BYTES];
	CUresult result;

	(void)stasis_id_format(&item->object->id, text);
	if (source && source->bytes != bytes)
		return stasis_fail(err, STASIS_REFUSED,
				   "object %s came with %llu bytes in place of %llu", text,
				   (unsigned long long)source->bytes, (unsigned long long)bytes);
	result = source ? driver->cuMemImportFromShareableHandle(
				  &handle, (void *)(intptr_t)source->fd,
				  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
			: filler_make(driver, view, bytes, &handle);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "import object %s", text);
	result = driver->cuMemMap(view->address + item->offset, bytes, 0, handle, 0);
	(void)driver->cuMemRelease(handle);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "map object %s", text);
	view->mapped_bytes += bytes;
	return 0;
}

static int access_set(const struct stasis_driver *driver, const struct stasis_group_view *view,
		      struct stasis_error *err)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = view->device_ordinal},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUresult result = driver->cuMemSetAccess(view->address, view->bytes, &access, 1);

	if (result == CUDA_SUCCESS)
		return 0;
	return stasis_fail_cuda(err, STASIS_REFUSED, result,
				"get access to %llu bytes of shared memory",
				(unsigned long long)view->bytes);
}

static int views_map(struct stasis_group_views *views, const struct stasis_contexts *contexts,
		     const struct stasis_layout *layout, const struct stasis_kept *kept,
		     struct stasis_error *err)
{
	const struct stasis_driver *driver = views->driver;

	for (size_t i = 0; i < layout->extent_count; i++) {
		const struct stasis_context *context =
			context_find(contexts, &layout->extents[i].device);

		if (!context)
			return stasis_fail(err, STASIS_REFUSED,
					   "shared memory lies on a GPU that is not visible here");
		if (view_reserve(driver, context, layout->extents[i].bytes, &views->items[i],
				 err) != 0)
			return -1;
		views->count++;
	}
	for (size_t i = 0; i < layout->item_count; i++) {
		if (item_map(driver, &layout->items[i], kept,
			     &views->items[layout->items[i].extent_index], err) != 0)
			return -1;
	}
	for (size_t i = 0; i < views->count; i++) {
		if (access_set(driver, &views->items[i], err) != 0)
			return -1;
	}
	return 0;
}

int stasis_group_views_open(const struct stasis_driver *driver,
			    const struct stasis_contexts *contexts,
			    const struct stasis_layout *layout, const struct stasis_kept *kept,
			    struct stasis_group_views *ret_views, struct stasis_error *err)
{
	struct stasis_group_views views = {
		.driver = driver,
		.items = calloc(layout->extent_count + 1, sizeof(views.items[0])),
	};

	if (!views.items)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "map shared memory");
	if (views_map(&views, contexts, layout, kept, err) != 0) {
		stasis_group_views_close(&views);
		return -1;
	}
	*ret_views = views;
	return 0;
}

void stasis_group_views_close(struct stasis_group_views *views)
{
	for (size_t i = 0; i < views->count; i++) {
		struct stasis_group_view *view = &views->items[i];

		if (view->mapped_bytes > 0)
			(void)views->driver->cuMemUnmap(view->address, view->mapped_bytes);
		(void)views->driver->cuMemAddressFree(view->address, view->bytes);
	}
	free(views->items);
	*views = (struct stasis_group_views){.count = 0};
}
