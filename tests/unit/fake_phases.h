#ifndef STASIS_TESTS_UNIT_FAKE_PHASES_H
#define STASIS_TESTS_UNIT_FAKE_PHASES_H

/*
 * Phases played by the test: each counts its calls, and one of them can be made to fail.
 */

#include <stdatomic.h>

#include "interpose/phases.h"

struct fake_phases {
	unsigned int calls[STASIS_WIRE_PHASE_COUNT];
	enum stasis_wire_phase failing; /* 0: none */
	uint64_t record_total;          /* of INSPECT */
	uint64_t generation;
	uint32_t page_total;  /* of SAVE and EXPORT: each allocation has a memory file */
	int kept_fd;          /* of LOAD: the first that came; -1: none did */
	uint32_t loaded;      /* allocations of LOAD */
	atomic_uint fetches;  /* by peers */
	atomic_uint fetching; /* at this moment */
	atomic_bool is_fetch_held;
};
extern struct fake_phases fake_phases;

void fake_phases_reset(void);

#endif
