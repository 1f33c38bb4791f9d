#ifndef STASIS_DRIVER_ABI_H
#define STASIS_DRIVER_ABI_H

/*
 * Our own declaration of the CUDA driver's ABI, so that nothing here needs a CUDA toolkit to build.
 * Everything of it is reached through this header; the simulated driver includes nothing else of ours.
 */

#include "driver/abi_enums.h"
#include "driver/abi_functions.h"
#include "driver/abi_types.h"

#endif
