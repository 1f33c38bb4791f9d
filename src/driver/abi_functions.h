#ifndef STASIS_DRIVER_ABI_FUNCTIONS_H
#define STASIS_DRIVER_ABI_FUNCTIONS_H

/*
 * The CUDA driver's entry points that we call, intercept or simulate: the list, and their prototypes
 * under their ELF names. Parameter meanings are NVIDIA's and are not repeated here.
 */

#include "driver/abi_types.h"

#define CUDAAPI

/*
 * X(query, version, elf): cuGetProcAddress answers the name 'query', asked for at CUDA version
 * 'version' or newer (and older than the next row of the same name), with the entry whose ELF name is
 * 'elf'. cuda.h renames some calls by macro; an unsuffixed ELF name such as cuMemAlloc is the 32-bit
 * relic and is not listed.
 */
/* clang-format off */
#define STASIS_ABI_FUNCTIONS(X) \
	X(cuInit, 2000, cuInit) \
	X(cuDriverGetVersion, 2020, cuDriverGetVersion) \
	X(cuGetErrorName, 6000, cuGetErrorName) \
	X(cuGetErrorString, 6000, cuGetErrorString) \
	X(cuGetProcAddress, 12000, cuGetProcAddress_v2) \
	X(cuGetProcAddress, 11030, cuGetProcAddress) \
	X(cuGetExportTable, 3000, cuGetExportTable) \
	X(cuDeviceGet, 2000, cuDeviceGet) \
	X(cuDeviceGetCount, 2000, cuDeviceGetCount) \
	X(cuDeviceGetName, 2000, cuDeviceGetName) \
	X(cuDeviceGetUuid, 9020, cuDeviceGetUuid) \
	X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2) \
	X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2) \
	X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute) \
	X(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId) \
	X(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId) \
	X(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer) \
	X(cuDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute) \
	X(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool) \
	X(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool) \
	X(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool) \
	X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain) \
	X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2) \
	X(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease) \
	X(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2) \
	X(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset) \
	X(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState) \
	X(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2) \
	X(cuCtxCreate, 3020, cuCtxCreate_v2) \
	X(cuCtxCreate, 12050, cuCtxCreate_v4) \
	X(cuCtxDestroy, 4000, cuCtxDestroy_v2) \
	X(cuCtxDestroy, 2000, cuCtxDestroy) \
	X(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2) \
	X(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2) \
	X(cuCtxSetCurrent, 4000, cuCtxSetCurrent) \
	X(cuCtxGetCurrent, 4000, cuCtxGetCurrent) \
	X(cuCtxGetDevice, 2000, cuCtxGetDevice) \
	X(cuCtxGetDevice, 13000, cuCtxGetDevice_v2) \
	X(cuCtxGetFlags, 7000, cuCtxGetFlags) \
	X(cuCtxGetId, 12000, cuCtxGetId) \
	X(cuCtxSynchronize, 2000, cuCtxSynchronize) \
	X(cuCtxSynchronize, 13000, cuCtxSynchronize_v2) \
	X(cuCtxRecordEvent, 12050, cuCtxRecordEvent) \
	X(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion) \
	X(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange) \
	X(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess) \
	X(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess) \
	X(cuCtxGetLimit, 3010, cuCtxGetLimit) \
	X(cuCtxSetLimit, 3010, cuCtxSetLimit) \
	X(cuMemGetInfo, 3020, cuMemGetInfo_v2) \
	X(cuMemAlloc, 3020, cuMemAlloc_v2) \
	X(cuMemAllocPitch, 3020, cuMemAllocPitch_v2) \
	X(cuMemFree, 3020, cuMemFree_v2) \
	X(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2) \
	X(cuMemAllocHost, 3020, cuMemAllocHost_v2) \
	X(cuMemFreeHost, 2000, cuMemFreeHost) \
	X(cuMemHostAlloc, 2020, cuMemHostAlloc) \
	X(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2) \
	X(cuMemHostGetFlags, 2030, cuMemHostGetFlags) \
	X(cuMemHostRegister, 6050, cuMemHostRegister_v2) \
	X(cuMemHostUnregister, 4000, cuMemHostUnregister) \
	X(cuMemAllocManaged, 6000, cuMemAllocManaged) \
	X(cuMemcpy, 4000, cuMemcpy) \
	X(cuMemcpyAsync, 4000, cuMemcpyAsync) \
	X(cuMemcpyPeer, 4000, cuMemcpyPeer) \
	X(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync) \
	X(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2) \
	X(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2) \
	X(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2) \
	X(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2) \
	X(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2) \
	X(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2) \
	X(cuMemcpy2D, 3020, cuMemcpy2D_v2) \
	X(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2) \
	X(cuMemsetD8, 3020, cuMemsetD8_v2) \
	X(cuMemsetD16, 3020, cuMemsetD16_v2) \
	X(cuMemsetD32, 3020, cuMemsetD32_v2) \
	X(cuMemsetD2D8, 3020, cuMemsetD2D8_v2) \
	X(cuMemsetD2D32, 3020, cuMemsetD2D32_v2) \
	X(cuMemsetD8Async, 3020, cuMemsetD8Async) \
	X(cuMemsetD16Async, 3020, cuMemsetD16Async) \
	X(cuMemsetD32Async, 3020, cuMemsetD32Async) \
	X(cuMemsetD2D8Async, 3020, cuMemsetD2D8Async) \
	X(cuIpcGetEventHandle, 4010, cuIpcGetEventHandle) \
	X(cuIpcOpenEventHandle, 4010, cuIpcOpenEventHandle) \
	X(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle) \
	X(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2) \
	X(cuIpcOpenMemHandle, 4010, cuIpcOpenMemHandle) \
	X(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle) \
	X(cuMemAddressReserve, 10020, cuMemAddressReserve) \
	X(cuMemAddressFree, 10020, cuMemAddressFree) \
	X(cuMemCreate, 10020, cuMemCreate) \
	X(cuMemRelease, 10020, cuMemRelease) \
	X(cuMemMap, 10020, cuMemMap) \
	X(cuMemUnmap, 10020, cuMemUnmap) \
	X(cuMemSetAccess, 10020, cuMemSetAccess) \
	X(cuMemGetAccess, 10020, cuMemGetAccess) \
	X(cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle) \
	X(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle) \
	X(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity) \
	X(cuMemGetAllocationPropertiesFromHandle, 10020, cuMemGetAllocationPropertiesFromHandle) \
	X(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle) \
	X(cuMemGetHandleForAddressRange, 11070, cuMemGetHandleForAddressRange) \
	X(cuMemAllocAsync, 11020, cuMemAllocAsync) \
	X(cuMemFreeAsync, 11020, cuMemFreeAsync) \
	X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync) \
	X(cuMemPoolCreate, 11020, cuMemPoolCreate) \
	X(cuMemPoolDestroy, 11020, cuMemPoolDestroy) \
	X(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute) \
	X(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute) \
	X(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo) \
	X(cuMemPoolSetAccess, 11020, cuMemPoolSetAccess) \
	X(cuMemPoolGetAccess, 11020, cuMemPoolGetAccess) \
	X(cuMemPoolExportToShareableHandle, 11020, cuMemPoolExportToShareableHandle) \
	X(cuMemPoolImportFromShareableHandle, 11020, cuMemPoolImportFromShareableHandle) \
	X(cuMemPoolExportPointer, 11020, cuMemPoolExportPointer) \
	X(cuMemPoolImportPointer, 11020, cuMemPoolImportPointer) \
	X(cuMulticastCreate, 12010, cuMulticastCreate) \
	X(cuMulticastAddDevice, 12010, cuMulticastAddDevice) \
	X(cuMulticastBindMem, 12010, cuMulticastBindMem) \
	X(cuMulticastBindMem, 13010, cuMulticastBindMem_v2) \
	X(cuMulticastBindAddr, 12010, cuMulticastBindAddr) \
	X(cuMulticastBindAddr, 13010, cuMulticastBindAddr_v2) \
	X(cuMulticastUnbind, 12010, cuMulticastUnbind) \
	X(cuMulticastGetGranularity, 12010, cuMulticastGetGranularity) \
	X(cuPointerGetAttribute, 4000, cuPointerGetAttribute) \
	X(cuPointerGetAttributes, 7000, cuPointerGetAttributes) \
	X(cuPointerSetAttribute, 6000, cuPointerSetAttribute) \
	X(cuStreamCreate, 2000, cuStreamCreate) \
	X(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority) \
	X(cuStreamDestroy, 4000, cuStreamDestroy_v2) \
	X(cuStreamQuery, 2000, cuStreamQuery) \
	X(cuStreamSynchronize, 2000, cuStreamSynchronize) \
	X(cuStreamWaitEvent, 3020, cuStreamWaitEvent) \
	X(cuStreamAddCallback, 5000, cuStreamAddCallback) \
	X(cuStreamIsCapturing, 10000, cuStreamIsCapturing) \
	X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2) \
	X(cuStreamBeginCaptureToGraph, 12030, cuStreamBeginCaptureToGraph) \
	X(cuStreamEndCapture, 10000, cuStreamEndCapture) \
	X(cuStreamGetCaptureInfo, 11030, cuStreamGetCaptureInfo_v2) \
	X(cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3) \
	X(cuStreamGetCtx, 9020, cuStreamGetCtx) \
	X(cuStreamGetCtx, 12050, cuStreamGetCtx_v2) \
	X(cuStreamGetDevice, 12080, cuStreamGetDevice) \
	X(cuStreamGetId, 12000, cuStreamGetId) \
	X(cuStreamGetFlags, 5050, cuStreamGetFlags) \
	X(cuStreamGetPriority, 5050, cuStreamGetPriority) \
	X(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode) \
	X(cuLaunchHostFunc, 10000, cuLaunchHostFunc) \
	X(cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2) \
	X(cuStreamWriteValue32, 11070, cuStreamWriteValue32_v2) \
	X(cuStreamWaitValue64, 11070, cuStreamWaitValue64_v2) \
	X(cuStreamWriteValue64, 11070, cuStreamWriteValue64_v2) \
	X(cuEventCreate, 2000, cuEventCreate) \
	X(cuEventRecord, 2000, cuEventRecord) \
	X(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags) \
	X(cuEventQuery, 2000, cuEventQuery) \
	X(cuEventSynchronize, 2000, cuEventSynchronize) \
	X(cuEventDestroy, 4000, cuEventDestroy_v2) \
	X(cuEventElapsedTime, 12080, cuEventElapsedTime_v2) \
	X(cuModuleLoadData, 2000, cuModuleLoadData) \
	X(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx) \
	X(cuModuleUnload, 2000, cuModuleUnload) \
	X(cuModuleGetFunction, 2000, cuModuleGetFunction) \
	X(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2) \
	X(cuFuncGetAttribute, 2020, cuFuncGetAttribute) \
	X(cuFuncSetAttribute, 9000, cuFuncSetAttribute) \
	X(cuLaunchKernel, 4000, cuLaunchKernel) \
	X(cuLaunchKernelEx, 11060, cuLaunchKernelEx) \
	X(cuGraphCreate, 10000, cuGraphCreate) \
	X(cuGraphDestroy, 10000, cuGraphDestroy) \
	X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags) \
	X(cuGraphLaunch, 10000, cuGraphLaunch) \
	X(cuGraphExecDestroy, 10000, cuGraphExecDestroy) \
	X(cuGraphUpload, 11010, cuGraphUpload) \
	X(cuGraphGetNodes, 10000, cuGraphGetNodes) \
	X(cuGraphAddKernelNode, 12000, cuGraphAddKernelNode_v2) \
	X(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode) \
	X(cuGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode) \
	X(cuCheckpointProcessGetState, 12080, cuCheckpointProcessGetState) \
	X(cuCheckpointProcessGetRestoreThreadId, 12080, cuCheckpointProcessGetRestoreThreadId) \
	X(cuCheckpointProcessLock, 12080, cuCheckpointProcessLock) \
	X(cuCheckpointProcessCheckpoint, 12080, cuCheckpointProcessCheckpoint) \
	X(cuCheckpointProcessRestore, 12080, cuCheckpointProcessRestore) \
	X(cuCheckpointProcessUnlock, 12080, cuCheckpointProcessUnlock) \
	X(cuCheckpointOperationComplete, 13040, cuCheckpointOperationComplete)
/* clang-format on */

CUresult CUDAAPI cuInit(unsigned int);
CUresult CUDAAPI cuDriverGetVersion(int *);
CUresult CUDAAPI cuGetErrorName(CUresult, const char **);
CUresult CUDAAPI cuGetErrorString(CUresult, const char **);
CUresult CUDAAPI cuGetProcAddress_v2(const char *, void **, int, cuuint64_t,
				     CUdriverProcAddressQueryResult *);
CUresult CUDAAPI cuGetProcAddress(const char *, void **, int, cuuint64_t);
CUresult CUDAAPI cuGetExportTable(const void **, const CUuuid *);
CUresult CUDAAPI cuDeviceGet(CUdevice *, int);
CUresult CUDAAPI cuDeviceGetCount(int *);
CUresult CUDAAPI cuDeviceGetName(char *, int, CUdevice);
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *, CUdevice);
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *, CUdevice);
CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *, CUdevice);
CUresult CUDAAPI cuDeviceGetAttribute(int *, CUdevice_attribute, CUdevice);
CUresult CUDAAPI cuDeviceGetPCIBusId(char *, int, CUdevice);
CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *, const char *);
CUresult CUDAAPI cuDeviceCanAccessPeer(int *, CUdevice, CUdevice);
CUresult CUDAAPI cuDeviceGetP2PAttribute(int *, CUdevice_P2PAttribute, CUdevice, CUdevice);
CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *, CUdevice);
CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *, CUdevice);
CUresult CUDAAPI cuDeviceSetMemPool(CUdevice, CUmemoryPool);
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice, unsigned int *, int *);
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned int);
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *, CUctxCreateParams *, unsigned int, CUdevice);
CUresult CUDAAPI cuCtxDestroy_v2(CUcontext);
CUresult CUDAAPI cuCtxDestroy(CUcontext);
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext);
CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *);
CUresult CUDAAPI cuCtxSetCurrent(CUcontext);
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *);
CUresult CUDAAPI cuCtxGetDevice(CUdevice *);
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *, CUcontext);
CUresult CUDAAPI cuCtxGetFlags(unsigned int *);
CUresult CUDAAPI cuCtxGetId(CUcontext, unsigned long long *);
CUresult CUDAAPI cuCtxSynchronize(void);
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext);
CUresult CUDAAPI cuCtxRecordEvent(CUcontext, CUevent);
CUresult CUDAAPI cuCtxGetApiVersion(CUcontext, unsigned int *);
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *, int *);
CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext, unsigned int);
CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext);
CUresult CUDAAPI cuCtxGetLimit(size_t *, CUlimit);
CUresult CUDAAPI cuCtxSetLimit(CUlimit, size_t);
CUresult CUDAAPI cuMemGetInfo_v2(size_t *, size_t *);
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned int);
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr);
CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult CUDAAPI cuMemAllocHost_v2(void **, size_t);
CUresult CUDAAPI cuMemFreeHost(void *);
CUresult CUDAAPI cuMemHostAlloc(void **, size_t, unsigned int);
CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned int);
CUresult CUDAAPI cuMemHostGetFlags(unsigned int *, void *);
CUresult CUDAAPI cuMemHostRegister_v2(void *, size_t, unsigned int);
CUresult CUDAAPI cuMemHostUnregister(void *);
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *, size_t, unsigned int);
CUresult CUDAAPI cuMemcpy(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t,
				   CUstream);
CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult CUDAAPI cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D *);
CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *, CUstream);
CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr, unsigned short, size_t);
CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr, unsigned int, size_t);
CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr, size_t, unsigned char, size_t, size_t);
CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr, size_t, unsigned int, size_t, size_t);
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr, unsigned short, size_t, CUstream);
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr, unsigned int, size_t, CUstream);
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream);
CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *, CUevent);
CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *, CUipcEventHandle);
CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *, CUdeviceptr);
CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *, CUipcMemHandle, unsigned int);
CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *, CUipcMemHandle, unsigned int);
CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr);
CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr,
				     unsigned long long);
CUresult CUDAAPI cuMemAddressFree(CUdeviceptr, size_t);
CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			     unsigned long long);
CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle);
CUresult CUDAAPI cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
			  unsigned long long);
CUresult CUDAAPI cuMemUnmap(CUdeviceptr, size_t);
CUresult CUDAAPI cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
CUresult CUDAAPI cuMemGetAccess(unsigned long long *, const CUmemLocation *, CUdeviceptr);
CUresult CUDAAPI cuMemExportToShareableHandle(void *, CUmemGenericAllocationHandle,
					      CUmemAllocationHandleType, unsigned long long);
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *, void *,
						CUmemAllocationHandleType);
CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *, const CUmemAllocationProp *,
					       CUmemAllocationGranularity_flags);
CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *,
							CUmemGenericAllocationHandle);
CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *, void *);
CUresult CUDAAPI cuMemGetHandleForAddressRange(void *, CUdeviceptr, size_t, CUmemRangeHandleType,
					       unsigned long long);
CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *, const CUmemPoolProps *);
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool);
CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void *);
CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute, void *);
CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool, size_t);
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc *, size_t);
CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *, CUmemoryPool, CUmemLocation *);
CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *, CUmemoryPool, CUmemAllocationHandleType,
						  unsigned long long);
CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *, void *,
						    CUmemAllocationHandleType, unsigned long long);
CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *, CUdeviceptr);
CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *);
CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle *, const CUmulticastObjectProp *);
CUresult CUDAAPI cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice);
CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle, size_t,
				    CUmemGenericAllocationHandle, size_t, size_t,
				    unsigned long long);
CUresult CUDAAPI cuMulticastBindMem_v2(CUmemGenericAllocationHandle, CUdevice, size_t,
				       CUmemGenericAllocationHandle, size_t, size_t,
				       unsigned long long);
CUresult CUDAAPI cuMulticastBindAddr(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t,
				     unsigned long long);
CUresult CUDAAPI cuMulticastBindAddr_v2(CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr,
					size_t, unsigned long long);
CUresult CUDAAPI cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t);
CUresult CUDAAPI cuMulticastGetGranularity(size_t *, const CUmulticastObjectProp *,
					   CUmulticastGranularity_flags);
CUresult CUDAAPI cuPointerGetAttribute(void *, CUpointer_attribute, CUdeviceptr);
CUresult CUDAAPI cuPointerGetAttributes(unsigned int, CUpointer_attribute *, void **, CUdeviceptr);
CUresult CUDAAPI cuPointerSetAttribute(const void *, CUpointer_attribute, CUdeviceptr);
CUresult CUDAAPI cuStreamCreate(CUstream *, unsigned int);
CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *, unsigned int, int);
CUresult CUDAAPI cuStreamDestroy_v2(CUstream);
CUresult CUDAAPI cuStreamQuery(CUstream);
CUresult CUDAAPI cuStreamSynchronize(CUstream);
CUresult CUDAAPI cuStreamWaitEvent(CUstream, CUevent, unsigned int);
CUresult CUDAAPI cuStreamAddCallback(CUstream, CUstreamCallback, void *, unsigned int);
CUresult CUDAAPI cuStreamIsCapturing(CUstream, CUstreamCaptureStatus *);
CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *,
					     const CUgraphEdgeData *, size_t, CUstreamCaptureMode);
CUresult CUDAAPI cuStreamEndCapture(CUstream, CUgraph *);
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus *, cuuint64_t *,
					   CUgraph *, const CUgraphNode **, size_t *);
CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream, CUstreamCaptureStatus *, cuuint64_t *,
					   CUgraph *, const CUgraphNode **,
					   const CUgraphEdgeData **, size_t *);
CUresult CUDAAPI cuStreamGetCtx(CUstream, CUcontext *);
CUresult CUDAAPI cuStreamGetCtx_v2(CUstream, CUcontext *, CUgreenCtx *);
CUresult CUDAAPI cuStreamGetDevice(CUstream, CUdevice *);
CUresult CUDAAPI cuStreamGetId(CUstream, unsigned long long *);
CUresult CUDAAPI cuStreamGetFlags(CUstream, unsigned int *);
CUresult CUDAAPI cuStreamGetPriority(CUstream, int *);
CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *);
CUresult CUDAAPI cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream, CUdeviceptr, cuuint64_t, unsigned int);
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream, CUdeviceptr, cuuint64_t, unsigned int);
CUresult CUDAAPI cuEventCreate(CUevent *, unsigned int);
CUresult CUDAAPI cuEventRecord(CUevent, CUstream);
CUresult CUDAAPI cuEventRecordWithFlags(CUevent, CUstream, unsigned int);
CUresult CUDAAPI cuEventQuery(CUevent);
CUresult CUDAAPI cuEventSynchronize(CUevent);
CUresult CUDAAPI cuEventDestroy_v2(CUevent);
CUresult CUDAAPI cuEventElapsedTime_v2(float *, CUevent, CUevent);
CUresult CUDAAPI cuModuleLoadData(CUmodule *, const void *);
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *, const void *, unsigned int, CUjit_option *,
				    void **);
CUresult CUDAAPI cuModuleUnload(CUmodule);
CUresult CUDAAPI cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult CUDAAPI cuFuncGetAttribute(int *, CUfunction_attribute, CUfunction);
CUresult CUDAAPI cuFuncSetAttribute(CUfunction, CUfunction_attribute, int);
CUresult CUDAAPI cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
				unsigned int, unsigned int, unsigned int, CUstream, void **,
				void **);
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult CUDAAPI cuGraphCreate(CUgraph *, unsigned int);
CUresult CUDAAPI cuGraphDestroy(CUgraph);
CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult CUDAAPI cuGraphLaunch(CUgraphExec, CUstream);
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec);
CUresult CUDAAPI cuGraphUpload(CUgraphExec, CUstream);
CUresult CUDAAPI cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
					 const CUDA_KERNEL_NODE_PARAMS *);
CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
					CUDA_MEM_ALLOC_NODE_PARAMS *);
CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
				       CUdeviceptr);
CUresult CUDAAPI cuCheckpointProcessGetState(int, CUprocessState *);
CUresult CUDAAPI cuCheckpointProcessGetRestoreThreadId(int, int *);
CUresult CUDAAPI cuCheckpointProcessLock(int, CUcheckpointLockArgs *);
CUresult CUDAAPI cuCheckpointProcessCheckpoint(int, CUcheckpointCheckpointArgs *);
CUresult CUDAAPI cuCheckpointProcessRestore(int, CUcheckpointRestoreArgs *);
CUresult CUDAAPI cuCheckpointProcessUnlock(int, CUcheckpointUnlockArgs *);
CUresult CUDAAPI cuCheckpointOperationComplete(CUcheckpointOperationHandle);

#endif
