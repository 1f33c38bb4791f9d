/*
 * The handlers of the calls that share memory, events and pools otherwise than by descriptors of memory. Nothing of it
 * is carried through a capture: the driver would bring the one side back and lose the other (an opener of legacy IPC
 * under driver 580), or give each its own. So it is counted, and such a process is refused.
 */

#include "interpose/handlers.h"
#include "interpose/registry.h"

static CUresult note(enum stasis_ipc what, CUresult result)
{
	if (result == CUDA_SUCCESS)
		stasis_registry_note_ipc(what);
	return result;
}

CUresult stasis_handle_cuIpcGetMemHandle(__typeof__(cuIpcGetMemHandle) *target,
					 CUipcMemHandle *ret_handle, CUdeviceptr address)
{
	return note(STASIS_IPC_MEMORY_GIVEN, target(ret_handle, address));
}

CUresult stasis_handle_cuIpcOpenMemHandle(__typeof__(cuIpcOpenMemHandle) *target,
					  CUdeviceptr *ret_address, CUipcMemHandle handle,
					  unsigned int flags)
{
	return note(STASIS_IPC_MEMORY_OPENED, target(ret_address, handle, flags));
}

CUresult stasis_handle_cuIpcOpenMemHandle_v2(__typeof__(cuIpcOpenMemHandle_v2) *target,
					     CUdeviceptr *ret_address, CUipcMemHandle handle,
					     unsigned int flags)
{
	return note(STASIS_IPC_MEMORY_OPENED, target(ret_address, handle, flags));
}

CUresult stasis_handle_cuIpcCloseMemHandle(__typeof__(cuIpcCloseMemHandle) *target,
					   CUdeviceptr address)
{
	return note(STASIS_IPC_MEMORY_CLOSED, target(address));
}

CUresult stasis_handle_cuIpcGetEventHandle(__typeof__(cuIpcGetEventHandle) *target,
					   CUipcEventHandle *ret_handle, CUevent event)
{
	return note(STASIS_IPC_EVENT, target(ret_handle, event));
}

CUresult stasis_handle_cuIpcOpenEventHandle(__typeof__(cuIpcOpenEventHandle) *target,
					    CUevent *ret_event, CUipcEventHandle handle)
{
	return note(STASIS_IPC_EVENT, target(ret_event, handle));
}

CUresult stasis_handle_cuMemPoolExportToShareableHandle(
	__typeof__(cuMemPoolExportToShareableHandle) *target, void *ret_shareable,
	CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
{
	return note(STASIS_IPC_POOL, target(ret_shareable, pool, type, flags));
}

CUresult stasis_handle_cuMemPoolImportFromShareableHandle(
	__typeof__(cuMemPoolImportFromShareableHandle) *target, CUmemoryPool *ret_pool,
	void *shareable, CUmemAllocationHandleType type, unsigned long long flags)
{
	return note(STASIS_IPC_POOL, target(ret_pool, shareable, type, flags));
}
