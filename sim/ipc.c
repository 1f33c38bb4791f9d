/*
 * The legacy IPC calls. A handle of memory names the allocation that the pointer lies in, wherever in
 * it; handles of two allocations of one block differ in little. A process cannot open its own handle.
 */

#include "event.h"
#include "ipc_event.h"
#include "ipc_memory.h"
#include "stream.h"

#include <string.h>

static CUresult get_memory(CUipcMemHandle *ret_handle, CUdeviceptr pointer)
{
	const struct sim_allocation *allocation = sim_allocation_find(pointer);
	struct sim_ipc_name name;
	CUresult result;

	if (ret_handle == NULL || allocation == NULL || allocation->kind != SIM_ALLOCATION_LEGACY ||
	    allocation->is_freeing)
		return CUDA_ERROR_INVALID_VALUE;
	if (pointer != allocation->span.start && sim_breaks("ipc_interior"))
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_ipc_name_allocation(allocation, &name);
	if (result == CUDA_SUCCESS)
		memcpy(ret_handle, &name, sizeof(name));
	return result;
}

SIM_API CUresult cuIpcGetMemHandle(CUipcMemHandle *ret_handle, CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, get_memory(ret_handle, pointer));
}

/* Opened before by this process, with the same handle. */
static struct sim_allocation *find_opened(const CUipcMemHandle *handle)
{
	for (size_t i = 0; i < sim_allocation_count(); i++) {
		struct sim_allocation *allocation = sim_allocation_at(i);

		if (allocation->kind == SIM_ALLOCATION_IPC &&
		    memcmp(&allocation->ipc_handle, handle, sizeof(*handle)) == 0)
			return allocation;
	}
	return NULL;
}

static CUresult open_memory(CUdeviceptr *ret_pointer, const CUipcMemHandle *handle, unsigned flags)
{
	struct sim_allocation *allocation = NULL;
	struct sim_ipc_name name;
	CUresult result = CUDA_SUCCESS;

	if (ret_pointer == NULL || (flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	allocation = find_opened(handle);
	if (allocation != NULL) {
		allocation->opened++;
	} else {
		memcpy(&name, handle, sizeof(name));
		result = sim_ipc_open_allocation(&name, &allocation);
		if (result != CUDA_SUCCESS)
			return result;
		allocation->ipc_handle = *handle;
	}
	*ret_pointer = allocation->span.start;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret_pointer, CUipcMemHandle handle,
				       unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       open_memory(ret_pointer, &handle, flags));
}

SIM_API CUresult cuIpcOpenMemHandle(CUdeviceptr *ret_pointer, CUipcMemHandle handle,
				    unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       open_memory(ret_pointer, &handle, flags));
}

static CUresult close_memory(CUdeviceptr pointer)
{
	struct sim_allocation *allocation = sim_allocation_find(pointer);

	if (allocation == NULL || allocation->kind != SIM_ALLOCATION_IPC ||
	    allocation->span.start != pointer || allocation->is_freeing)
		return CUDA_ERROR_INVALID_VALUE;
	if (--allocation->opened > 0 && !sim_breaks("ipc_opens_are_counted"))
		return CUDA_SUCCESS;
	allocation->is_freeing = true;
	sim_stream_wait_context(allocation->context);
	sim_allocation_free(allocation);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, close_memory(pointer));
}

static CUresult get_event(CUipcEventHandle *ret_handle, CUevent handle)
{
	struct sim_event *event = NULL;
	struct sim_ipc_name name;
	CUresult result;

	if (ret_handle == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_event_get(handle, &event);
	if (result == CUDA_SUCCESS && event->ipc == NULL)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		result =
			sim_ipc_name_file(sim_ipc_event_fd(event->ipc), SIM_IPC_MAGIC_EVENT, &name);
	if (result == CUDA_SUCCESS)
		memcpy(ret_handle, &name, sizeof(name));
	return result;
}

SIM_API CUresult cuIpcGetEventHandle(CUipcEventHandle *ret_handle, CUevent event)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, get_event(ret_handle, event));
}

static CUresult open_event(CUevent *ret_event, const CUipcEventHandle *handle)
{
	struct sim_event *event = NULL;
	struct sim_ipc_event *ipc = NULL;
	struct sim_ipc_name name;
	int fd = -1;
	CUresult result;

	if (ret_event == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&name, handle, sizeof(name));
	result = sim_ipc_open_file(&name, SIM_IPC_MAGIC_EVENT, &fd);
	if (result == CUDA_SUCCESS)
		result = sim_ipc_event_open(fd, &ipc);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_event_new(sim_context_current(),
			       CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, &event);
	if (result != CUDA_SUCCESS) {
		sim_ipc_event_drop(ipc);
		return result;
	}
	event->ipc = ipc;
	*ret_event = (CUevent)(void *)event;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuIpcOpenEventHandle(CUevent *ret_event, CUipcEventHandle handle)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, open_event(ret_event, &handle));
}
