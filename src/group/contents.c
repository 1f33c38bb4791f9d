/* See contents.h. */

#include "group/contents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* What the engine is told; segment i is extent i whole. */
struct move {
	struct stasis_transfer_extent *extents;
	struct stasis_transfer_segment *segments;
	size_t count;
	const char *label; /* of the events that tell of it */
	bool can_cancel;
	bool is_verified;
};

static void cleanup_move(struct move *move)
{
	free(move->extents);
	free(move->segments);
}

static int move_begin(struct move *move, size_t room, struct stasis_error *err)
{
	move->extents = calloc(room + 1, sizeof(move->extents[0]));
	move->segments = calloc(room + 1, sizeof(move->segments[0]));
	if (move->extents && move->segments)
		return 0;
	return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "plan the transfer");
}

static void segment_set(struct move *move, size_t index, const struct stasis_group_view *view)
{
	move->segments[index] = (struct stasis_transfer_segment){
		.context = view->context,
		.device_ordinal = view->device_ordinal,
		.device_pointer = view->address,
		.bytes = view->bytes,
		.extent_index = index,
	};
}

/* As many stripes as serve well, or more, where only so the parts fit into the files of a reserve. */
static uint32_t stripe_count_of(const struct stasis_contents_target *target, uint64_t bytes)
{
	const struct stasis_image_reserve_info *reserve = &target->reserve;
	uint32_t well = stasis_transfer_stripe_count(bytes, target->chunk_bytes);

	if (reserve->state != STASIS_IMAGE_RESERVE_READY)
		return well;
	for (uint32_t count = well; count <= reserve->file_count && count <= STASIS_STRIPES_MAX;
	     count++) {
		if (stasis_transfer_reserve_bytes(bytes, target->chunk_bytes, count, 0) <=
		    reserve->file_bytes)
			return count;
	}
	return well;
}

static int extent_add(struct stasis_group *group, struct stasis_layout_extent *extent,
		      const struct stasis_contents_target *target,
		      struct stasis_transfer_extent *ret_extent, struct stasis_error *err)
{
	const struct stasis_group_process *owner = stasis_group_find(group, &extent->owner);
	struct stasis_image_extent_plan plan = {
		.gpu_uuid = extent->device,
		.store = extent->is_host ? STASIS_IMAGE_STORE_HOST : STASIS_IMAGE_STORE_SHARED,
		.logical_bytes = extent->bytes,
		.chunk_bytes = target->chunk_bytes,
		.stripe_count = stripe_count_of(target, extent->bytes),
	};
	struct stasis_image_output *output = NULL;

	if (!owner)
		return stasis_fail(err, STASIS_INTERNAL, "an extent has no process");
	plan.process_index = (uint32_t)(owner - group->processes);
	if (stasis_image_writer_extent_add(target->writer, &plan, &output, err) != 0)
		return -1;
	extent->id = output->id;
	*ret_extent = (struct stasis_transfer_extent){
		.id = output->id,
		.direction = STASIS_TRANSFER_SAVE,
		.name = output->name,
		.bytes = output->logical_bytes,
		.chunk_bytes = output->chunk_bytes,
		.stripe_count = output->stripe_count,
		.chunks = output->chunks,
	};
	for (uint32_t i = 0; i < output->stripe_count; i++) {
		ret_extent->stripe_fds[i] = output->stripe_fds[i];
		ret_extent->stripe_names[i] = output->stripe_names[i];
		ret_extent->stripe_maps[i] = output->stripe_maps[i];
		ret_extent->stripe_map_bytes[i] = output->stripe_map_bytes[i];
	}
	return 0;
}

static void result_report(const struct stasis_group *group, const char *label,
			  const struct stasis_transfer_result *result)
{
	char key[32];

	(void)snprintf(key, sizeof(key), "%s_seconds", label);
	stasis_group_event(group->watch, key, "%.6f", stasis_seconds(result->elapsed_ns));
	(void)snprintf(key, sizeof(key), "%s_bytes", label);
	stasis_group_event(group->watch, key, "%" PRIu64, result->logical_bytes);
}

static int move_run(struct stasis_group *group, struct move *move, struct stasis_transfer *transfer,
		    struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_watch watch =
		group->watch->transfer(group->watch->data, move->label, move->can_cancel);
	struct stasis_transfer_plan plan = {
		.extents = move->extents,
		.extent_count = move->count,
		.segments = move->segments,
		.segment_count = move->count,
		.verify = move->is_verified,
	};

	*ret_result = (struct stasis_transfer_result){.elapsed_ns = 0};
	if (move->count > 0 && stasis_transfer_run(transfer, &plan, &watch, ret_result, err) != 0)
		return -1;
	result_report(group, move->label, ret_result);
	return 0;
}

int stasis_contents_save(struct stasis_group *group, struct stasis_layout *layout,
			 const struct stasis_group_views *views,
			 const struct stasis_contents_target *target,
			 struct stasis_transfer *transfer, struct stasis_error *err)
{
	CLEANUP(move) struct move move = {.label = "save", .can_cancel = true};
	struct stasis_transfer_result result;

	if (move_begin(&move, layout->extent_count, err) != 0)
		return -1;
	for (size_t i = 0; i < layout->extent_count; i++) {
		if (extent_add(group, &layout->extents[i], target, &move.extents[i], err) != 0)
			return -1;
		segment_set(&move, i, &views->items[i]);
		move.count++;
	}
	if (move_run(group, &move, transfer, &result, err) != 0)
		return -1;
	return stasis_image_writer_phase_add(target->writer, "save_allocations", result.elapsed_ns,
					     result.logical_bytes, err);
}

static void input_describe(const struct stasis_image *image, size_t index,
			   struct stasis_transfer_extent *ret_extent)
{
	const struct stasis_image_input *input = stasis_image_input(image, index);

	*ret_extent = (struct stasis_transfer_extent){
		.id = input->extent->id,
		.direction = STASIS_TRANSFER_LOAD,
		.name = input->name,
		.bytes = input->extent->logical_bytes,
		.chunk_bytes = input->extent->chunk_bytes,
		.stripe_count = input->extent->stripe_count,
		/* Read only while loading; the one structure serves both directions. */
		.chunks = (struct stasis_chunk *)(uintptr_t)input->chunks,
	};
	for (uint32_t i = 0; i < input->extent->stripe_count; i++) {
		ret_extent->stripe_fds[i] = input->stripe_fds[i];
		ret_extent->stripe_names[i] = input->stripe_names[i];
		ret_extent->stripe_bytes[i] = input->extent->stripe_bytes[i];
	}
}

int stasis_contents_load(struct stasis_group *group, const struct stasis_layout *layout,
			 const struct stasis_group_views *views, const struct stasis_image *image,
			 bool is_verified, struct stasis_transfer *transfer,
			 struct stasis_error *err)
{
	CLEANUP(move) struct move move = {.label = "load", .is_verified = is_verified};
	struct stasis_transfer_result result;

	if (move_begin(&move, layout->extent_count, err) != 0)
		return -1;
	for (size_t i = 0; i < layout->extent_count; i++) {
		input_describe(image, layout->extents[i].image_index, &move.extents[i]);
		segment_set(&move, i, &views->items[i]);
		move.count++;
	}
	return move_run(group, &move, transfer, &result, err);
}

int stasis_contents_verify(struct stasis_group *group, const struct stasis_image *image,
			   struct stasis_error *err)
{
	CLEANUP(move) struct move move = {.label = "verify", .can_cancel = true};
	size_t count = stasis_image_manifest(image)->extent_count;
	struct stasis_transfer_result result = {.elapsed_ns = 0};
	struct stasis_transfer_watch watch;

	if (move_begin(&move, count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		input_describe(image, i, &move.extents[i]);
	watch = group->watch->transfer(group->watch->data, move.label, move.can_cancel);
	if (count > 0 && stasis_transfer_verify(move.extents, count, &watch, &result, err) != 0)
		return -1;
	result_report(group, move.label, &result);
	return 0;
}
