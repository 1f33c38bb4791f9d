/*
 * Phases that are not built yet: each is refused, so that nothing is captured that could not be brought back.
 */

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

PHASE(open)
PHASE(prepare_multicast)
PHASE(prepare_unicast)
PHASE(restore_unicast)
PHASE(restore_multicast_creators)
PHASE(restore_multicast_importers)
PHASE(restore_multicast_devices)
PHASE(restore_multicast_bindings)
PAGE(save_page)
PAGE(export_page)

int stasis_phase_gate(enum stasis_wire_gate_step step, uint64_t limit_ns,
		      struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	(void)step;
	(void)limit_ns;
	(void)ret_done;
	return MISSING(err);
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
