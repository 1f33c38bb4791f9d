#ifndef STASIS_DRIVER_CUDA_ERROR_H
#define STASIS_DRIVER_CUDA_ERROR_H

/*
 * Errors that come from the CUDA driver. Any thread, with no driver loaded too.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "driver/abi_enums.h"

/* "CUDA_ERROR_OUT_OF_MEMORY"; NULL for a result that we do not know. */
const char *stasis_cuda_result_name(CUresult result);

/*
 * As stasis_fail, with the result's name and number appended: "lock process 7: CUDA_ERROR_NOT_READY (600)".
 * The result stays in err->cuda_result. Keeps errno.
 */
FORMAT(4, 5)
int stasis_fail_cuda(struct stasis_error *err, enum stasis_status status, CUresult result,
		     const char *format, ...);

#endif
