/*
 * See rescue.h.
 */

#include "lib/rescue.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "lib/hands.h"

/* A phase in which the driver was in the middle of something that cannot be begun again. */
static bool phase_is_unknown(enum stasis_lib_phase phase)
{
	switch ((int)phase) {
	case STASIS_LIB_CHECKPOINT:
	case STASIS_LIB_SAVE:
	case STASIS_LIB_MANIFEST:
	case STASIS_LIB_COMPLETE_CHECKPOINT:
	case STASIS_LIB_RESTORE:
	case STASIS_LIB_LOAD:
	case STASIS_LIB_COMPLETE_RESTORE:
	case STASIS_LIB_UNDO:
		return true;
	default:
		return false;
	}
}

/* From what the worker had made durable: the published image, or the partial. */
static int image_restore(struct stasis_lib_hands *hands, struct stasis_lib_rescue *rescue,
			 struct stasis_error *err)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	CLEANUP(free) struct stasis_lib_source *source = NULL;
	const struct stasis_lib_knowledge *knowledge = &rescue->knowledge;
	const struct stasis_image_open_options open_options = {
		.is_partial = !knowledge->is_published,
	};
	struct stasis_transfer_options options = {.driver = &hands->driver};
	struct stasis_transfer_result result = {0};
	struct stasis_gpu_set set;

	if (stasis_image_open(knowledge->is_published ? rescue->image_path : knowledge->partial,
			      &open_options, &image, err) != 0 ||
	    stasis_lib_source_of_image(image, &source, err) != 0 ||
	    stasis_lib_source_verify(hands, source, &result, err) != 0)
		return -1;
	/* Ours outlive those of the operation: the engine's rings lie in them. */
	set = (struct stasis_gpu_set){.uuids = source->gpu_uuids,
				      .count = (unsigned int)source->count};
	if (stasis_contexts_retain(&hands->driver, &set, &rescue->contexts, err) != 0 ||
	    stasis_transfer_new(&options, &hands->transfer, err) != 0)
		return -1;
	return stasis_lib_hands_restore(hands, source, false, NULL, err);
}

static int checkpointed_restore(struct stasis_lib_hands *hands, struct stasis_lib_rescue *rescue,
				struct stasis_error *err)
{
	const struct stasis_lib_knowledge *knowledge = &rescue->knowledge;
	int result;

	if (phase_is_unknown(knowledge->phase))
		return stasis_fail(
			err, STASIS_LOST,
			"the workload is suspended; whether it is whole is unknown, since "
			"its worker was lost in phase '%s'",
			stasis_lib_phase_name(knowledge->phase));
	if (knowledge->is_native)
		return stasis_target_restore(&hands->target, NULL, err);
	if (!knowledge->is_durable)
		return stasis_fail(err, STASIS_LOST,
				   "the workload is suspended, and its device memory was lost with "
				   "the worker");
	result = image_restore(hands, rescue, err);
	/* Not restored for want of something of ours: it sleeps on. */
	if (result != 0 && (err->status == STASIS_REFUSED || err->status == STASIS_BAD_IMAGE))
		err->status = STASIS_SUSPENDED;
	return result;
}

static int workload_bring_back(struct stasis_lib_hands *hands, struct stasis_lib_rescue *rescue,
			       struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_state(&hands->target, &state, err) != 0)
		return -1;
	stasis_lib_event(&hands->channel->sink, "state", "%s", stasis_target_state_name(state));
	if (state == CU_PROCESS_STATE_RUNNING)
		return 0;
	if (state == CU_PROCESS_STATE_CHECKPOINTED) {
		if (checkpointed_restore(hands, rescue, err) != 0)
			return -1;
		state = CU_PROCESS_STATE_LOCKED;
	}
	if (state != CU_PROCESS_STATE_LOCKED)
		return stasis_fail(err, STASIS_LOST, "the driver has the workload in state %s",
				   stasis_target_state_name(state));
	if (stasis_lib_hands_unlock(hands, err) != 0) {
		stasis_error_worsen(err, STASIS_SUSPENDED);
		return -1;
	}
	return stasis_lib_hands_confirm(hands, CU_PROCESS_STATE_RUNNING, err);
}

int stasis_lib_rescue_run(struct stasis_lib_channel *channel, void *argument,
			  struct stasis_error *err)
{
	struct stasis_lib_rescue *rescue = argument;
	struct stasis_lib_hands hands = STASIS_LIB_HANDS_INIT(channel);
	int result;

	/* The reader may be gone by now; what was begun here is finished all the same. */
	channel->is_past_cancel = true;
	stasis_lib_phase_enter(channel, STASIS_LIB_RESCUE);
	result = stasis_driver_open(rescue->knowledge.libcuda, &hands.driver, err);
	if (result == 0) {
		stasis_lib_calls_note(&hands.driver, channel->call_word);
		result = stasis_driver_start(&hands.driver, err);
	}
	if (result == 0)
		result = stasis_target_open(&hands.driver, rescue->knowledge.workload,
					    &hands.target, err);
	/* Before its state was read nothing is known; after that, what came of it is. */
	if (result != 0)
		stasis_error_worsen(err, STASIS_LOST);
	else
		result = workload_bring_back(&hands, rescue, err);
	stasis_lib_hands_fini(&hands);
	stasis_contexts_release(&rescue->contexts);
	return result;
}
