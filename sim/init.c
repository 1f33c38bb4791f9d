/* cuInit, the version, and the names and texts of results. */

#include "checkpoint.h"
#include "core.h"

#include <stddef.h>

struct result_text {
	CUresult result;
	const char *name;
	const char *text;
};

/* clang-format off */
static const struct result_text texts[] = {
#define TEXT(result, text) { result, #result, text }
	TEXT(CUDA_SUCCESS, "no error"),
	TEXT(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	TEXT(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	TEXT(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	TEXT(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
	TEXT(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
	TEXT(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "API call requires a newer driver"),
	TEXT(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
	TEXT(CUDA_ERROR_MULTICAST_RESOURCE_FULL, "multicast resources are exhausted"),
	TEXT(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	TEXT(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	TEXT(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	TEXT(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	TEXT(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
	TEXT(CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
	TEXT(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
	TEXT(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
	TEXT(CUDA_ERROR_NOT_MAPPED, "resource not mapped"),
	TEXT(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
	TEXT(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "exclusive-thread device already in use by a different thread"),
	TEXT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
	TEXT(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	TEXT(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
	TEXT(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	TEXT(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
	TEXT(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	TEXT(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
	TEXT(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	TEXT(CUDA_ERROR_NOT_READY, "device not ready"),
	TEXT(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	TEXT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
	TEXT(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	TEXT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
	TEXT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
	TEXT(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
	TEXT(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	TEXT(CUDA_ERROR_ASSERT, "device-side assert triggered"),
	TEXT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
	TEXT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
	TEXT(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
	TEXT(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	TEXT(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
	TEXT(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	TEXT(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
	TEXT(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
	TEXT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a thread-local capture sequence from another thread"),
	TEXT(CUDA_ERROR_TIMEOUT, "wait operation timed out"),
	TEXT(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef TEXT
};
/* clang-format on */

static CUresult init(unsigned int flags)
{
	CUresult result = CUDA_SUCCESS;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	sim_core_lock();
	if (sim_core.forked)
		result = CUDA_ERROR_NOT_INITIALIZED;
	else if (!sim_core.initialized)
		result = sim_core_initialize_locked();
	else if (sim_breaks("init_again"))
		result = CUDA_ERROR_ILLEGAL_STATE;
	sim_core_unlock();
	if (result == CUDA_SUCCESS)
		result = sim_checkpoint_start();
	return result;
}

SIM_API CUresult cuInit(unsigned int flags)
{
	return SIM_CALL(SIM_CALL_PASSES, SIM_NEEDS_NOTHING, init(flags));
}

static CUresult version(int *ret_version)
{
	if (ret_version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_version = sim_config()->version;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDriverGetVersion(int *ret_version)
{
	return SIM_CALL(SIM_CALL_PURE, SIM_NEEDS_NOTHING, version(ret_version));
}

static CUresult result_string(CUresult wanted, bool name, const char **ret_text)
{
	if (ret_text == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_text = NULL;
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		if (texts[i].result != wanted)
			continue;
		*ret_text = name && !sim_breaks("error_names") ? texts[i].name : texts[i].text;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGetErrorName(CUresult result, const char **ret_name)
{
	return SIM_CALL(SIM_CALL_PURE, SIM_NEEDS_NOTHING, result_string(result, true, ret_name));
}

SIM_API CUresult cuGetErrorString(CUresult result, const char **ret_text)
{
	return SIM_CALL(SIM_CALL_PURE, SIM_NEEDS_NOTHING, result_string(result, false, ret_text));
}
