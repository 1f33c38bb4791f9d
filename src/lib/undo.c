/*
 * What is done when a round trip fails: the driver is asked what state the workload is in, and the workload
 * is brought back from wherever its bytes are. A restore that the driver was asked for and failed is never
 * tried again.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lib/round.h"

static bool has_target(const struct stasis_lib_round *round)
{
	return round->hands.target.process.pidfd >= 0;
}

static int image_restore(struct stasis_lib_round *round, struct stasis_error *err)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	CLEANUP(free) struct stasis_lib_source *source = NULL;
	struct stasis_transfer_result result = {0};
	bool is_partial = round->copy == STASIS_LIB_COPY_PARTIAL;
	const struct stasis_image_open_options options = {.is_partial = is_partial};
	const char *path = is_partial ? stasis_image_writer_partial_path(round->writer)
				      : round->options->artifact_dir;

	if (stasis_lib_damage_repair(&round->damage, err) != 0 ||
	    stasis_image_open(path, &options, &image, err) != 0 ||
	    stasis_lib_source_of_image(image, &source, err) != 0 ||
	    stasis_lib_source_verify(&round->hands, source, &result, err) != 0)
		return -1;
	round->has_tried_restore = true;
	return stasis_lib_hands_restore(&round->hands, source, false, NULL, err);
}

static int copy_restore(struct stasis_lib_round *round, struct stasis_error *err)
{
	switch (round->copy) {
	case STASIS_LIB_COPY_NATIVE:
		round->has_tried_restore = true;
		return stasis_target_restore(&round->hands.target, NULL, err);
	case STASIS_LIB_COPY_MEMORY:
		round->has_tried_restore = true;
		return stasis_lib_hands_restore(&round->hands, round->reserved, true, NULL, err);
	case STASIS_LIB_COPY_PARTIAL:
	case STASIS_LIB_COPY_IMAGE:
		return image_restore(round, err);
	case STASIS_LIB_COPY_NONE:
		break;
	}
	return stasis_fail(err, STASIS_LOST, "it is suspended, and nothing holds its memory");
}

/* Whatever state it is in, towards RUNNING. *ret_was_running: there was nothing to do. */
static int workload_bring_back(struct stasis_lib_round *round, bool *ret_was_running,
			       struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_state(&round->hands.target, &state, err) != 0)
		return -1;
	stasis_lib_event(round->sink, "state", "%s", stasis_target_state_name(state));
	*ret_was_running = state == CU_PROCESS_STATE_RUNNING;
	if (state == CU_PROCESS_STATE_CHECKPOINTED && round->has_tried_restore)
		return stasis_fail(err, STASIS_SUSPENDED, "the workload is still suspended");
	if (state == CU_PROCESS_STATE_CHECKPOINTED) {
		if (copy_restore(round, err) != 0)
			return -1;
		state = CU_PROCESS_STATE_LOCKED;
	}
	if (state == CU_PROCESS_STATE_LOCKED) {
		if (stasis_lib_hands_unlock(&round->hands, err) != 0)
			return -1;
		state = CU_PROCESS_STATE_RUNNING;
		stasis_lib_event(round->sink, "state", "%s", stasis_target_state_name(state));
	}
	if (state != CU_PROCESS_STATE_RUNNING)
		return stasis_fail(err, STASIS_LOST, "the driver has the workload in state %s",
				   stasis_target_state_name(state));
	return 0;
}

/* That it runs is not enough where its memory went away and came back. */
static int workload_compare(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_lib_comparison comparison = {0};

	if (round->copy == STASIS_LIB_COPY_NONE || round->has_compared)
		return 0;
	if (stasis_lib_workload_compare(&round->workload, round->hands.channel, &comparison, err) !=
	    0)
		return -1;
	if (!comparison.is_right)
		return stasis_fail(err, STASIS_LOST,
				   "the workload's memory is wrong at offset %llu: %s",
				   (unsigned long long)comparison.offset, comparison.text);
	stasis_lib_event(round->sink, "undo", "compared");
	return 0;
}

/* The workload stays suspended, or nobody knows: says where its bytes are. */
static void copy_keep(struct stasis_lib_round *round, struct stasis_error *err)
{
	if (round->copy == STASIS_LIB_COPY_PARTIAL)
		stasis_image_writer_keep(round->writer, err);
	if (round->copy == STASIS_LIB_COPY_IMAGE)
		stasis_error_append(err, "; the image is kept: %s", round->options->artifact_dir);
}

static void failure_report(struct stasis_lib_round *round, const struct stasis_error *worse,
			   struct stasis_error *err)
{
	enum stasis_status status = worse->status;

	/* What we hold in memory ends with us. */
	if (round->copy == STASIS_LIB_COPY_MEMORY)
		status = STASIS_LOST;
	/* A bad image leaves the workload suspended and intact just as well. */
	if (status == STASIS_REFUSED || status == STASIS_BAD_IMAGE)
		status = STASIS_SUSPENDED;
	if (status == STASIS_SUSPENDED)
		stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_KEEP, "");
	stasis_error_worsen(err, status);
	stasis_error_append(err, "; bringing workload %d back: %s", (int)round->workload.pid,
			    worse->text);
	copy_keep(round, err);
}

static void partial_abandon(struct stasis_lib_round *round)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	if (!round->writer || round->copy == STASIS_LIB_COPY_IMAGE)
		return;
	if (stasis_image_writer_abandon(round->writer, &err) != 0)
		stasis_lib_event(round->sink, "warning", "%s", err.text);
	else
		stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_REMOVED, "");
}

void stasis_lib_round_undo(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_error worse = STASIS_ERROR_INIT;
	bool was_running = false;

	if (!has_target(round)) {
		partial_abandon(round);
		return;
	}
	round->hands.channel->is_past_cancel = true;
	stasis_lib_phase_enter(round->hands.channel, STASIS_LIB_UNDO);
	if (err->status == STASIS_LOST) {
		copy_keep(round, err);
		return;
	}
	if (workload_bring_back(round, &was_running, &worse) != 0 ||
	    workload_compare(round, &worse) != 0) {
		failure_report(round, &worse, err);
		return;
	}
	/* What was said of its state when the cause was found no longer holds. */
	if (err->status == STASIS_SUSPENDED)
		err->status = STASIS_REFUSED;
	stasis_error_append(err,
			    was_running ? "; workload %d is running"
					: "; then workload %d was brought back and runs as before",
			    (int)round->workload.pid);
	partial_abandon(round);
}
