/*
 * A published image to a workload that runs again and has compared every byte. Damage, where it was asked
 * for, is done to the image first, must be found where the verification asked for finds it, and is then
 * repaired, so that the proof ends with a living program.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "lib/round.h"

static int image_damage(struct stasis_lib_round *round, struct stasis_error *err)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	struct stasis_lib_damage *damage = &round->damage;
	bool is_truncating = round->options->damage == STASIS_DAMAGE_TRUNCATE;
	int result;

	if (round->options->damage == STASIS_DAMAGE_NONE)
		return 0;
	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_DAMAGE, err) != 0 ||
	    stasis_image_open(round->options->artifact_dir, NULL, &image, err) != 0)
		return -1;
	result = is_truncating ? stasis_lib_damage_truncate(image, damage, err)
			       : stasis_lib_damage_corrupt(image, round->seed,
							   round->options->bytes, damage, err);
	if (result != 0)
		return -1;
	stasis_lib_event(round->sink, "damage", "%s", is_truncating ? "truncated" : "corrupted");
	stasis_lib_event(round->sink, "damage_file", "%s", damage->name);
	stasis_lib_event(round->sink, "damage_offset", "%" PRIu64, damage->offset);
	stasis_lib_event(round->sink, "damage_file_bytes", "%" PRIu64, damage->file_bytes);
	if (is_truncating)
		return 0;
	stasis_lib_event(round->sink, "damage_chunk", "%" PRIu64, damage->chunk_index);
	stasis_lib_event(round->sink, "damage_application_offset", "%" PRIu64,
			 damage->workload_offset);
	return 0;
}

/* Damage was refused: the driver must not have been asked to restore. Then it is undone. */
static int refusal_expect(struct stasis_lib_round *round, const struct stasis_error *refusal,
			  struct stasis_error *err)
{
	struct stasis_lib_channel *channel = round->hands.channel;

	stasis_lib_event(round->sink, "refused", "%s", refusal->text);
	if (stasis_lib_phase_begin(channel, STASIS_LIB_EXPECT_REFUSAL, err) != 0 ||
	    stasis_lib_hands_confirm(&round->hands, CU_PROCESS_STATE_CHECKPOINTED, err) != 0)
		return -1;
	if (refusal->status != STASIS_BAD_IMAGE)
		return stasis_fail(err, STASIS_REFUSED,
				   "the damaged image was refused, but not as damaged: %s",
				   refusal->text);
	if (stasis_lib_phase_begin(channel, STASIS_LIB_REPAIR, err) != 0)
		return -1;
	return stasis_lib_damage_repair(&round->damage, err);
}

/* The free memory of the GPU must take the extents again. */
static int room_check(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_gpu_room room = {
		.uuid = round->gpu.uuid,
		.need_bytes = round->extent_bytes,
	};

	if (stasis_gpu_rooms_read(&round->hands.driver, &room, 1, err) != 0)
		return -1;
	return stasis_gpu_rooms_check(&room, 1, STASIS_CONTEXT_BYTES, err);
}

static int image_validate_once(struct stasis_lib_round *round, struct stasis_image **ret_image,
			       struct stasis_error *err)
{
	const struct stasis_image_view gpu = {
		.gpu_uuid = round->gpu.uuid,
		.bytes = round->gpu.total_bytes,
	};
	const struct stasis_image_manifest *manifest;

	if (stasis_image_open(round->options->artifact_dir, NULL, ret_image, err) != 0)
		return -1;
	manifest = stasis_image_manifest(*ret_image);
	if (manifest->extent_count != round->extent_count)
		return stasis_fail(err, STASIS_BAD_IMAGE, "image '%s' has %zu extents, not %u",
				   round->options->artifact_dir, manifest->extent_count,
				   round->extent_count);
	return stasis_image_check_gpus(manifest, &gpu, 1, err);
}

/* Manifest, sizes, devices, extent count. A truncated file must be refused here. */
static int image_validate(struct stasis_lib_round *round, struct stasis_image **ret_image,
			  struct stasis_error *err)
{
	struct stasis_error refusal = STASIS_ERROR_INIT;

	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_VALIDATE, err) != 0)
		return -1;
	if (round->options->damage != STASIS_DAMAGE_TRUNCATE)
		return image_validate_once(round, ret_image, err);
	if (image_validate_once(round, ret_image, &refusal) == 0)
		return stasis_fail(err, STASIS_REFUSED, "the truncated image was accepted");
	stasis_image_close(*ret_image);
	*ret_image = NULL;
	if (refusal_expect(round, &refusal, err) != 0 ||
	    stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_VALIDATE, err) != 0)
		return -1;
	stasis_lib_event(round->sink, "damage_found_by", "validation of sizes, before the restore");
	return image_validate_once(round, ret_image, err);
}

/* The digests must have named the very chunk that was changed. */
static int damage_named_check(struct stasis_lib_round *round,
			      const struct stasis_transfer_result *result, struct stasis_error *err)
{
	const struct stasis_lib_damage *damage = &round->damage;

	if (!result->has_damage || result->damage_extent_index != damage->extent_index ||
	    result->damage_chunk_index != damage->chunk_index ||
	    result->damage_file_offset != damage->chunk_offset)
		return stasis_fail(err, STASIS_REFUSED,
				   "damage was found elsewhere than it was done: extent %zu, chunk "
				   "%" PRIu64 ", file offset %" PRIu64,
				   result->damage_extent_index, result->damage_chunk_index,
				   result->damage_file_offset);
	stasis_lib_event(round->sink, "found_file", "%s", damage->name);
	stasis_lib_event(round->sink, "found_chunk", "%" PRIu64, result->damage_chunk_index);
	stasis_lib_event(round->sink, "found_chunk_offset", "%" PRIu64, result->damage_file_offset);
	return 0;
}

/* Every byte against its digest, before the driver is asked for anything. */
static int image_verify(struct stasis_lib_round *round, const struct stasis_lib_source *source,
			struct stasis_error *err)
{
	struct stasis_transfer_result result = {0};
	struct stasis_error refusal = STASIS_ERROR_INIT;

	if (round->options->verify != STASIS_VERIFY_BEFORE)
		return 0;
	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_VERIFY, err) != 0)
		return -1;
	if (round->options->damage != STASIS_DAMAGE_CORRUPT)
		return stasis_lib_source_verify(&round->hands, source, &result, err);
	if (stasis_lib_source_verify(&round->hands, source, &result, &refusal) == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "the corrupted image passed the comparison with its digests");
	if (refusal.status != STASIS_BAD_IMAGE) {
		stasis_error_take(err, &refusal);
		return -1;
	}
	if (damage_named_check(round, &result, err) != 0 ||
	    refusal_expect(round, &refusal, err) != 0)
		return -1;
	stasis_lib_event(round->sink, "damage_found_by", "digests, before the restore");
	return stasis_lib_source_verify(&round->hands, source, &result, err);
}

/* Damage was found while loading; the views are still open, so the right bytes can still come. */
static int damage_mend(void *argument, const struct stasis_transfer_result *result,
		       struct stasis_error *err)
{
	struct stasis_lib_round *round = argument;

	if (damage_named_check(round, result, err) != 0)
		return -1;
	stasis_lib_event(round->sink, "damage_found_by", "digests, while loading");
	stasis_lib_phase_enter(round->hands.channel, STASIS_LIB_REPAIR);
	return stasis_lib_damage_repair(&round->damage, err);
}

static int custom_restore(struct stasis_lib_round *round, struct stasis_error *err)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	CLEANUP(free) struct stasis_lib_source *source = NULL;
	bool is_loading = round->options->verify == STASIS_VERIFY_LOADING;
	const struct stasis_lib_mender mender = {.mend = damage_mend, .argument = round};
	bool is_mended = is_loading && round->options->damage == STASIS_DAMAGE_CORRUPT;

	if (image_damage(round, err) != 0 || image_validate(round, &image, err) != 0 ||
	    stasis_lib_source_of_image(image, &source, err) != 0 ||
	    image_verify(round, source, err) != 0 || room_check(round, err) != 0 ||
	    stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_RESTORE, err) != 0)
		return -1;
	round->mark_ns = stasis_clock_now_ns();
	round->has_tried_restore = true;
	if (stasis_lib_hands_restore(&round->hands, source, is_loading, is_mended ? &mender : NULL,
				     err) != 0)
		return -1;
	if (is_mended && round->damage.is_done) {
		/* The program goes on with the damage in its memory: better said than hidden. */
		return stasis_fail(err, STASIS_LOST,
				   "the corrupted image was loaded though digests were compared");
	}
	return 0;
}

static int native_restore(struct stasis_lib_round *round, struct stasis_error *err)
{
	CLEANUP(image) struct stasis_image *image = NULL;

	if (image_validate(round, &image, err) != 0 ||
	    stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_RESTORE, err) != 0)
		return -1;
	round->mark_ns = stasis_clock_now_ns();
	round->has_tried_restore = true;
	return stasis_target_restore(&round->hands.target, NULL, err);
}

static int workload_release(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_lib_hands *hands = &round->hands;

	if (stasis_lib_phase_begin(hands->channel, STASIS_LIB_CONFIRM_LOCKED, err) != 0 ||
	    stasis_lib_hands_confirm(hands, CU_PROCESS_STATE_LOCKED, err) != 0 ||
	    stasis_lib_phase_begin(hands->channel, STASIS_LIB_UNLOCK, err) != 0 ||
	    stasis_target_unlock(&hands->target, err) != 0 ||
	    stasis_lib_phase_begin(hands->channel, STASIS_LIB_CONFIRM_RESUMED, err) != 0 ||
	    stasis_lib_hands_confirm(hands, CU_PROCESS_STATE_RUNNING, err) != 0)
		return -1;
	round->restore_ns = stasis_clock_now_ns() - round->mark_ns;
	stasis_lib_event(round->sink, "restore_seconds", "%.6f", stasis_seconds(round->restore_ns));
	return 0;
}

/* With damage still in the image, the workload must have found it, where it was done. */
static int comparison_judge(struct stasis_lib_round *round,
			    const struct stasis_lib_comparison *comparison,
			    struct stasis_error *err)
{
	const struct stasis_lib_damage *damage = &round->damage;

	if (comparison->is_right && !damage->is_done) {
		stasis_lib_event(round->sink, "application_bytes_verified", "%" PRIu64,
				 round->options->bytes);
		return 0;
	}
	if (comparison->is_right)
		return stasis_fail(err, STASIS_LOST,
				   "the workload did not find the byte that was changed");
	if (!damage->is_done || comparison->offset != damage->workload_offset)
		return stasis_fail(err, STASIS_LOST,
				   "the workload's memory is wrong at offset %" PRIu64 ": %s",
				   comparison->offset, comparison->text);
	stasis_lib_event(round->sink, "first_wrong_offset", "%" PRIu64, comparison->offset);
	stasis_lib_event(round->sink, "first_wrong_byte", "%s", comparison->text);
	stasis_lib_event(round->sink, "damage_found_by", "the workload, after the restore");
	return 0;
}

static int workload_prove(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_lib_channel *channel = round->hands.channel;
	struct stasis_lib_comparison comparison = {0};

	if (stasis_lib_phase_begin(channel, STASIS_LIB_COMPARE, err) != 0)
		return -1;
	round->has_compared = true;
	if (stasis_lib_workload_compare(&round->workload, channel, &comparison, err) != 0 ||
	    comparison_judge(round, &comparison, err) != 0 ||
	    stasis_lib_phase_begin(channel, STASIS_LIB_OPERATE, err) != 0 ||
	    stasis_lib_workload_operate(&round->workload, channel, err) != 0)
		return -1;
	stasis_lib_event(round->sink, "post_restore_operation", "passed");
	if (stasis_lib_phase_begin(channel, STASIS_LIB_FINISH, err) != 0)
		return -1;
	stasis_target_close(&round->hands.target);
	return stasis_lib_workload_finish(&round->workload, comparison.is_right ? 0 : 1, err);
}

int stasis_lib_round_return(struct stasis_lib_round *round, struct stasis_error *err)
{
	int result = round->is_custom ? custom_restore(round, err) : native_restore(round, err);

	if (result != 0 || workload_release(round, err) != 0)
		return -1;
	return workload_prove(round, err);
}
