#ifndef SIM_EVICT_H
#define SIM_EVICT_H

/*
 * Takes all memory of the process off the GPUs, and back. Only the endpoint's thread calls these, with no
 * call of the application inside and every stream drained; no lock may be held.
 */

#include <stdbool.h>

#include "driver/abi.h"

#include "compiler.h"

/*
 * Contents go to anonymous memory or, if they are not kept, nowhere; the process then holds nothing of the
 * machine. OUT_OF_MEMORY: the host has no room, and all is as before.
 */
NODISCARD CUresult sim_evict(bool keep_contents);

/*
 * Takes the machine's memory again, on the GPU of the machine that 'physical' names for each ordinal, and
 * puts storage behind every object; contents that were kept are in it. On failure nothing is held, but what
 * was kept may be gone.
 */
NODISCARD CUresult sim_revive(const int physical[]);

/* The storage is given back, the GPUs are what they were. For memory whose contents were not kept. */
void sim_revive_undo(void);

/* After it the CPU sees again what it may see. */
NODISCARD CUresult sim_revive_show(void);

/* What switches break: a byte of device memory; the CPU's access to host memory. */
void sim_revive_break(void);
void sim_evict_break_host(void);

#endif
