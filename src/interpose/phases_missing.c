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
#define PAGE(name)                                                                                 \
	int stasis_phase_##name(uint64_t first, struct stasis_phase_page *ret_page,                \
				struct stasis_error *err)                                          \
	{                                                                                          \
		(void)first;                                                                       \
		(void)ret_page;                                                                    \
		return MISSING(err);                                                               \
	}

PHASE(prepare_multicast)
PHASE(prepare_unicast)
PHASE(restore_unicast)
PHASE(restore_multicast_creators)
PHASE(restore_multicast_importers)
PHASE(restore_multicast_devices)
PHASE(restore_multicast_bindings)
PAGE(save_page)
PAGE(export_page)

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

int stasis_phase_load_allocations(const struct stasis_wire_exports *exports,
				  struct stasis_wire_descriptors *descriptors, bool is_last,
				  struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	(void)exports;
	(void)descriptors;
	(void)is_last;
	(void)ret_done;
	return MISSING(err);
}

void stasis_phase_records(uint64_t first, uint32_t max, struct stasis_wire_record *ret_records,
			  struct stasis_phase_records *ret_info)
{
	(void)first;
	(void)max;
	(void)ret_records;
	*ret_info = (struct stasis_phase_records){.generation = 1};
}

int stasis_phase_fetch(const struct stasis_id *object, int *ret_fd, uint64_t *ret_bytes,
		       struct stasis_error *err)
{
	(void)object;
	(void)ret_fd;
	(void)ret_bytes;
	return MISSING(err);
}
