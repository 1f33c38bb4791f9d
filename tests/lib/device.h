#ifndef TESTS_LIB_DEVICE_H
#define TESTS_LIB_DEVICE_H

/*
 * CUDA in few words for tests: a context on device 0, virtual memory, reproducible contents, entries by
 * cuGetProcAddress. A step that fails here ends the test; a missing device or entry skips it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/abi.h"

#define T_MIB ((size_t)1 << 20)
#define T_BLOCK_BYTES (2 * T_MIB) /* the driver's granularity of device memory */
#define T_FD_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/* cuInit; skips where there is no device. t_init_only leaves the thread without a context. */
void t_init_only(void);

/* t_init_only, and device 0's primary context retained and current. */
CUcontext t_cuda(void);

/*
 * Asks the simulator for so many devices, unless the environment says how many; hardware has what it has.
 * Before any other call of this test, also before its children are started.
 */
void t_ask_devices(int count);

/* Skips unless this many devices are there (after t_init_only or t_cuda). */
void t_need_devices(int count);

/*
 * Skips on hardware unless STASIS_TEST_MULTICAST=1: a program that dies with a team can take the links between all GPUs
 * of a machine with it. By the environment alone: no CUDA call is needed.
 */
void t_allow_multicast(void);

/* Skips unless the device has multicast (after t_init_only or t_cuda). */
void t_need_multicast(CUdevice device);

/* The entry of this name at this CUDA version; skips where the driver has none. */
void *t_entry(const char *name, int version);

/* The same; NULL where the driver has none. */
void *t_entry_or_null(const char *name, int version);

CUdeviceptr t_alloc(size_t bytes);
CUstream t_stream(unsigned int flags);

/* Free bytes of the current device. A driver keeps some memory for itself: look for more than the slack. */
#define T_SLACK_BYTES (32 * T_MIB)
size_t t_free_bytes(void);

/* Properties of pinned device memory on device 0. */
CUmemAllocationProp t_prop(CUmemAllocationHandleType handle_types);

CUmemAccessDesc t_access(CUmemAccess_flags flags);
CUdeviceptr t_reserve(size_t bytes);

struct t_vmm {
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	size_t bytes;
};

/* Creates, reserves, maps and grants device 0 access. */
struct t_vmm t_vmm(size_t bytes, CUmemAllocationHandleType handle_types);

/* Reserves, maps and grants for a handle that is already there. */
CUdeviceptr t_map(CUmemGenericAllocationHandle handle, size_t bytes);

/* Unmaps and releases; the reservation stays. */
void t_vmm_release(struct t_vmm *vmm);

int t_export(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle t_import(int fd);

/* The 64 bytes of an IPC handle, and memory opened from it. */
CUipcMemHandle t_ipc_handle(CUdeviceptr address);

/*
 * Words that depend on seed and position. t_verify names the first wrong offset; t_matches only says
 * whether all is right. Both synchronise. `bytes` is a multiple of 4.
 */
void t_fill(CUdeviceptr address, size_t bytes, uint32_t seed);
void t_verify(CUdeviceptr address, size_t bytes, uint32_t seed);
bool t_matches(CUdeviceptr address, size_t bytes, uint32_t seed);

/* The word at position `index` of that pattern. */
uint32_t t_word(uint32_t seed, size_t index);

#endif
