#ifndef STASIS_INTERPOSE_LIFECYCLE_H
#define STASIS_INTERPOSE_LIFECYCLE_H

/*
 * Where a participant stands, and which phases are legal there, as a table. What is not in the table is refused
 * and changes nothing. Pure: no state of its own, no calls. Any thread.
 *
 *     RUNNING ── GATE 1 ── CAPTURES_HELD ── GATE 2 ── GATED ── ARM ── ARMED ──┐
 *        ^                        │                     │              │  ^   │
 *        └──────── OPEN ──────────┴─────────────────────┴──────────────┘  │   │ PREPARE_MULTICAST
 *                                                        ..._BINDINGS     │   v
 *                     MULTICAST_{CREATED, IMPORTED, JOINED} ──────────────┘  UNICAST_UP
 *                          ^        RESTORE_MULTICAST_CREATORS ...           │  ^
 *                          └─────────────────────────────────────────────────┤  │ RESTORE_UNICAST
 *                                                       PREPARE_UNICAST      v  │
 *                                       LOADED <── LOAD_ALLOCATIONS ── DOWN ────┘ (from LOADED)
 *
 * At LOADED descriptors may still be brought by LOAD_ALLOCATIONS: for imports whose creator has let go of them.
 *
 * A phase that failed may have done a part: the participant stands where what undoes it is legal. So what
 * was rebuilt only in part can be taken apart again, and what was taken apart in part be rebuilt.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "wire/message.h"

enum stasis_standing {
	STASIS_STANDING_RUNNING,
	STASIS_STANDING_CAPTURES_HELD,
	STASIS_STANDING_GATED,
	STASIS_STANDING_ARMED,      /* gate shut, everything up */
	STASIS_STANDING_UNICAST_UP, /* multicast is down */
	STASIS_STANDING_DOWN,       /* all that is ours is down: suspended */
	STASIS_STANDING_LOADED,     /* at least what was created here is up */
	STASIS_STANDING_MULTICAST_CREATED,
	STASIS_STANDING_MULTICAST_IMPORTED,
	STASIS_STANDING_MULTICAST_JOINED,
};
#define STASIS_STANDING_COUNT 10

/* Refuses a request whose phase is not legal at `standing`. */
NODISCARD int stasis_lifecycle_check(enum stasis_standing standing,
				     const struct stasis_wire_message *request,
				     struct stasis_error *err);

/* Where a participant stands after a legal phase that was done, or failed. */
enum stasis_standing stasis_lifecycle_after(enum stasis_standing standing,
					    const struct stasis_wire_message *request,
					    bool is_done);

/* From ARM to OPEN the gate stays shut though the session ends. */
bool stasis_lifecycle_is_armed(enum stasis_standing standing);

/* The phase that a session's answer names as reached: 0 while running. */
uint8_t stasis_lifecycle_phase(enum stasis_standing standing);

/* "running", for messages. */
const char *stasis_lifecycle_name(enum stasis_standing standing);

#endif
