#ifndef STASIS_INTERPOSE_HANDLERS_H
#define STASIS_INTERPOSE_HANDLERS_H

/*
 * The handlers of entries of class HANDLED (symbols.h), with the driver's own types: called inside the gate
 * with the function to go on to, they call it, record what came of it, and return its result. errno is
 * kept. entry.c calls them with words in the place of arguments, as signature.h explains.
 */

#include <stdint.h>

#include "driver/abi.h"

/* init.c */
CUresult stasis_handle_cuInit(CUresult (*target)(unsigned int), unsigned int flags);

/* wrap_vmm.c */
CUresult stasis_handle_cuMemCreate(__typeof__(cuMemCreate) *target,
				   CUmemGenericAllocationHandle *ret_handle, size_t bytes,
				   const CUmemAllocationProp *prop, unsigned long long flags);
CUresult stasis_handle_cuMemRelease(__typeof__(cuMemRelease) *target,
				    CUmemGenericAllocationHandle handle);
CUresult stasis_handle_cuMemRetainAllocationHandle(__typeof__(cuMemRetainAllocationHandle) *target,
						   CUmemGenericAllocationHandle *ret_handle,
						   void *address);
CUresult stasis_handle_cuMemGetAllocationPropertiesFromHandle(
	__typeof__(cuMemGetAllocationPropertiesFromHandle) *target, CUmemAllocationProp *ret_prop,
	CUmemGenericAllocationHandle handle);
CUresult stasis_handle_cuMemMap(__typeof__(cuMemMap) *target, CUdeviceptr address, size_t bytes,
				size_t offset, CUmemGenericAllocationHandle handle,
				unsigned long long flags);
CUresult stasis_handle_cuMemUnmap(__typeof__(cuMemUnmap) *target, CUdeviceptr address,
				  size_t bytes);
CUresult stasis_handle_cuMemSetAccess(__typeof__(cuMemSetAccess) *target, CUdeviceptr address,
				      size_t bytes, const CUmemAccessDesc *access, size_t count);

/* wrap_array.c */
struct stasis_array_map;
CUresult stasis_handle_cuMemMapArrayAsync(CUresult (*target)(struct stasis_array_map *,
							     unsigned int, CUstream),
					  struct stasis_array_map *list, unsigned int count,
					  CUstream stream);
CUresult stasis_handle_cuMemMapArrayAsync_ptsz(CUresult (*target)(struct stasis_array_map *,
								  unsigned int, CUstream),
					       struct stasis_array_map *list, unsigned int count,
					       CUstream stream);

/* wrap_pointer.c */
CUresult stasis_handle_cuPointerGetAttribute(__typeof__(cuPointerGetAttribute) *target,
					     void *ret_data, CUpointer_attribute attribute,
					     CUdeviceptr address);
CUresult stasis_handle_cuPointerGetAttributes(__typeof__(cuPointerGetAttributes) *target,
					      unsigned int count, CUpointer_attribute *attributes,
					      void **ret_data, CUdeviceptr address);

/* wrap_ipc.c */
CUresult stasis_handle_cuIpcGetMemHandle(__typeof__(cuIpcGetMemHandle) *target,
					 CUipcMemHandle *ret_handle, CUdeviceptr address);
CUresult stasis_handle_cuIpcOpenMemHandle(__typeof__(cuIpcOpenMemHandle) *target,
					  CUdeviceptr *ret_address, CUipcMemHandle handle,
					  unsigned int flags);
CUresult stasis_handle_cuIpcOpenMemHandle_v2(__typeof__(cuIpcOpenMemHandle_v2) *target,
					     CUdeviceptr *ret_address, CUipcMemHandle handle,
					     unsigned int flags);
CUresult stasis_handle_cuIpcCloseMemHandle(__typeof__(cuIpcCloseMemHandle) *target,
					   CUdeviceptr address);
CUresult stasis_handle_cuIpcGetEventHandle(__typeof__(cuIpcGetEventHandle) *target,
					   CUipcEventHandle *ret_handle, CUevent event);
CUresult stasis_handle_cuIpcOpenEventHandle(__typeof__(cuIpcOpenEventHandle) *target,
					    CUevent *ret_event, CUipcEventHandle handle);
CUresult stasis_handle_cuMemPoolExportToShareableHandle(
	__typeof__(cuMemPoolExportToShareableHandle) *target, void *ret_shareable,
	CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags);
CUresult stasis_handle_cuMemPoolImportFromShareableHandle(
	__typeof__(cuMemPoolImportFromShareableHandle) *target, CUmemoryPool *ret_pool,
	void *shareable, CUmemAllocationHandleType type, unsigned long long flags);

/* wrap_endpoint.c; CUlogicalEndpointId of cuda.h (13.3 on) is a number of 32 bits */
typedef CUresult stasis_endpoint_bind(uint32_t, CUdevice, uint64_t, CUmemGenericAllocationHandle,
				      uint64_t, uint64_t, unsigned long long);
CUresult stasis_handle_cuLogicalEndpointBindMem(stasis_endpoint_bind *target, uint32_t endpoint,
						CUdevice device, uint64_t offset,
						CUmemGenericAllocationHandle handle,
						uint64_t memory_offset, uint64_t bytes,
						unsigned long long flags);
CUresult stasis_handle_cuLogicalEndpointCreate(CUresult (*target)(uint32_t, const void *),
					       uint32_t endpoint, const void *prop);
CUresult
stasis_handle_cuLogicalEndpointImport(CUresult (*target)(uint32_t, const void *, unsigned int),
				      uint32_t endpoint, const void *shareable, unsigned int type);

/* share.c */
CUresult
stasis_handle_cuMemExportToShareableHandle(__typeof__(cuMemExportToShareableHandle) *target,
					   void *ret_shareable, CUmemGenericAllocationHandle handle,
					   CUmemAllocationHandleType type,
					   unsigned long long flags);
CUresult
stasis_handle_cuMemImportFromShareableHandle(__typeof__(cuMemImportFromShareableHandle) *target,
					     CUmemGenericAllocationHandle *ret_handle,
					     void *shareable, CUmemAllocationHandleType type);

/* wrap_multicast.c */
CUresult stasis_handle_cuMulticastCreate(__typeof__(cuMulticastCreate) *target,
					 CUmemGenericAllocationHandle *ret_handle,
					 const CUmulticastObjectProp *prop);
CUresult stasis_handle_cuMulticastAddDevice(__typeof__(cuMulticastAddDevice) *target,
					    CUmemGenericAllocationHandle handle, CUdevice device);
CUresult stasis_handle_cuMulticastBindMem(__typeof__(cuMulticastBindMem) *target,
					  CUmemGenericAllocationHandle handle, size_t offset,
					  CUmemGenericAllocationHandle member_handle,
					  size_t member_offset, size_t bytes,
					  unsigned long long flags);
CUresult stasis_handle_cuMulticastBindMem_v2(__typeof__(cuMulticastBindMem_v2) *target,
					     CUmemGenericAllocationHandle handle, CUdevice device,
					     size_t offset,
					     CUmemGenericAllocationHandle member_handle,
					     size_t member_offset, size_t bytes,
					     unsigned long long flags);
CUresult stasis_handle_cuMulticastBindAddr(__typeof__(cuMulticastBindAddr) *target,
					   CUmemGenericAllocationHandle handle, size_t offset,
					   CUdeviceptr address, size_t bytes,
					   unsigned long long flags);
CUresult stasis_handle_cuMulticastBindAddr_v2(__typeof__(cuMulticastBindAddr_v2) *target,
					      CUmemGenericAllocationHandle handle, CUdevice device,
					      size_t offset, CUdeviceptr address, size_t bytes,
					      unsigned long long flags);
CUresult stasis_handle_cuMulticastUnbind(__typeof__(cuMulticastUnbind) *target,
					 CUmemGenericAllocationHandle handle, CUdevice device,
					 size_t offset, size_t bytes);

/* wrap_stream.c */
CUresult stasis_handle_cuStreamCreate(__typeof__(cuStreamCreate) *target, CUstream *ret_stream,
				      unsigned int flags);
CUresult stasis_handle_cuStreamCreateWithPriority(__typeof__(cuStreamCreateWithPriority) *target,
						  CUstream *ret_stream, unsigned int flags,
						  int priority);
CUresult stasis_handle_cuGreenCtxStreamCreate(CUresult (*target)(CUstream *, CUgreenCtx,
								 unsigned int, int),
					      CUstream *ret_stream, CUgreenCtx green,
					      unsigned int flags, int priority);
CUresult stasis_handle_cuStreamDestroy(__typeof__(cuStreamDestroy_v2) *target, CUstream stream);
CUresult stasis_handle_cuStreamDestroy_v2(__typeof__(cuStreamDestroy_v2) *target, CUstream stream);
CUresult stasis_handle_cuStreamBeginCapture(CUresult (*target)(CUstream), CUstream stream);
CUresult stasis_handle_cuStreamBeginCapture_ptsz(CUresult (*target)(CUstream), CUstream stream);
CUresult stasis_handle_cuStreamBeginCapture_v2(__typeof__(cuStreamBeginCapture_v2) *target,
					       CUstream stream, CUstreamCaptureMode mode);
CUresult stasis_handle_cuStreamBeginCapture_v2_ptsz(__typeof__(cuStreamBeginCapture_v2) *target,
						    CUstream stream, CUstreamCaptureMode mode);
typedef CUresult stasis_capture_to_graph(CUstream, CUgraph, const CUgraphNode *,
					 const CUgraphEdgeData *, size_t, CUstreamCaptureMode);
CUresult stasis_handle_cuStreamBeginCaptureToGraph(stasis_capture_to_graph *target, CUstream stream,
						   CUgraph graph, const CUgraphNode *nodes,
						   const CUgraphEdgeData *edges, size_t count,
						   CUstreamCaptureMode mode);
CUresult stasis_handle_cuStreamBeginCaptureToGraph_ptsz(stasis_capture_to_graph *target,
							CUstream stream, CUgraph graph,
							const CUgraphNode *nodes,
							const CUgraphEdgeData *edges, size_t count,
							CUstreamCaptureMode mode);
CUresult stasis_handle_cuStreamEndCapture(__typeof__(cuStreamEndCapture) *target, CUstream stream,
					  CUgraph *ret_graph);
CUresult stasis_handle_cuStreamEndCapture_ptsz(__typeof__(cuStreamEndCapture) *target,
					       CUstream stream, CUgraph *ret_graph);

/* wrap_context.c */
CUresult stasis_handle_cuCtxCreate(__typeof__(cuCtxCreate_v2) *target, CUcontext *ret_context,
				   unsigned int flags, CUdevice device);
CUresult stasis_handle_cuCtxCreate_v2(__typeof__(cuCtxCreate_v2) *target, CUcontext *ret_context,
				      unsigned int flags, CUdevice device);
CUresult stasis_handle_cuCtxCreate_v3(CUresult (*target)(CUcontext *, void *, int, unsigned int,
							 CUdevice),
				      CUcontext *ret_context, void *affinity, int count,
				      unsigned int flags, CUdevice device);
CUresult stasis_handle_cuCtxCreate_v4(__typeof__(cuCtxCreate_v4) *target, CUcontext *ret_context,
				      CUctxCreateParams *parameters, unsigned int flags,
				      CUdevice device);
CUresult stasis_handle_cuCtxDestroy(__typeof__(cuCtxDestroy_v2) *target, CUcontext context);
CUresult stasis_handle_cuCtxDestroy_v2(__typeof__(cuCtxDestroy_v2) *target, CUcontext context);
CUresult stasis_handle_cuCtxDetach(__typeof__(cuCtxDestroy_v2) *target, CUcontext context);
CUresult stasis_handle_cuGreenCtxDestroy(CUresult (*target)(CUgreenCtx), CUgreenCtx green);
CUresult stasis_handle_cuDevicePrimaryCtxRelease(CUresult (*target)(CUdevice), CUdevice device);
CUresult stasis_handle_cuDevicePrimaryCtxRelease_v2(CUresult (*target)(CUdevice), CUdevice device);
CUresult stasis_handle_cuDevicePrimaryCtxReset(CUresult (*target)(CUdevice), CUdevice device);
CUresult stasis_handle_cuDevicePrimaryCtxReset_v2(CUresult (*target)(CUdevice), CUdevice device);

#endif
