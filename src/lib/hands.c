/*
 * See hands.h.
 */

#include "lib/hands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

void stasis_lib_hands_fini(struct stasis_lib_hands *hands)
{
	stasis_transfer_free(hands->transfer);
	hands->transfer = NULL;
	stasis_target_close(&hands->target);
}

static void memory_sample(struct stasis_lib_hands *hands)
{
	uint64_t kib;

	if (!stasis_process_status_kib(getpid(), "RssAnon:", &kib))
		return;
	if (kib * STASIS_KIB > hands->rss_anon_peak_bytes)
		hands->rss_anon_peak_bytes = kib * STASIS_KIB;
}

/* Called by the engine in our thread, every 40 ms or so. */
static void progress_report(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	struct stasis_lib_hands *hands = data;

	memory_sample(hands);
	stasis_lib_channel_progress(hands->channel, hands->progress_label, done_bytes, total_bytes);
	if (stasis_lib_channel_is_cancelled(hands->channel))
		atomic_store(&hands->is_cancelled, true);
}

struct stasis_transfer_watch stasis_lib_hands_watch(struct stasis_lib_hands *hands,
						    const char *label, bool can_cancel)
{
	hands->progress_label = label;
	atomic_store(&hands->is_cancelled, false);
	return (struct stasis_transfer_watch){
		.progress = progress_report,
		.progress_data = hands,
		.cancel = can_cancel ? &hands->is_cancelled : NULL,
		.deadline_ns = STASIS_NO_DEADLINE,
	};
}

void stasis_lib_hands_measure(struct stasis_lib_hands *hands,
			      const struct stasis_transfer_result *result)
{
	memory_sample(hands);
	if (result->pinned_peak_bytes > hands->pinned_peak_bytes)
		hands->pinned_peak_bytes = result->pinned_peak_bytes;
}

int stasis_lib_hands_confirm(struct stasis_lib_hands *hands, CUprocessState expected,
			     struct stasis_error *err)
{
	CUprocessState state;

	if (stasis_target_state(&hands->target, &state, err) != 0)
		return -1;
	stasis_lib_event(&hands->channel->sink, "state", "%s", stasis_target_state_name(state));
	if (state == expected)
		return 0;
	return stasis_fail(err, STASIS_LOST, "process %d is %s, but should be %s",
			   (int)hands->target.process.pid, stasis_target_state_name(state),
			   stasis_target_state_name(expected));
}

int stasis_lib_hands_unlock(struct stasis_lib_hands *hands, struct stasis_error *err)
{
	struct stasis_error failure = STASIS_ERROR_INIT;
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_unlock(&hands->target, &failure) == 0)
		return 0;
	if (stasis_target_state(&hands->target, &state, NULL) == 0 &&
	    state == CU_PROCESS_STATE_RUNNING)
		return 0;
	stasis_error_take(err, &failure);
	return -1;
}

static void extent_of_input(struct stasis_lib_source *source, size_t index,
			    const struct stasis_image_input *input)
{
	const struct stasis_image_extent *extent = input->extent;
	struct stasis_transfer_extent *ours = &source->extents[index];

	*ours = (struct stasis_transfer_extent){
		.id = extent->id,
		.direction = STASIS_TRANSFER_LOAD,
		.name = input->name,
		.bytes = extent->logical_bytes,
		.chunk_bytes = extent->chunk_bytes,
		.stripe_count = extent->stripe_count,
		/* Read only while loading; the one structure serves both directions. */
		.chunks = (struct stasis_chunk *)(uintptr_t)input->chunks,
	};
	for (uint32_t i = 0; i < extent->stripe_count; i++) {
		char *name = source->stripe_names[index][i];

		(void)snprintf(name, sizeof(source->stripe_names[index][i]), "%s.%u", input->name,
			       i);
		ours->stripe_fds[i] = input->stripe_fds[i];
		ours->stripe_names[i] = name;
		ours->stripe_bytes[i] = extent->stripe_bytes[i];
	}
}

struct stasis_lib_source *stasis_lib_source_new(size_t extent_count)
{
	/* Behind each other in the order of their alignment; at most STASIS_IMAGE_EXTENTS_MAX of each. */
	struct stasis_lib_source *source =
		calloc(1, sizeof(*source) + extent_count * (sizeof(*source->extents) +
							    sizeof(*source->gpu_uuids) +
							    sizeof(*source->stripe_names)));

	if (!source)
		return NULL;
	source->extents = (struct stasis_transfer_extent *)(source + 1);
	source->gpu_uuids = (struct stasis_id *)(source->extents + extent_count);
	source->stripe_names = (stasis_lib_stripe_names *)(source->gpu_uuids + extent_count);
	return source;
}

int stasis_lib_source_of_image(const struct stasis_image *image,
			       struct stasis_lib_source **ret_source, struct stasis_error *err)
{
	const struct stasis_image_manifest *manifest = stasis_image_manifest(image);
	struct stasis_lib_source *source = stasis_lib_source_new(manifest->extent_count);

	if (!source)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "list the image's extents");
	source->count = manifest->extent_count;
	for (size_t i = 0; i < source->count; i++) {
		const struct stasis_image_input *input = stasis_image_input(image, i);

		extent_of_input(source, i, input);
		source->gpu_uuids[i] = manifest->gpus[input->extent->gpu_index].uuid;
	}
	*ret_source = source;
	return 0;
}

int stasis_lib_source_verify(struct stasis_lib_hands *hands, const struct stasis_lib_source *source,
			     struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_watch watch = stasis_lib_hands_watch(hands, "verify", true);
	int result =
		stasis_transfer_verify(source->extents, source->count, &watch, ret_result, err);

	stasis_lib_hands_measure(hands, ret_result);
	return result;
}

static int views_match(struct stasis_operation *operation, const struct stasis_lib_source *source,
		       struct stasis_error *err)
{
	struct stasis_view_expected expected[STASIS_DEVICES_MAX];

	for (size_t i = 0; i < source->count; i++) {
		expected[i].uuid = source->gpu_uuids[i];
		expected[i].bytes = source->extents[i].bytes;
	}
	return stasis_operation_match(operation, expected, (unsigned int)source->count, err);
}

/* One try. Never cancelled: there is no way back from a restore that has begun. */
static int bytes_load_once(struct stasis_lib_hands *hands, const struct stasis_operation *operation,
			   struct stasis_lib_source *source, bool is_verified,
			   struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_watch watch = stasis_lib_hands_watch(hands, "load", false);
	struct stasis_transfer_segment segments[STASIS_DEVICES_MAX];
	struct stasis_transfer_plan plan = {
		.extents = source->extents,
		.extent_count = source->count,
		.segments = segments,
		.segment_count = source->count,
		.verify = is_verified,
	};
	int result;

	for (size_t i = 0; i < source->count; i++) {
		const struct stasis_view *view =
			stasis_operation_view(operation, &source->gpu_uuids[i]);

		segments[i] = (struct stasis_transfer_segment){
			.context = view->context,
			.device_ordinal = view->device.ordinal,
			.device_pointer = view->pointer,
			.bytes = view->bytes,
			.extent_index = i,
		};
	}
	result = stasis_transfer_run(hands->transfer, &plan, &watch, ret_result, err);
	stasis_lib_hands_measure(hands, ret_result);
	return result;
}

static int bytes_load(struct stasis_lib_hands *hands, const struct stasis_operation *operation,
		      struct stasis_lib_source *source, bool is_verified,
		      const struct stasis_lib_mender *mender, struct stasis_error *err)
{
	struct stasis_transfer_result result = {0};
	struct stasis_error first = STASIS_ERROR_INIT;

	if (source->count == 0 ||
	    bytes_load_once(hands, operation, source, is_verified, &result, &first) == 0)
		return 0;
	if (result.has_damage && mender) {
		if (mender->mend(mender->argument, &result, err) != 0)
			return -1;
	} else if (result.has_damage || result.failed_side != STASIS_TRANSFER_FILE_SIDE) {
		stasis_error_take(err, &first);
		return -1;
	} else {
		stasis_lib_event(&hands->channel->sink, "warning", "%s; loading again", first.text);
	}
	return bytes_load_once(hands, operation, source, is_verified, &result, err);
}

/* From a begun operation to LOCKED. A failure here is fatal for the target. */
static int restore_finish(struct stasis_lib_hands *hands, struct stasis_operation *operation,
			  struct stasis_lib_source *source, bool is_verified,
			  const struct stasis_lib_mender *mender, struct stasis_error *err)
{
	if (views_match(operation, source, err) != 0)
		return -1;
	stasis_lib_phase_enter(hands->channel, STASIS_LIB_LOAD);
	if (bytes_load(hands, operation, source, is_verified, mender, err) != 0) {
		stasis_error_worsen(err, STASIS_LOST);
		stasis_operation_mark_fatal(operation, err);
		return -1;
	}
	stasis_lib_phase_enter(hands->channel, STASIS_LIB_COMPLETE_RESTORE);
	return stasis_operation_complete(operation, err);
}

int stasis_lib_hands_restore(struct stasis_lib_hands *hands, struct stasis_lib_source *source,
			     bool is_verified, const struct stasis_lib_mender *mender,
			     struct stasis_error *err)
{
	CLEANUP(operation) struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_operation_options options = {
		.direction = STASIS_OPERATION_RESTORE,
		.gpus = {.uuids = source->gpu_uuids, .count = (unsigned int)source->count},
	};
	bool was_past_cancel = hands->channel->is_past_cancel;
	int result;

	if (source->count > STASIS_DEVICES_MAX)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "the image has %zu extents, more than the %d devices that a "
				   "process can have",
				   source->count, STASIS_DEVICES_MAX);
	result = stasis_operation_begin(&operation, &hands->target, &options, err);
	if (result == 0) {
		/* From here there is only one way: forward. */
		hands->channel->is_past_cancel = true;
		result = restore_finish(hands, &operation, source, is_verified, mender, err);
		hands->channel->is_past_cancel = was_past_cancel;
	}
	(void)stasis_operation_acknowledge_fatal(&operation, NULL);
	return result;
}
