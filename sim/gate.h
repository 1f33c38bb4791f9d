#ifndef SIM_GATE_H
#define SIM_GATE_H

/*
 * The driver's own lock over the calls of this process. It is no full gate, and it is not fair: it holds
 * new calls back for a millisecond at most to find an instant at which none is inside and no stream has
 * work, and where three threads or more call without pause it does not even find that; so a program that
 * never pauses is never locked. Order of locks: this one before sim_core.lock.
 */

#include <stdbool.h>

#include "call.h"
#include "compiler.h"

enum sim_gate_level {
	SIM_GATE_OPEN,
	SIM_GATE_LOCKED, /* SIM_CALL_HELD waits */
	SIM_GATE_SHUT,   /* SIM_CALL_PASSES waits too */
};

void sim_gate_enter(enum sim_call_class class);
void sim_gate_leave(enum sim_call_class class);

/* From open to locked, if it finds such an instant within a millisecond. */
NODISCARD bool sim_gate_try_lock(void);

/* From locked to shut: waits until the passing calls that are inside have left; they are short. */
void sim_gate_shut(void);

/* Sets the level to locked or open, come what may; lets in the calls that then may pass. */
void sim_gate_set(enum sim_gate_level level);

#endif
