#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

/*
 * The kernels that the simulator has built in, known by the entry names of the PTX that real GPUs run
 * instead. Each does all of its work whatever the grid.
 */

#include "action.h"

struct sim_kernel {
	const char *name;
	unsigned parameter_count;
	unsigned parameter_bytes[SIM_KERNEL_PARAMETERS_MAX];
	CUresult (*run)(const struct sim_action *action);
};

/* By its name of 'length' characters; NULL: not built in. */
const struct sim_kernel *sim_kernel_find(const char *name, size_t length);

#endif
