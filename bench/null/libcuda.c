/*
 * A driver that does nothing, at once: what a call costs beside it is the cost of what leads to it. Its entries are
 * those that bench/gate.c calls and those that the interposer needs.
 */

/* Arguments are the caller's to pass and ours to leave alone. */
#define ENTRY(elf)                                                                                 \
	__asm__(".globl " #elf "\n.type " #elf ", @function\n" #elf                                \
		":\n\txorl %eax, %eax\n\tret\n"                                                    \
		".size " #elf ", . - " #elf "\n");

ENTRY(cuInit)
ENTRY(cuLaunchKernel)
ENTRY(cuCtxGetCurrent)
ENTRY(cuCtxSetCurrent)
ENTRY(cuDeviceGetCount)
ENTRY(cuDeviceGetUuid_v2)
ENTRY(cuDevicePrimaryCtxGetState)
ENTRY(cuDevicePrimaryCtxRelease_v2)
ENTRY(cuDevicePrimaryCtxRetain)
ENTRY(cuEventCreate)
ENTRY(cuEventDestroy_v2)
ENTRY(cuEventQuery)
ENTRY(cuStreamIsCapturing)
ENTRY(cuStreamQuery)
ENTRY(cuMemCreate)
ENTRY(cuMemRelease)
ENTRY(cuMemMap)
ENTRY(cuMemUnmap)
ENTRY(cuMemSetAccess)
ENTRY(cuMemExportToShareableHandle)
ENTRY(cuMemImportFromShareableHandle)
ENTRY(cuMemGetAllocationPropertiesFromHandle)
