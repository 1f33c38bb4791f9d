#ifndef STASIS_DRIVER_DRIVER_H
#define STASIS_DRIVER_DRIVER_H

/*
 * The CUDA driver, loaded at run time: a table of its entries, each asked of cuGetProcAddress at the
 * version whose form we call. The table is filled once and then only read, by any thread. A loaded driver
 * stays for the life of the process: its threads cannot be stopped, so it is never unloaded.
 */

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "driver/abi.h"
#include "driver/cuda_error.h"

/* The CUDA versions (cuDriverGetVersion) from which the driver can do what we need. */
#define STASIS_CUDA_CHECKPOINT 12080     /* lock, checkpoint, restore, unlock */
#define STASIS_CUDA_GPU_PAIRS 13000      /* restore onto other GPUs */
#define STASIS_CUDA_CUSTOM_STORAGE 13040 /* checkpoint with storage of the caller's */

/* clang-format off */

/*
 * X(entry, version, elf, need): the member `entry` of struct stasis_driver is what cuGetProcAddress
 * answers for that name at exactly `version`, of the type of the prototype `elf`; the unit test of this
 * table holds it against abi_functions.h. REQUIRED entries are never NULL; OPTIONAL ones are NULL where
 * the driver has not got them: ask stasis_driver_has_…() first.
 */
#define STASIS_DRIVER_ENTRIES(X) \
	X(cuInit, 2000, cuInit, REQUIRED) \
	X(cuDriverGetVersion, 2020, cuDriverGetVersion, REQUIRED) \
	X(cuGetProcAddress, 12000, cuGetProcAddress_v2, REQUIRED) \
	X(cuDeviceGet, 2000, cuDeviceGet, REQUIRED) \
	X(cuDeviceGetCount, 2000, cuDeviceGetCount, REQUIRED) \
	X(cuDeviceGetName, 2000, cuDeviceGetName, REQUIRED) \
	X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2, REQUIRED) \
	X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, REQUIRED) \
	X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute, REQUIRED) \
	X(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId, REQUIRED) \
	X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, REQUIRED) \
	X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, REQUIRED) \
	X(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState, REQUIRED) \
	X(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2, REQUIRED) \
	X(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2, REQUIRED) \
	X(cuCtxSetCurrent, 4000, cuCtxSetCurrent, REQUIRED) \
	X(cuCtxGetCurrent, 4000, cuCtxGetCurrent, REQUIRED) \
	X(cuCtxGetDevice, 2000, cuCtxGetDevice, REQUIRED) \
	X(cuCtxSynchronize, 2000, cuCtxSynchronize, REQUIRED) \
	X(cuMemGetInfo, 3020, cuMemGetInfo_v2, REQUIRED) \
	X(cuMemAlloc, 3020, cuMemAlloc_v2, REQUIRED) \
	X(cuMemFree, 3020, cuMemFree_v2, REQUIRED) \
	X(cuMemAddressReserve, 10020, cuMemAddressReserve, REQUIRED) \
	X(cuMemAddressFree, 10020, cuMemAddressFree, REQUIRED) \
	X(cuMemCreate, 10020, cuMemCreate, REQUIRED) \
	X(cuMemRelease, 10020, cuMemRelease, REQUIRED) \
	X(cuMemMap, 10020, cuMemMap, REQUIRED) \
	X(cuMemUnmap, 10020, cuMemUnmap, REQUIRED) \
	X(cuMemSetAccess, 10020, cuMemSetAccess, REQUIRED) \
	X(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle, REQUIRED) \
	X(cuMemHostAlloc, 2020, cuMemHostAlloc, REQUIRED) \
	X(cuMemFreeHost, 2000, cuMemFreeHost, REQUIRED) \
	X(cuMemHostRegister, 6050, cuMemHostRegister_v2, REQUIRED) \
	X(cuMemHostUnregister, 4000, cuMemHostUnregister, REQUIRED) \
	X(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, REQUIRED) \
	X(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, REQUIRED) \
	X(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2, REQUIRED) \
	X(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2, REQUIRED) \
	X(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2, REQUIRED) \
	X(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2, REQUIRED) \
	X(cuMemsetD8, 3020, cuMemsetD8_v2, REQUIRED) \
	X(cuMemsetD32, 3020, cuMemsetD32_v2, REQUIRED) \
	X(cuMemsetD8Async, 3020, cuMemsetD8Async, REQUIRED) \
	X(cuMemsetD32Async, 3020, cuMemsetD32Async, REQUIRED) \
	X(cuStreamCreate, 2000, cuStreamCreate, REQUIRED) \
	X(cuStreamDestroy, 4000, cuStreamDestroy_v2, REQUIRED) \
	X(cuStreamQuery, 2000, cuStreamQuery, REQUIRED) \
	X(cuStreamSynchronize, 2000, cuStreamSynchronize, REQUIRED) \
	X(cuStreamWaitEvent, 3020, cuStreamWaitEvent, REQUIRED) \
	X(cuStreamGetCtx, 12050, cuStreamGetCtx_v2, OPTIONAL) \
	X(cuStreamGetDevice, 12080, cuStreamGetDevice, OPTIONAL) \
	X(cuEventCreate, 2000, cuEventCreate, REQUIRED) \
	X(cuEventRecord, 2000, cuEventRecord, REQUIRED) \
	X(cuEventQuery, 2000, cuEventQuery, REQUIRED) \
	X(cuEventSynchronize, 2000, cuEventSynchronize, REQUIRED) \
	X(cuEventDestroy, 4000, cuEventDestroy_v2, REQUIRED) \
	X(cuCheckpointProcessGetState, 12080, cuCheckpointProcessGetState, OPTIONAL) \
	X(cuCheckpointProcessGetRestoreThreadId, 12080, cuCheckpointProcessGetRestoreThreadId, OPTIONAL) \
	X(cuCheckpointProcessLock, 12080, cuCheckpointProcessLock, OPTIONAL) \
	X(cuCheckpointProcessCheckpoint, 12080, cuCheckpointProcessCheckpoint, OPTIONAL) \
	X(cuCheckpointProcessRestore, 12080, cuCheckpointProcessRestore, OPTIONAL) \
	X(cuCheckpointProcessUnlock, 12080, cuCheckpointProcessUnlock, OPTIONAL) \
	X(cuCheckpointOperationComplete, 13040, cuCheckpointOperationComplete, OPTIONAL)

/* clang-format on */

#define STASIS_DRIVER_PATH_BYTES 4096

struct stasis_driver {
	int cuda_version;                    /* of the driver, such as 13040 for CUDA 13.4 */
	char path[STASIS_DRIVER_PATH_BYTES]; /* as it was asked for */
#define STASIS_DRIVER_MEMBER(entry, version, elf, need) __typeof__(&elf) entry;
	STASIS_DRIVER_ENTRIES(STASIS_DRIVER_MEMBER)
#undef STASIS_DRIVER_MEMBER
};

/*
 * Loads the driver: `path`, or where that is NULL the environment's STASIS_LIBCUDA, else libcuda.so.1.
 * Does not initialise it, so that a caller can look before it touches a GPU. Failures are STASIS_REFUSED.
 */
NODISCARD int stasis_driver_open(const char *path, struct stasis_driver *ret_driver,
				 struct stasis_error *err);

/*
 * Fills the table from a driver that is already in the process; stasis_driver_open ends in it. `path`
 * serves messages.
 */
NODISCARD int stasis_driver_fill(const char *path,
				 __typeof__(&cuGetProcAddress_v2) get_proc_address,
				 __typeof__(&cuDriverGetVersion) get_version,
				 struct stasis_driver *ret_driver, struct stasis_error *err);

/* cuInit, once a process; must not be called before a fork whose child uses CUDA. */
NODISCARD int stasis_driver_start(const struct stasis_driver *driver, struct stasis_error *err);

/* What the driver can do. gpu_pairs and custom_storage imply checkpoint. */
bool stasis_driver_has_checkpoint(const struct stasis_driver *driver);
bool stasis_driver_has_gpu_pairs(const struct stasis_driver *driver);
bool stasis_driver_has_custom_storage(const struct stasis_driver *driver);

/* Why it has not, in a form that follows "no CustomStorage: "; "" where it has. */
#define STASIS_DRIVER_WHY_BYTES 160
const char *stasis_driver_why_no_checkpoint(const struct stasis_driver *driver,
					    char text[STASIS_DRIVER_WHY_BYTES]);
const char *stasis_driver_why_no_gpu_pairs(const struct stasis_driver *driver,
					   char text[STASIS_DRIVER_WHY_BYTES]);
const char *stasis_driver_why_no_custom_storage(const struct stasis_driver *driver,
						char text[STASIS_DRIVER_WHY_BYTES]);

#endif
