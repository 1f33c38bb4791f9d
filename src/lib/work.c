/*
 * The worker: the whole round trip in order.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/round.h"

static void memory_report(const struct stasis_lib_round *round)
{
	if (!round->is_custom)
		return;
	stasis_lib_event(round->sink, "rss_anon_bytes", "%" PRIu64,
			 round->hands.rss_anon_peak_bytes);
	stasis_lib_event(round->sink, "pinned_bytes", "%" PRIu64, round->hands.pinned_peak_bytes);
}

static int round_run(struct stasis_lib_round *round, struct stasis_error *err)
{
	if (stasis_lib_round_prepare(round, err) != 0 || stasis_lib_round_start(round, err) != 0 ||
	    stasis_lib_round_reserve(round, err) != 0 ||
	    stasis_lib_round_capture(round, err) != 0 || stasis_lib_round_return(round, err) != 0)
		return -1;
	memory_report(round);
	return 0;
}

static void round_free(struct stasis_lib_round *round)
{
	stasis_lib_workload_release(&round->workload);
	stasis_lib_hands_fini(&round->hands);
	stasis_contexts_release(&round->contexts);
	stasis_transfer_memory_close(&round->reserve);
	if (round->reserved)
		free(round->reserved->extents[0].chunks);
	free(round->reserved);
	stasis_image_writer_close(round->writer);
	free(round);
}

int stasis_lib_work_run(struct stasis_lib_channel *channel, void *argument,
			struct stasis_error *err)
{
	const struct stasis_lib_work *work = argument;
	struct stasis_lib_round *round = calloc(1, sizeof(*round));
	int result;

	if (!round)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "begin the round trip");
	*round = (struct stasis_lib_round){
		.work = work,
		.options = work->options,
		.sink = &channel->sink,
		.hands = STASIS_LIB_HANDS_INIT(channel),
		.workload = STASIS_LIB_WORKLOAD_EMPTY,
		.reserve = STASIS_TRANSFER_MEMORY_EMPTY,
	};
	result = round_run(round, err);
	if (result != 0)
		stasis_lib_round_undo(round, err);
	round_free(round);
	return result;
}
