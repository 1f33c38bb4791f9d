#ifndef SIM_POOL_H
#define SIM_POOL_H

/* Stream-ordered memory. Core lock held. */

#include "allocation.h"

/* cuMemFree of memory of a pool: it returns at once. */
CUresult sim_pool_free_now(struct sim_allocation *allocation);

#endif
