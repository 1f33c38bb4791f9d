#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

/* A launch's arguments, checked and copied into an action whose context is still to be set. */

#include "action.h"

CUresult sim_launch_prepare(const CUlaunchConfig *shape, CUfunction handle, void **parameters,
			    void **extra, struct sim_action *ret_action);

#endif
