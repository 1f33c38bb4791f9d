/*
 * RUNNING to CHECKPOINTED with a published image. Between begin and complete there is no way back: when
 * the destination fails there, the whole extent goes to the memory that was reserved, and the operation is
 * completed all the same; undo.c then brings the workload back from it.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "lib/round.h"

#define LOCK_TIMEOUT_MS 10000

struct capture {
	struct stasis_lib_round *round;
	struct stasis_operation operation;
	struct stasis_lib_source *plan; /* the extents being saved; heap */
};

static unsigned int lock_timeout_ms(const struct stasis_roundtrip_options *options)
{
	uint64_t half_ms = options->timeout_ns / 2 / STASIS_NS_PER_MS;

	return half_ms == 0                ? 1
	       : half_ms < LOCK_TIMEOUT_MS ? (unsigned int)half_ms
					   : LOCK_TIMEOUT_MS;
}

static void extents_report(struct stasis_lib_round *round, const struct stasis_operation *operation)
{
	char uuid[STASIS_UUID_TEXT_BYTES];

	for (unsigned int i = 0; i < operation->view_count; i++) {
		const struct stasis_view *view = &operation->views[i];

		stasis_lib_event_of(round->sink, "extent", i, "device", "%d", view->device.ordinal);
		stasis_lib_event_of(round->sink, "extent", i, "uuid", "%s",
				    stasis_uuid_format(&view->device.uuid, uuid));
		stasis_lib_event_of(round->sink, "extent", i, "pointer", "0x%llx", view->pointer);
		stasis_lib_event_of(round->sink, "extent", i, "bytes", "%" PRIu64, view->bytes);
		stasis_lib_event_of(round->sink, "extent", i, "stream", "%p", (void *)view->stream);
		round->extent_bytes += view->bytes;
	}
	round->extent_count = operation->view_count;
	stasis_lib_event(round->sink, "extent_count", "%u", operation->view_count);
	stasis_lib_event(round->sink, "extent_bytes", "%" PRIu64, round->extent_bytes);
}

/* Runs the engine over all views; plan->extents[i] belongs to views[i]. */
static int views_save(struct capture *capture, struct stasis_lib_source *plan, bool can_cancel,
		      struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_lib_hands *hands = &capture->round->hands;
	struct stasis_transfer_watch watch = stasis_lib_hands_watch(hands, "save", can_cancel);
	struct stasis_transfer_segment segments[STASIS_DEVICES_MAX];
	struct stasis_transfer_plan run = {
		.extents = plan->extents,
		.extent_count = plan->count,
		.segments = segments,
		.segment_count = plan->count,
	};
	int result;

	if (plan->count == 0)
		return 0;
	for (size_t i = 0; i < plan->count; i++) {
		const struct stasis_view *view = &capture->operation.views[i];

		segments[i] = (struct stasis_transfer_segment){
			.context = view->context,
			.device_ordinal = view->device.ordinal,
			.device_pointer = view->pointer,
			.bytes = view->bytes,
			.extent_index = i,
		};
	}
	result = stasis_transfer_run(hands->transfer, &run, &watch, ret_result, err);
	stasis_lib_hands_measure(hands, ret_result);
	return result;
}

/* As many stripes as serve well, or more, where only so its parts fit into the files of a reserve. */
static uint32_t stripe_count_of(const struct stasis_lib_round *round, uint64_t bytes)
{
	uint64_t chunk_bytes = stasis_lib_round_chunk_bytes(round);
	uint32_t well = stasis_transfer_stripe_count(bytes, chunk_bytes);

	for (uint32_t count = well;
	     count <= round->reserve_file_count && count <= STASIS_STRIPES_MAX; count++) {
		if (stasis_transfer_reserve_bytes(bytes, chunk_bytes, count, 0) <=
		    round->reserve_file_bytes)
			return count;
	}
	return well;
}

/* Makes the files of one view's extent and lends them to the engine. */
static int extent_add(struct capture *capture, size_t index, struct stasis_error *err)
{
	const struct stasis_view *view = &capture->operation.views[index];
	struct stasis_lib_source *plan = capture->plan;
	struct stasis_image_extent_plan request = {
		.process_index = capture->round->process_index,
		.gpu_uuid = view->device.uuid,
		.store = STASIS_IMAGE_STORE_CUSTOM,
		.logical_bytes = view->bytes,
		.chunk_bytes = stasis_lib_round_chunk_bytes(capture->round),
		.stripe_count = stripe_count_of(capture->round, view->bytes),
	};
	struct stasis_image_output *output = NULL;

	if (stasis_image_writer_extent_add(capture->round->writer, &request, &output, err) != 0)
		return -1;
	plan->gpu_uuids[index] = view->device.uuid;
	plan->extents[index] = (struct stasis_transfer_extent){
		.id = output->id,
		.direction = STASIS_TRANSFER_SAVE,
		.name = output->name,
		.bytes = output->logical_bytes,
		.chunk_bytes = output->chunk_bytes,
		.stripe_count = output->stripe_count,
		.chunks = output->chunks,
	};
	for (uint32_t i = 0; i < output->stripe_count; i++) {
		char *name = plan->stripe_names[index][i];

		(void)snprintf(name, sizeof(plan->stripe_names[index][i]), "%s.%u", output->name,
			       i);
		plan->extents[index].stripe_fds[i] = output->stripe_fds[i];
		plan->extents[index].stripe_names[i] = name;
		plan->extents[index].stripe_maps[i] = output->stripe_maps[i];
		plan->extents[index].stripe_map_bytes[i] = output->stripe_map_bytes[i];
	}
	return 0;
}

/* From the views to durable files. A failure here leaves the bytes where they were. */
static int files_save(struct capture *capture, bool *ret_is_device_lost, struct stasis_error *err)
{
	struct stasis_lib_round *round = capture->round;
	struct stasis_transfer_result result = {0};

	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_SAVE, err) != 0)
		return -1;
	for (unsigned int i = 0; i < capture->operation.view_count; i++) {
		if (extent_add(capture, i, err) != 0)
			return -1;
	}
	capture->plan->count = capture->operation.view_count;
	if (views_save(capture, capture->plan, true, &result, err) != 0) {
		*ret_is_device_lost = result.failed_side == STASIS_TRANSFER_DEVICE_SIDE;
		return -1;
	}
	stasis_lib_event(round->sink, "file_store", "%s", stasis_transfer_store_name(result.store));
	stasis_lib_event(round->sink, "stored_bytes", "%" PRIu64, result.stored_bytes);
	stasis_lib_event(round->sink, "zero_bytes", "%" PRIu64, result.zero_bytes);
	stasis_lib_event(round->sink, "save_seconds", "%.6f", stasis_seconds(result.elapsed_ns));
	if (stasis_image_writer_phase_add(round->writer, "save", result.elapsed_ns,
					  result.logical_bytes, err) != 0 ||
	    stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_MANIFEST, err) != 0 ||
	    stasis_image_writer_seal(round->writer, err) != 0)
		return -1;
	return stasis_image_writer_stage(round->writer, err);
}

/* An extent in the reserved memory for view 0, with chunks of its own. */
static int reserved_describe(struct capture *capture, struct stasis_error *err)
{
	const struct stasis_view *view = &capture->operation.views[0];
	struct stasis_lib_round *round = capture->round;
	struct stasis_lib_source *source = stasis_lib_source_new(1);
	struct stasis_chunk *chunks =
		calloc((size_t)stasis_chunk_count(view->bytes, stasis_lib_round_chunk_bytes(round)),
		       sizeof(*chunks));

	if (!source || !chunks) {
		free(source);
		free(chunks);
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM,
					"describe the reserved memory");
	}
	source->count = 1;
	source->gpu_uuids[0] = view->device.uuid;
	source->extents[0] = (struct stasis_transfer_extent){
		.direction = STASIS_TRANSFER_SAVE,
		.name = "reserved memory",
		.bytes = view->bytes,
		.chunk_bytes = stasis_lib_round_chunk_bytes(round),
		.stripe_count = 1,
		.memory = &round->reserve,
		.chunks = chunks,
	};
	round->reserved = source;
	return stasis_id_random(&source->extents[0].id, err);
}

/* The destination failed, as `cause` says: the bytes go to the reserved memory instead. */
static int redirect(struct capture *capture, const struct stasis_error *cause,
		    struct stasis_error *err)
{
	struct stasis_lib_round *round = capture->round;
	struct stasis_transfer_result result = {0};

	if (capture->operation.view_count == 0)
		return 0;
	if (round->reserve.fd < 0 || capture->operation.view_count > 1 ||
	    stasis_transfer_reserve_bytes(capture->operation.views[0].bytes,
					  stasis_lib_round_chunk_bytes(round), 1,
					  0) > round->reserve.bytes)
		return stasis_fail(err, STASIS_LOST,
				   "the driver has begun, and no memory was reserved to take the "
				   "bytes: process %d is lost",
				   (int)round->workload.pid);
	stasis_lib_event(round->sink, "warning", "%s; the bytes go to reserved host memory",
			 cause->text);
	if (reserved_describe(capture, err) != 0 ||
	    views_save(capture, round->reserved, false, &result, err) != 0)
		return -1;
	round->reserved->extents[0].direction = STASIS_TRANSFER_LOAD;
	round->copy = STASIS_LIB_COPY_MEMORY;
	return 0;
}

/*
 * From a begun operation to CHECKPOINTED, by whatever way keeps the bytes. -1 with round->copy set: the
 * workload is suspended, its bytes are there, and `err` says what failed.
 */
static int operation_finish(struct capture *capture, struct stasis_error *err)
{
	struct stasis_lib_round *round = capture->round;
	struct stasis_error worse = STASIS_ERROR_INIT;
	bool is_device_lost = false;
	int result = files_save(capture, &is_device_lost, err);

	if (result == 0) {
		round->copy = STASIS_LIB_COPY_PARTIAL;
		stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_DURABLE, "");
	} else if (is_device_lost || redirect(capture, err, &worse) != 0) {
		stasis_error_worsen(err, STASIS_LOST);
		if (stasis_error_is_set(&worse))
			stasis_error_append(err, "; then: %s", worse.text);
		stasis_operation_mark_fatal(&capture->operation, err);
		return -1;
	}
	/* There is no way but forward, whatever the supervisor wants by now. */
	stasis_lib_phase_enter(round->hands.channel, STASIS_LIB_COMPLETE_CHECKPOINT);
	if (stasis_operation_complete(&capture->operation, result == 0 ? err : &worse) != 0) {
		if (result != 0)
			stasis_error_append(err, "; then: %s", worse.text);
		stasis_error_worsen(err, result == 0 ? err->status : worse.status);
		return -1;
	}
	return result;
}

static int custom_checkpoint(struct stasis_lib_round *round, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_lib_source *plan = stasis_lib_source_new(STASIS_DEVICES_MAX);
	struct capture capture = {.round = round, .plan = plan};
	struct stasis_operation_options options = {
		.direction = STASIS_OPERATION_CHECKPOINT,
		.gpus = {.uuids = &round->gpu.uuid, .count = 1},
	};
	int result;

	if (!plan)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "plan the capture");
	result = stasis_operation_begin(&capture.operation, &round->hands.target, &options, err);
	if (result == 0) {
		extents_report(round, &capture.operation);
		result = operation_finish(&capture, err);
	}
	(void)stasis_operation_acknowledge_fatal(&capture.operation, NULL);
	stasis_operation_close(&capture.operation);
	return result;
}

static int native_checkpoint(struct stasis_lib_round *round, struct stasis_error *err)
{
	/* Before the call: if it fails and the workload sleeps all the same, its bytes are with it. */
	round->copy = STASIS_LIB_COPY_NATIVE;
	if (stasis_target_checkpoint(&round->hands.target, err) != 0)
		return -1;
	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_MANIFEST, err) != 0 ||
	    stasis_image_writer_seal(round->writer, err) != 0)
		return -1;
	return stasis_image_writer_stage(round->writer, err);
}

static int image_publish(struct stasis_lib_round *round, struct stasis_error *err)
{
	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_PUBLISH, err) != 0 ||
	    stasis_image_writer_phase_add(round->writer, "checkpoint", round->checkpoint_ns,
					  round->extent_bytes, err) != 0 ||
	    stasis_image_writer_publish(round->writer, err) != 0)
		return -1;
	stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_PUBLISHED, "");
	if (round->is_custom)
		round->copy = STASIS_LIB_COPY_IMAGE;
	stasis_lib_event(round->sink, "image", "%s", round->options->artifact_dir);
	return 0;
}

int stasis_lib_round_capture(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_lib_channel *channel = round->hands.channel;
	int result;

	if (stasis_lib_phase_begin(channel, STASIS_LIB_LOCK, err) != 0)
		return -1;
	round->mark_ns = stasis_clock_now_ns();
	if (stasis_target_lock(&round->hands.target, lock_timeout_ms(round->options), err) != 0 ||
	    stasis_lib_hands_confirm(&round->hands, CU_PROCESS_STATE_LOCKED, err) != 0 ||
	    stasis_lib_phase_begin(channel, STASIS_LIB_CHECKPOINT, err) != 0)
		return -1;
	result = round->is_custom ? custom_checkpoint(round, err) : native_checkpoint(round, err);
	if (result != 0)
		return -1;
	if (stasis_lib_phase_begin(channel, STASIS_LIB_CONFIRM_CHECKPOINTED, err) != 0 ||
	    stasis_lib_hands_confirm(&round->hands, CU_PROCESS_STATE_CHECKPOINTED, err) != 0)
		return -1;
	round->checkpoint_ns = stasis_clock_now_ns() - round->mark_ns;
	stasis_lib_event(round->sink, "checkpoint_seconds", "%.6f",
			 stasis_seconds(round->checkpoint_ns));
	return image_publish(round, err);
}
