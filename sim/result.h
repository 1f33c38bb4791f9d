#ifndef SIM_RESULT_H
#define SIM_RESULT_H

/* The names of the driver's results. Pure; any thread. */

#include <stdbool.h>

#include "driver/abi.h"

/* "CUDA_ERROR_OUT_OF_MEMORY"; NULL for a value that is none. */
const char *sim_result_name(CUresult result);

/* "OUT_OF_MEMORY", "SUCCESS": as the log and the fault plan write it. Never NULL. */
const char *sim_result_short_name(CUresult result);

/* False: no result has that short name. */
bool sim_result_parse(const char *short_name, CUresult *ret_result);

#endif
