#ifndef STASIS_INTERPOSE_CONTROL_H
#define STASIS_INTERPOSE_CONTROL_H

/*
 * The participant's endpoint: door, control file and the thread that serves one coordinator's session at a
 * time. It starts after the first successful cuInit, or with the first tracked call where cuInit was reached
 * by a way that we do not see; a process that uses no CUDA never has it.
 */

#include <stdbool.h>

/*
 * Starts the endpoint once; costs a load where it runs already. Waits for no thread and keeps errno, so that
 * a constructor, which holds the loader's lock, may call it. What failed is tried again by a later call, at
 * most once a second.
 */
void stasis_control_start(void);

/* Control thread, inside a phase: the coordinator is gone, so that what is being waited for may be given up. */
bool stasis_control_is_abandoned(void);

#endif
