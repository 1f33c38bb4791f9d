#ifndef STASIS_INTERPOSE_CALLS_H
#define STASIS_INTERPOSE_CALLS_H

/*
 * The driver's functions that we call for ourselves: libcuda's own, never a wrapper, never through the gate. Ours
 * to call from any thread; which of them wait for others is the caller's to know.
 */

#include "driver/abi.h"

#define STASIS_CALLS(X)                                                                            \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxSetCurrent)                                                                         \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetUuid_v2)                                                                      \
	X(cuDevicePrimaryCtxGetState)                                                              \
	X(cuDevicePrimaryCtxRelease_v2)                                                            \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy_v2)                                                                       \
	X(cuEventQuery)                                                                            \
	X(cuStreamIsCapturing)                                                                     \
	X(cuStreamQuery)                                                                           \
	X(cuMemCreate)                                                                             \
	X(cuMemRelease)                                                                            \
	X(cuMemMap)                                                                                \
	X(cuMemUnmap)                                                                              \
	X(cuMemSetAccess)                                                                          \
	X(cuMemExportToShareableHandle)                                                            \
	X(cuMemImportFromShareableHandle)                                                          \
	X(cuMemGetAllocationPropertiesFromHandle)

/* NULL where the driver has none: newer than what the rest needs. */
#define STASIS_CALLS_OPTIONAL(X)                                                                   \
	X(cuCtxGetId)                                                                              \
	X(cuCtxRecordEvent)                                                                        \
	X(cuMulticastAddDevice)                                                                    \
	X(cuMulticastBindAddr)                                                                     \
	X(cuMulticastBindAddr_v2)                                                                  \
	X(cuMulticastBindMem)                                                                      \
	X(cuMulticastBindMem_v2)                                                                   \
	X(cuMulticastCreate)                                                                       \
	X(cuMulticastUnbind)                                                                       \
	X(cuPointerGetAttribute)                                                                   \
	X(cuStreamGetCtx)                                                                          \
	X(cuStreamGetCtx_v2)

#define STASIS_CALL_MEMBER(elf) __typeof__(elf) *elf;
struct stasis_calls {
	STASIS_CALLS(STASIS_CALL_MEMBER)
	STASIS_CALLS_OPTIONAL(STASIS_CALL_MEMBER)
};
#undef STASIS_CALL_MEMBER

/*
 * NULL: this process has no libcuda in its own link namespace, or one that lacks an entry. May wait for the
 * loader's lock, so call it with no lock held. errno is kept.
 */
const struct stasis_calls *stasis_calls_get(void);

#endif
