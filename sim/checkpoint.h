#ifndef SIM_CHECKPOINT_H
#define SIM_CHECKPOINT_H

/*
 * The checkpoint API's side in the target: its state, and the endpoint that serves other processes. The
 * core calls these; what the checkpoint asks of the core stands in memory.h and stream.h.
 */

#include "driver/abi.h"

#include "compiler.h"

/* From cuInit, after sim_machine_join: the endpoint's thread and socket. Safe to call again. */
NODISCARD CUresult sim_checkpoint_start(void);

#endif
