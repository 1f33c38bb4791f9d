#ifndef SIM_MULTICAST_H
#define SIM_MULTICAST_H

/*
 * Multicast objects in one process: what it has bound to them itself. Core lock held.
 */

#include "memory.h"

/*
 * The process has no handle and no mapping of an object any more: what it has bound is bound no more, unless it
 * has imported the same object again.
 */
void sim_multicast_forget(const struct sim_memory *object);

#endif
