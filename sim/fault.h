#ifndef SIM_FAULT_H
#define SIM_FAULT_H

/*
 * The fault plan: STASIS_SIM_FAULT=cuMemMap:3=OUT_OF_MEMORY makes the third call of cuMemMap in a process
 * fail. Several, separated by commas; '*' in place of the number means every call. Kinds:
 *
 *     a result's name without CUDA_ERROR_   that result, the call does nothing
 *     hang                                  the call never comes back
 *     delay=MS                              it waits so long, then works
 *     kill                                  the process is killed in it
 *     killtarget                            the process that a checkpoint call names is killed first
 *
 * A '!' after the call's name (cuCheckpointProcessLock!:1=UNKNOWN) puts the fault behind the work: the
 * call has done it, then fails, hangs or is killed. STASIS_SIM_FAULT_PROCESS=NAME restricts the plan to
 * processes whose executable has that base name. STASIS_SIM_FAULT_WHEN=PATH lets the plan sleep, and count
 * nothing, until that file exists; STASIS_SIM_FAULT_ONCE=PATH lets one fault of all processes act, which
 * makes that file. Each fault that is reached is logged before it acts.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "driver/abi.h"

#include "compiler.h"

enum sim_fault_when {
	SIM_FAULT_BEFORE,
	SIM_FAULT_AFTER,
};

/* Reads the plan; a mistake in it ends the process. Any thread, again and again. */
void sim_fault_init(void);

/*
 * Counts a call of that name (without its version suffix) and does what the plan says. Returns what the
 * call must answer, 'result' if there is nothing. With SIM_FAULT_BEFORE call it exactly once a call,
 * with SIM_FAULT_AFTER exactly once a call that was not failed before.
 */
CUresult sim_fault_reach(const char *name, size_t name_bytes, enum sim_fault_when when,
			 CUresult result);

/* The process that the checkpoint call of this thread is about, for killtarget; 0: none. */
void sim_fault_set_target(pid_t pid);

#endif
