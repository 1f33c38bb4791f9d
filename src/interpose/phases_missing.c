/*
 * Phases of what is not built yet. Multicast: a process that has made such an object is refused, so that nothing is
 * captured that could not be brought back; for any other there is nothing to do.
 */

#include "interpose/gate.h"
#include "interpose/multicast.h"
#include "interpose/phases.h"

#define PHASE(name)                                                                                \
	int stasis_phase_##name(struct stasis_wire_done *ret_done, struct stasis_error *err)       \
	{                                                                                          \
		*ret_done = (struct stasis_wire_done){0};                                          \
		return multicast_check(err);                                                       \
	}

static int multicast_check(struct stasis_error *err)
{
	if (stasis_multicast_created() > 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "this process has made multicast objects, which cannot be "
				   "captured");
	return 0;
}

PHASE(prepare_multicast)
PHASE(restore_multicast_creators)
PHASE(restore_multicast_importers)
PHASE(restore_multicast_devices)
PHASE(restore_multicast_bindings)

/* Until captures are counted and work is drained: what the gate itself can do. */
int stasis_phase_gate(enum stasis_wire_gate_step step, uint64_t limit_ns,
		      struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	enum stasis_gate_level level =
		step == STASIS_WIRE_GATE_ALL ? STASIS_GATE_CLOSED : STASIS_GATE_CAPTURES_HELD;
	struct stasis_gate_busy busy;
	int code = stasis_gate_close(level, limit_ns, &busy);

	(void)ret_done;
	if (code != 0)
		return stasis_fail_code(err, STASIS_REFUSED, code,
					"close the gate: thread %d is in a call", (int)busy.tid);
	return 0;
}

int stasis_phase_open(struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	(void)ret_done;
	(void)err;
	stasis_gate_open();
	return 0;
}
