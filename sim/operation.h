#ifndef SIM_OPERATION_H
#define SIM_OPERATION_H

/*
 * CustomStorage operations on the caller's side: the target's memory as views in this process's address
 * window. A view is a table over the target's files; nothing of it is mapped or copied, so it costs
 * descriptors and a row a piece, not memory. Any thread.
 */

#include <sys/types.h>

#include "driver/abi.h"

#include "compiler.h"
#include "protocol.h"

/*
 * Begins, if all goes well: on failure the target is as it was before. The info belongs to the operation
 * and goes with it. This process must have called cuInit and must hold the primary contexts of the GPUs
 * that the target has data on.
 */
NODISCARD CUresult sim_operation_begin(pid_t pid, const struct sim_request *request,
				       CUcheckpointCustomStorageInfo **ret_info);

/*
 * Synchronises the streams, takes the views away and lets the target go on. INVALID_HANDLE: no operation
 * of this process, or one completed before. STREAM_CAPTURE_UNSUPPORTED, or the error of a stream: the
 * operation stands, and can be completed later.
 */
NODISCARD CUresult sim_operation_complete(CUcheckpointOperationHandle handle);

/* For fault plans: the target of an operation, 0 for a handle that is none. */
pid_t sim_operation_pid(CUcheckpointOperationHandle handle);

#endif
