#ifndef SIM_COPY_H
#define SIM_COPY_H

/* The bodies of copies and fills, for streams and graphs. */

#include "action.h"

CUresult sim_copy_run(const struct sim_action *action);
CUresult sim_fill_run(const struct sim_action *action);

#endif
