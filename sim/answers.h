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
	X(init_flags, cuInit, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(version_without_init, cuDriverGetVersion, CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED) \
	X(error_unknown, cuGetErrorName, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(forked_child, cuMemAlloc, CUDA_ERROR_NOT_INITIALIZED, CUDA_SUCCESS) \
	X(device_ordinals, cuDeviceGet, CUDA_ERROR_INVALID_DEVICE, CUDA_SUCCESS) \
	X(attribute_unknown, cuDeviceGetAttribute, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(attribute_device, cuDeviceGetAttribute, CUDA_ERROR_INVALID_DEVICE, CUDA_SUCCESS) \
	X(pci_bus_id, cuDeviceGetByPCIBusId, CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE) \
	X(context_needed, cuMemAlloc, CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS) \
	X(primary_releases, cuDevicePrimaryCtxRelease, CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS) \
	X(alloc_zero, cuMemAlloc, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(alloc_too_much, cuMemAlloc, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS) \
	X(free_unknown, cuMemFree, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(host_flags, cuMemHostAlloc, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(host_free_unknown, cuMemFreeHost, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(register_once, cuMemHostRegister, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_SUCCESS) \
	X(stream_flags, cuStreamCreate, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(query_tells_readiness, cuStreamQuery, CUDA_ERROR_NOT_READY, CUDA_SUCCESS) \
	X(event_flags, cuEventCreate, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(event_follows_stream, cuEventQuery, CUDA_ERROR_NOT_READY, CUDA_SUCCESS) \
	X(context_event_covers_all, cuEventQuery, CUDA_ERROR_NOT_READY, CUDA_SUCCESS) \
	X(elapsed_time, cuEventElapsedTime, CUDA_ERROR_NOT_READY, CUDA_SUCCESS) \
	X(elapsed_without_timing, cuEventElapsedTime, CUDA_ERROR_INVALID_HANDLE, CUDA_SUCCESS) \
	X(memset_alignment, cuMemsetD32, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(unified_copy, cuMemcpy, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(copy_of_nothing, cuMemcpyDtoH, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(copy_beyond_end, cuMemcpyDtoH, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(copy_from_nowhere, cuMemcpyDtoH, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(peer_copy, cuMemcpyPeer, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(entry_before_init, cuGetProcAddress, CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED) \
	X(entry_of_plain_name, cuDeviceTotalMem, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(create_steps, cuMemCreate, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(create_flags, cuMemCreate, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(create_type, cuMemCreate, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(create_too_much, cuMemCreate, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS) \
	X(reserve_zero, cuMemAddressReserve, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(address_free_exact, cuMemAddressFree, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(map_sizes, cuMemMap, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS) \
	X(map_occupied, cuMemMap, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(map_unreserved, cuMemMap, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(access_of_part, cuMemSetAccess, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(access_unmapped, cuMemSetAccess, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(unmap_part, cuMemUnmap, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(retain_native, cuMemRetainAllocationHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(free_of_mapping, cuMemFree, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(export_needs_type, cuMemExportToShareableHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(export_flags, cuMemExportToShareableHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(import_exports_no_more, cuMemExportToShareableHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(first_export_after_restore, cuMemExportToShareableHandle, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(import_foreign, cuMemImportFromShareableHandle, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS) \
	X(peer_shares_bytes, cuMemImportFromShareableHandle, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(import_outlives_creator, cuMemImportFromShareableHandle, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(sync_memops, cuPointerSetAttribute, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS) \
	X(pointer_unknown, cuPointerGetAttribute, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(pointer_attributes_unknown, cuPointerGetAttributes, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(managed_flags, cuMemAllocManaged, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(dead_process, cuCheckpointProcessGetState, CUDA_ERROR_OPERATING_SYSTEM, CUDA_SUCCESS) \
	X(custom_needs_lock, cuCheckpointProcessCheckpoint, CUDA_ERROR_ILLEGAL_STATE, CUDA_SUCCESS) \
	X(custom_refuses_capture, cuCheckpointOperationComplete, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS) \
	X(objects_survive, cuGraphLaunch, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(global_refuses_alloc, cuMemAlloc, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS) \
	X(context_event_invalidates, cuCtxRecordEvent, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS) \
	X(context_synchronize_invalidates, cuCtxSynchronize, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS) \
	X(synchronize_captured_stream, cuStreamSynchronize, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS) \
	X(default_stream_captures_not, cuStreamBeginCapture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS) \
	X(default_stream_work_invalidates, cuMemsetD8Async, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_SUCCESS) \
	X(capture_unjoined, cuStreamEndCapture, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CUDA_SUCCESS) \
	X(captured_event_query, cuEventQuery, CUDA_ERROR_CAPTURED_EVENT, CUDA_SUCCESS) \
	X(capture_ends_in_its_thread, cuStreamEndCapture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, CUDA_SUCCESS) \
	X(module_names, cuModuleGetFunction, CUDA_ERROR_NOT_FOUND, CUDA_SUCCESS) \
	X(module_garbage, cuModuleLoadData, CUDA_ERROR_INVALID_IMAGE, CUDA_SUCCESS) \
	X(launch_shape, cuLaunchKernel, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(function_attributes, cuFuncGetAttribute, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(launch_by_configuration, cuLaunchKernelEx, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(pool_frees_no_vmm, cuMemFreeAsync, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(pool_memory_has_no_handle, cuMemRetainAllocationHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(default_pool_stays, cuMemPoolDestroy, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(ipc_shares_bytes, cuIpcOpenMemHandle, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE) \
	X(ipc_of_mapping, cuIpcGetMemHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(ipc_in_own_process, cuIpcOpenMemHandle, CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS) \
	X(ipc_garbage, cuIpcOpenMemHandle, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(ipc_is_closed_not_freed, cuMemFree, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS) \
	X(ipc_event, cuEventQuery, CUDA_ERROR_NOT_READY, CUDA_SUCCESS) \
	X(ipc_event_needs_flag, cuIpcGetEventHandle, CUDA_ERROR_INVALID_HANDLE, CUDA_SUCCESS)
/* clang-format on */

/* `call` is the name without _v2 and the like, of so many bytes. Gives the answer to make. */
CUresult sim_answer(const char *call, size_t call_bytes, CUresult result);

#endif
