/*
 * Gates close on all participants or on none. One that cannot be closed and drained may wait for a process whose gate
 * is shut already (a collective in flight, a bind that waits for its team), so all open again, for long enough to get
 * on with that: half as long as they were shut. Each try gets twice as long as the one before.
 */

#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "group/ask.h"
#include "group/capture.h"

#define FIRST_NS (500 * STASIS_NS_PER_MS)

struct step {
	enum stasis_wire_gate_step step;
	uint64_t limit_ns;
};

static int step_ask(struct stasis_group *group, size_t index, void *argument,
		    struct stasis_error *err)
{
	const struct step *step = argument;

	return stasis_ask_gate(&group->processes[index].participant, step->step, step->limit_ns,
			       err);
}

static int try_once(struct stasis_group *group, uint64_t limit_ns, struct stasis_error *err)
{
	struct step steps[] = {
		{.step = STASIS_WIRE_GATE_CAPTURES, .limit_ns = limit_ns},
		{.step = STASIS_WIRE_GATE_ALL, .limit_ns = limit_ns},
	};

	for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
		if (stasis_group_each_participant(group, step_ask, &steps[i], err) != 0)
			return -1;
	}
	return 0;
}

static void let_run(uint64_t ns)
{
	struct timespec pause = {.tv_sec = (time_t)(ns / STASIS_NS_PER_S),
				 .tv_nsec = (long)(ns % STASIS_NS_PER_S)};

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

int stasis_gates_close(struct stasis_group *group, uint64_t total_ns, struct stasis_error *err)
{
	uint64_t deadline_ns = stasis_deadline_after_ns(total_ns);
	uint64_t limit_ns = FIRST_NS;

	for (int try = 1;; try++) {
		uint64_t now_ns = stasis_clock_now_ns();
		uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 1;
		struct stasis_error failure = STASIS_ERROR_INIT;

		if (try_once(group, stasis_min_u64(limit_ns, left_ns), &failure) == 0) {
			stasis_group_event(group->watch, "gate_tries", "%d", try);
			return 0;
		}
		if (stasis_group_ask(group, STASIS_WIRE_OPEN, STASIS_GROUP_ANSWER_NS, NULL) != 0)
			stasis_error_worsen(&failure, STASIS_LOST);
		if (failure.status != STASIS_REFUSED || stasis_deadline_passed(deadline_ns)) {
			stasis_error_context(&failure, "after %d tries", try);
			stasis_error_take(err, &failure);
			return -1;
		}
		let_run(limit_ns / 2);
		limit_ns *= 2;
	}
}
