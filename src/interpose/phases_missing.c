/*
 * Phases that are not built yet: each is refused, so that nothing is captured that could not be brought back.
 */

#include "interpose/gate.h"
#include "interpose/phases.h"

#define MISSING(err)                                                                               \
	stasis_fail(err, STASIS_REFUSED, "this build of the interposer has no such phase")

#define PHASE(name)                                                                                \
	int stasis_phase_##name(struct stasis_wire_done *ret_done, struct stasis_error *err)       \
	{                                                                                          \
		(void)ret_done;                                                                    \
		return MISSING(err);                                                               \
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
