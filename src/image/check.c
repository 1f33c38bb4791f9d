/*
 * What a restore compares before it copies: the image against the machine, and against what the driver
 * gave. Pure functions; see image.h.
 */

#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "image/image.h"

static const struct stasis_image_view *view_find(const struct stasis_image_view *views,
						 size_t count, const struct stasis_id *uuid)
{
	for (size_t i = 0; i < count; i++) {
		if (stasis_id_equal(&views[i].gpu_uuid, uuid))
			return &views[i];
	}
	return NULL;
}

/* Bytes of one GPU that its extents need together; false where they do not fit a number. */
static bool bytes_needed(const struct stasis_image_manifest *manifest, uint32_t gpu_index,
			 uint64_t *ret_bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < manifest->extent_count; i++) {
		if (manifest->extents[i].gpu_index == gpu_index &&
		    manifest->extents[i].store != STASIS_IMAGE_STORE_HOST &&
		    !stasis_add_u64(sum, manifest->extents[i].logical_bytes, &sum))
			return false;
	}
	*ret_bytes = sum;
	return true;
}

int stasis_image_check_gpus(const struct stasis_image_manifest *manifest,
			    const struct stasis_image_view *gpus, size_t gpu_count,
			    struct stasis_error *err)
{
	for (size_t i = 0; i < manifest->extent_count; i++) {
		uint32_t gpu_index = manifest->extents[i].gpu_index;
		const struct stasis_image_gpu *wanted = &manifest->gpus[gpu_index];
		const struct stasis_image_view *found = view_find(gpus, gpu_count, &wanted->uuid);
		char uuid[STASIS_UUID_TEXT_BYTES];
		uint64_t needed = UINT64_MAX;

		(void)stasis_uuid_format(&wanted->uuid, uuid);
		if (!found)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "the image was taken on GPU %s (%s), which is not among "
					   "the %zu GPUs here",
					   uuid, wanted->name, gpu_count);
		if (!bytes_needed(manifest, gpu_index, &needed) || needed > found->bytes)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "the image needs %llu bytes on GPU %s, which has %llu",
					   (unsigned long long)needed, uuid,
					   (unsigned long long)found->bytes);
	}
	return 0;
}

/* What the driver asks for: private memory of the process. */
static bool is_view_of(const struct stasis_image_extent *extent, uint32_t process_index)
{
	return extent->process_index == process_index && extent->store == STASIS_IMAGE_STORE_CUSTOM;
}

static int view_match(const struct stasis_image_manifest *manifest, uint32_t process_index,
		      const struct stasis_image_view *view, size_t *ret_extent,
		      struct stasis_error *err)
{
	char uuid[STASIS_UUID_TEXT_BYTES];

	(void)stasis_uuid_format(&view->gpu_uuid, uuid);
	for (size_t i = 0; i < manifest->extent_count; i++) {
		const struct stasis_image_extent *extent = &manifest->extents[i];

		if (!is_view_of(extent, process_index) ||
		    !stasis_id_equal(&manifest->gpus[extent->gpu_index].uuid, &view->gpu_uuid))
			continue;
		if (extent->logical_bytes != view->bytes)
			return stasis_fail(
				err, STASIS_BAD_IMAGE,
				"on GPU %s the driver wants %llu bytes of process %u, the "
				"image has %llu",
				uuid, (unsigned long long)view->bytes, process_index,
				(unsigned long long)extent->logical_bytes);
		*ret_extent = i;
		return 0;
	}
	return stasis_fail(err, STASIS_BAD_IMAGE,
			   "the driver wants bytes of process %u on GPU %s, of which the image has "
			   "none",
			   process_index, uuid);
}

int stasis_image_check_views(const struct stasis_image_manifest *manifest, uint32_t process_index,
			     const struct stasis_image_view *views, size_t view_count,
			     size_t *ret_extents, struct stasis_error *err)
{
	CLEANUP(free) size_t *found = calloc(view_count + 1, sizeof(*found));
	char uuid[STASIS_UUID_TEXT_BYTES];
	size_t extent_count = 0;

	if (!found)
		return stasis_fail_errno(err, STASIS_REFUSED, "compare %zu views", view_count);
	for (size_t i = 0; i < manifest->extent_count; i++)
		extent_count += is_view_of(&manifest->extents[i], process_index);
	if (extent_count != view_count)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "the driver wants %zu extents of process %u, the image has %zu",
				   view_count, process_index, extent_count);
	for (size_t i = 0; i < view_count; i++) {
		if (view_find(views, i, &views[i].gpu_uuid))
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "the driver wants two extents of process %u on GPU %s",
					   process_index,
					   stasis_uuid_format(&views[i].gpu_uuid, uuid));
		if (view_match(manifest, process_index, &views[i], &found[i], err) != 0)
			return -1;
	}
	for (size_t i = 0; i < view_count; i++)
		ret_extents[i] = found[i];
	return 0;
}
