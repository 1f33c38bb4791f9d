/*
 * The entries of the checkpoint API: what they check before they ask the target. None of them is held in
 * the caller, and none but CustomStorage needs the caller to have called cuInit.
 */

#include "checkpoint.h"

#include <string.h>

#include "call.h"
#include "config.h"
#include "core.h"
#include "fault.h"
#include "machine.h"
#include "operation.h"
#include "peer.h"

#define VERSION_GPU_PAIRS 13000
#define VERSION_CUSTOM_STORAGE 13040

/* Also for what a version does not know of the arguments yet: to it, that is reserved. */
static bool is_zero(const void *memory, size_t bytes)
{
	const unsigned char *byte = memory;

	if (sim_breaks("reserved_bytes"))
		return true;
	while (bytes > 0 && *byte == 0) {
		byte++;
		bytes--;
	}
	return bytes == 0;
}

static CUresult ask(int pid, const struct sim_request *request, struct sim_reply *ret_reply)
{
	CLEANUP(fd) int fd = -1;
	CUresult result = sim_peer_connect(pid, &fd);

	return result == CUDA_SUCCESS ? sim_peer_ask(fd, request, ret_reply, NULL) : result;
}

static CUresult ask_kind(int pid, enum sim_request_kind kind, struct sim_reply *ret_reply)
{
	struct sim_request request = {.kind = kind};

	return ask(pid, &request, ret_reply);
}

static CUresult get_state(int pid, CUprocessState *ret_state)
{
	struct sim_reply reply;
	CUresult result;

	if (ret_state == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = ask_kind(pid, SIM_REQUEST_GET_STATE, &reply);
	if (result == CUDA_SUCCESS)
		*ret_state = (CUprocessState)reply.state;
	if (result == CUDA_ERROR_NOT_INITIALIZED && sim_breaks("no_cuda_state")) {
		*ret_state = CU_PROCESS_STATE_RUNNING;
		result = CUDA_SUCCESS;
	}
	return result;
}

SIM_API CUresult cuCheckpointProcessGetState(int pid, CUprocessState *ret_state)
{
	CUresult result;

	sim_fault_set_target(pid);
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = get_state(pid, ret_state);
	return sim_call_leave(__func__, result);
}

static CUresult get_thread(int pid, int *ret_thread_id)
{
	struct sim_reply reply;
	CUresult result;

	if (ret_thread_id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = ask_kind(pid, SIM_REQUEST_THREAD, &reply);
	if (result == CUDA_SUCCESS)
		*ret_thread_id = reply.thread_id + (sim_breaks("restore_thread") ? 10000000 : 0);
	return result;
}

SIM_API CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *ret_thread_id)
{
	CUresult result;

	sim_fault_set_target(pid);
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = get_thread(pid, ret_thread_id);
	return sim_call_leave(__func__, result);
}

static CUresult lock(int pid, const CUcheckpointLockArgs *args)
{
	struct sim_request request = {.kind = SIM_REQUEST_LOCK};
	struct sim_reply reply;

	if (args != NULL) {
		if (!is_zero(&args->reserved0, sizeof(args->reserved0)) ||
		    !is_zero(args->reserved1, sizeof(args->reserved1)))
			return CUDA_ERROR_INVALID_VALUE;
		request.timeout_ms = args->timeoutMs;
	}
	return ask(pid, &request, &reply);
}

SIM_API CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
	CUresult result;

	sim_fault_set_target(pid);
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = lock(pid, args);
	return sim_call_leave(__func__, result);
}

static bool is_caller_initialized(void)
{
	bool is_initialized;

	sim_core_lock();
	is_initialized = sim_core.initialized && !sim_core.forked;
	sim_core_unlock();
	return is_initialized;
}

/*
 * A process cannot hold its own memory as a view while its calls are held.
 */
static CUresult begin(int pid, const struct sim_request *request,
		      CUcheckpointCustomStorageInfo **ret_info)
{
	if (!is_caller_initialized())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (pid == (int)getpid())
		return CUDA_ERROR_NOT_SUPPORTED;
	return sim_operation_begin(pid, request, ret_info);
}

static CUresult checkpoint(int pid, const CUcheckpointCheckpointArgs *args)
{
	struct sim_request request = {.kind = SIM_REQUEST_BEGIN_CHECKPOINT};
	struct sim_reply reply;
	bool is_custom = false;

	if (args != NULL && sim_config()->version < VERSION_CUSTOM_STORAGE) {
		if (!is_zero(args, sizeof(*args)))
			return CUDA_ERROR_INVALID_VALUE;
	} else if (args != NULL) {
		if (!is_zero(args->reserved, sizeof(args->reserved)))
			return CUDA_ERROR_INVALID_VALUE;
		is_custom = args->customStorageInfo_out != NULL;
	}
	return is_custom ? begin(pid, &request, args->customStorageInfo_out)
			 : ask_kind(pid, SIM_REQUEST_CHECKPOINT, &reply);
}

SIM_API CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
	CUresult result;

	sim_fault_set_target(pid);
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = checkpoint(pid, args);
	return sim_call_leave(__func__, result);
}

/* What of the restore's arguments this version does not know must be zero. */
static CUresult check_restore_args(const CUcheckpointRestoreArgs *args)
{
	int version = sim_config()->version;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the size of the pointer is meant */
	size_t known = sizeof(args->gpuPairs) + sizeof(args->gpuPairsCount);

	if (version < VERSION_GPU_PAIRS)
		known = 0;
	if (!is_zero((const char *)args + known,
		     offsetof(CUcheckpointRestoreArgs, customStorageInfo_out) - known) ||
	    !is_zero(args->reserved, sizeof(args->reserved)))
		return CUDA_ERROR_INVALID_VALUE;
	if (version < VERSION_CUSTOM_STORAGE &&
	    !is_zero(&args->customStorageInfo_out, sizeof(args->customStorageInfo_out)))
		return CUDA_ERROR_INVALID_VALUE;
	if (args->gpuPairsCount > SIM_DEVICES_MAX ||
	    (args->gpuPairs == NULL) != (args->gpuPairsCount == 0))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult restore(int pid, const CUcheckpointRestoreArgs *args)
{
	struct sim_request request = {.kind = SIM_REQUEST_RESTORE};
	struct sim_reply reply;
	bool is_custom = false;
	CUresult result;

	if (args != NULL) {
		result = check_restore_args(args);
		if (result != CUDA_SUCCESS)
			return result;
		request.pair_count = args->gpuPairsCount;
		for (unsigned int i = 0; i < args->gpuPairsCount; i++)
			request.pairs[i] = args->gpuPairs[i];
		is_custom = sim_config()->version >= VERSION_CUSTOM_STORAGE &&
			    args->customStorageInfo_out != NULL;
	}
	if (!sim_config()->is_persistent && !sim_machine_is_used())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!is_custom)
		return ask(pid, &request, &reply);
	request.kind = SIM_REQUEST_BEGIN_RESTORE;
	return begin(pid, &request, args->customStorageInfo_out);
}

SIM_API CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
	CUresult result;

	sim_fault_set_target(pid);
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = restore(pid, args);
	return sim_call_leave(__func__, result);
}

static CUresult unlock(int pid, const CUcheckpointUnlockArgs *args)
{
	struct sim_reply reply;

	if (args != NULL && !is_zero(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	if (args == NULL && sim_breaks("missing_arguments"))
		return CUDA_ERROR_INVALID_VALUE;
	return ask_kind(pid, SIM_REQUEST_UNLOCK, &reply);
}

SIM_API CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
	CUresult result;

	sim_fault_set_target(pid);
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = unlock(pid, args);
	return sim_call_leave(__func__, result);
}

SIM_API CUresult cuCheckpointOperationComplete(CUcheckpointOperationHandle handle)
{
	CUresult result;

	sim_fault_set_target(sim_operation_pid(handle));
	result = sim_call_enter(__func__, SIM_CALL_PURE);
	if (result == CUDA_SUCCESS)
		result = sim_operation_complete(handle);
	return sim_call_leave(__func__, result);
}
