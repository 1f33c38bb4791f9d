#ifndef SIM_ANSWERS_H
#define SIM_ANSWERS_H

/*
 * The switches of STASIS_SIM_BREAK that need no more than another answer: X(name, call, from, to). With the
 * switch on, a call that would answer `from` answers `to`; what it did or left undone stays as it is. For
 * what a refusal states this is all; where more has to go wrong, the switch stands in breaks.h.
 * Needs a driver/abi.h for the results.
 */

#include <stddef.h>

#include "driver/abi.h"

/* clang-format off */
#define SIM_BREAK_ANSWERS(X) \
	X(init_needed, cuDeviceGetCount, CUDA_ERROR_NOT_INITIALIZED, CUDA_SUCCESS) \
	X(init_flags, cuInit, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS)
/* clang-format on */

/* `call` is the name without _v2 and the like, of so many bytes. Gives the answer to make. */
CUresult sim_answer(const char *call, size_t call_bytes, CUresult result);

#endif
