/*
 * Extents while they are written: stripe files and chunk arrays. See image.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "image/io.h"
#include "image/sums.h"
#include "image/takeover.h"
#include "image/writer.h"

void stasis_image_slot_free(struct stasis_image_slot *slot)
{
	if (!slot)
		return;
	for (size_t s = 0; s < STASIS_STRIPES_MAX; s++) {
		if (slot->public.stripe_maps[s])
			(void)munmap(slot->public.stripe_maps[s],
				     (size_t)slot->public.stripe_map_bytes[s]);
		cleanup_fd(&slot->public.stripe_fds[s]);
	}
	free(slot->public.chunks);
	free(slot);
}

static void cleanup_slot(struct stasis_image_slot **slot)
{
	stasis_image_slot_free(*slot);
	*slot = NULL;
}

void stasis_image_names_fill(struct stasis_image_names *names,
			     const struct stasis_image_extent *extent)
{
	char stem[STASIS_IMAGE_STEM_BYTES];

	(void)stasis_image_extent_stem(extent, stem);
	(void)snprintf(names->extent, sizeof(names->extent), "%s/%s", STASIS_IMAGE_GPU_DIR_NAME,
		       stem);
	(void)snprintf(names->sums, sizeof(names->sums), "%s/%s.sums", STASIS_IMAGE_GPU_DIR_NAME,
		       stem);
	for (uint32_t s = 0; s < STASIS_STRIPES_MAX; s++)
		(void)snprintf(names->stripes[s], sizeof(names->stripes[s]), "%s/%s.%u",
			       STASIS_IMAGE_GPU_DIR_NAME, stem, s);
}

/* The plan as an extent of the manifest, or its refusal. */
static int plan_check(const struct stasis_image_writer *writer,
		      const struct stasis_image_extent_plan *plan,
		      struct stasis_image_extent *ret_extent, struct stasis_error *err)
{
	const struct stasis_image_manifest *manifest = &writer->manifest;
	char uuid[STASIS_UUID_TEXT_BYTES];

	if (plan->process_index >= manifest->process_count ||
	    !stasis_image_gpu_find(manifest, &plan->gpu_uuid, &ret_extent->gpu_index))
		return stasis_fail(err, STASIS_REFUSED,
				   "image '%s': process %u or GPU %s was not added before its "
				   "extent",
				   writer->path, plan->process_index,
				   stasis_uuid_format(&plan->gpu_uuid, uuid));
	if (plan->store == STASIS_IMAGE_STORE_NATIVE ||
	    (plan->store == STASIS_IMAGE_STORE_CUSTOM && manifest->store != plan->store))
		return stasis_fail(err, STASIS_REFUSED,
				   "image '%s': an extent of private memory in an image of store "
				   "'%s': only the custom store has them",
				   writer->path, stasis_image_store_name(manifest->store));
	if (plan->logical_bytes == 0 || plan->logical_bytes > STASIS_IMAGE_BYTES_MAX ||
	    plan->chunk_bytes < STASIS_CHUNK_BYTES_MIN ||
	    plan->chunk_bytes > STASIS_CHUNK_BYTES_MAX ||
	    plan->chunk_bytes % STASIS_STORED_ALIGNMENT != 0 ||
	    stasis_chunk_count(plan->logical_bytes, plan->chunk_bytes) > STASIS_IMAGE_CHUNKS_MAX ||
	    plan->stripe_count == 0 || plan->stripe_count > STASIS_STRIPES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "image '%s': an extent of %llu bytes in chunks of %llu and %u "
				   "stripes is out of range",
				   writer->path, (unsigned long long)plan->logical_bytes,
				   (unsigned long long)plan->chunk_bytes, plan->stripe_count);
	for (size_t i = 0; i < manifest->extent_count; i++) {
		if (manifest->extents[i].process_index == plan->process_index &&
		    manifest->extents[i].gpu_index == ret_extent->gpu_index &&
		    manifest->extents[i].store == plan->store)
			return stasis_fail(err, STASIS_REFUSED,
					   "image '%s': a second extent of process %u on GPU %s "
					   "and store '%s'",
					   writer->path, plan->process_index,
					   stasis_uuid_format(&plan->gpu_uuid, uuid),
					   stasis_image_store_name(plan->store));
	}
	ret_extent->process_index = plan->process_index;
	ret_extent->store = plan->store;
	ret_extent->logical_bytes = plan->logical_bytes;
	ret_extent->chunk_bytes = plan->chunk_bytes;
	ret_extent->stripe_count = plan->stripe_count;
	return stasis_id_random(&ret_extent->id, err);
}

static struct stasis_image_slot *slot_new(const struct stasis_image_extent *extent)
{
	CLEANUP(slot) struct stasis_image_slot *slot = calloc(1, sizeof(*slot));
	struct stasis_image_output *output;

	if (!slot)
		return NULL;
	output = &slot->public;
	stasis_image_names_fill(&slot->names, extent);
	output->id = extent->id;
	output->name = slot->names.extent;
	output->logical_bytes = extent->logical_bytes;
	output->chunk_bytes = extent->chunk_bytes;
	output->chunk_count = stasis_chunk_count(extent->logical_bytes, extent->chunk_bytes);
	output->stripe_count = extent->stripe_count;
	for (size_t s = 0; s < STASIS_STRIPES_MAX; s++) {
		output->stripe_fds[s] = -1;
		output->stripe_names[s] = slot->names.stripes[s];
	}
	output->chunks = calloc(output->chunk_count, sizeof(*output->chunks));
	return output->chunks ? ptr_steal(&slot) : NULL;
}

static int gpu_dir_make(struct stasis_image_writer *writer, struct stasis_error *err)
{
	int code;

	if (writer->gpu_fd >= 0)
		return 0;
	code = stasis_image_io_mkdir(writer->dir_fd, STASIS_IMAGE_GPU_DIR_NAME, &writer->gpu_fd);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "make the directory '%s/%s'",
					writer->partial_path, STASIS_IMAGE_GPU_DIR_NAME);
	return 0;
}

/* A file of the reserve, or a new one. Returns 0 or an errno. */
static int stripe_create(struct stasis_image_writer *writer, struct stasis_image_slot *slot,
			 uint32_t stripe)
{
	const char *name = stasis_image_name_base(slot->names.stripes[stripe]);
	struct stasis_image_output *output = &slot->public;
	struct stasis_image_reserve_file file;

	if (!stasis_image_takeover_next(writer, name, &file))
		return stasis_image_io_create(writer->gpu_fd, name, &output->stripe_fds[stripe]);
	output->stripe_fds[stripe] = file.fd;
	slot->reserve_numbers[stripe] = file.number + 1;
	output->stripe_maps[stripe] = file.map;
	output->stripe_map_bytes[stripe] = file.map_bytes;
	return 0;
}

static int stripes_create(struct stasis_image_writer *writer, struct stasis_image_slot *slot,
			  struct stasis_error *err)
{
	for (uint32_t s = 0; s < slot->public.stripe_count; s++) {
		int code = stripe_create(writer, slot, s);

		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code, "create '%s/%s'",
						writer->partial_path, slot->names.stripes[s]);
	}
	return 0;
}

/* The stripes that were made before one failed must not stay: the image would have a file too many. */
static void stripes_remove(const struct stasis_image_writer *writer,
			   const struct stasis_image_slot *slot)
{
	for (uint32_t s = 0; s < slot->public.stripe_count; s++) {
		if (slot->public.stripe_fds[s] >= 0)
			(void)unlinkat(writer->gpu_fd,
				       stasis_image_name_base(slot->names.stripes[s]), 0);
	}
}

/* Appends to both lists, or to neither. */
static int lists_append(struct stasis_image_writer *writer,
			const struct stasis_image_extent *extent, struct stasis_image_slot *slot,
			struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;
	size_t count = manifest->extent_count;
	struct stasis_image_slot **slot_at =
		stasis_image_list_grow(&writer->slots, count, sizeof(struct stasis_image_slot *));
	struct stasis_image_extent *extent_at =
		stasis_image_list_grow(&manifest->extents, count, sizeof(*extent_at));

	if (!slot_at || !extent_at)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "image '%s'", writer->path);
	*slot_at = slot;
	*extent_at = *extent;
	manifest->extent_count = count + 1;
	return 0;
}

int stasis_image_writer_extent_add(struct stasis_image_writer *writer,
				   const struct stasis_image_extent_plan *plan,
				   struct stasis_image_output **ret_output,
				   struct stasis_error *err)
{
	CLEANUP(slot) struct stasis_image_slot *slot = NULL;
	struct stasis_image_extent extent = {0};

	if (writer->manifest.extent_count == STASIS_IMAGE_EXTENTS_MAX)
		return stasis_fail(err, STASIS_REFUSED, "image '%s': more than %d extents",
				   writer->path, STASIS_IMAGE_EXTENTS_MAX);
	if (plan_check(writer, plan, &extent, err) != 0)
		return -1;
	slot = slot_new(&extent);
	if (!slot)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", writer->path);
	if (gpu_dir_make(writer, err) != 0)
		return -1;
	if (stripes_create(writer, slot, err) != 0 ||
	    lists_append(writer, &extent, slot, err) != 0) {
		stripes_remove(writer, slot);
		return -1;
	}
	*ret_output = &slot->public;
	slot = NULL;
	return 0;
}
