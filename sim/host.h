#ifndef SIM_HOST_H
#define SIM_HOST_H

/* Pinned and registered host memory. Core lock held. */

#include "allocation.h"

/* Unmaps memory of ours, or only forgets what the application registered. */
void sim_host_free(struct sim_allocation *allocation);

#endif
