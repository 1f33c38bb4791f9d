/* What a context can be asked: device, flags, limits, peer access, synchronisation. */

#include "capture.h"
#include "context.h"
#include "stream.h"

static CUresult get_device(CUcontext handle, CUdevice *ret_device)
{
	struct sim_context *context = NULL;
	CUresult result;

	if (ret_device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_context_get(handle, &context);
	/* Also of a context that has ended but is still current. */
	if (context == NULL)
		return result;
	*ret_device = context->device + sim_breaks("context_device");
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetDevice(CUdevice *ret_device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_device(NULL, ret_device));
}

SIM_API CUresult cuCtxGetDevice_v2(CUdevice *ret_device, CUcontext context)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_device(context, ret_device));
}

static CUresult get_flags(unsigned *ret_flags)
{
	if (ret_flags == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = sim_context_current()->flags;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetFlags(unsigned int *ret_flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_CONTEXT, get_flags(ret_flags));
}

static CUresult get_id(CUcontext handle, unsigned long long *ret_id)
{
	struct sim_context *context = NULL;
	CUresult result;

	if (ret_id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_context_get(handle, &context);
	if (result == CUDA_SUCCESS)
		*ret_id = context->id;
	return result;
}

SIM_API CUresult cuCtxGetId(CUcontext context, unsigned long long *ret_id)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_id(context, ret_id));
}

/* A recording in any stream of the context makes this an error that ends the recording. */
static CUresult synchronize(CUcontext handle)
{
	struct sim_context *context = NULL;
	CUresult result = sim_context_get(handle, &context);

	if (result == CUDA_SUCCESS)
		result = sim_capture_check_context(context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!sim_breaks("context_synchronize_waits"))
		sim_stream_wait_context(context);
	return sim_context_error(context);
}

SIM_API CUresult cuCtxSynchronize(void)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, synchronize(NULL));
}

SIM_API CUresult cuCtxSynchronize_v2(CUcontext context)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, synchronize(context));
}

static CUresult api_version(CUcontext handle, unsigned *ret_version)
{
	struct sim_context *context = NULL;
	CUresult result;

	if (ret_version == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_context_get(handle, &context);
	if (result == CUDA_SUCCESS)
		*ret_version = 3020;
	return result;
}

SIM_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *ret_version)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, api_version(context, ret_version));
}

static CUresult priority_range(int *ret_least, int *ret_greatest)
{
	if (ret_least != NULL)
		*ret_least = 0;
	if (ret_greatest != NULL)
		*ret_greatest = -5;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_CONTEXT,
			       priority_range(ret_least, ret_greatest));
}

static CUresult enable_peer(CUcontext handle, unsigned flags)
{
	struct sim_context *current = sim_context_current();
	struct sim_context *peer = NULL;
	CUresult result;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = sim_context_get(handle, &peer);
	if (result != CUDA_SUCCESS)
		return result;
	if (peer->device == current->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (current->peer_access[peer->device])
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	current->peer_access[peer->device] = true;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, enable_peer(peer, flags));
}

static CUresult disable_peer(CUcontext handle)
{
	struct sim_context *current = sim_context_current();
	struct sim_context *peer = NULL;
	CUresult result =
		handle != NULL ? sim_context_get(handle, &peer) : CUDA_ERROR_INVALID_CONTEXT;

	if (result != CUDA_SUCCESS)
		return result;
	if (!current->peer_access[peer->device])
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	current->peer_access[peer->device] = false;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, disable_peer(peer));
}

/* Limits are remembered and have no effect. */
static bool has_limit(CUlimit limit)
{
	return (unsigned)limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

static CUresult get_limit(size_t *ret_value, CUlimit limit)
{
	if (ret_value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!has_limit(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*ret_value = sim_context_current()->limits[limit];
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetLimit(size_t *ret_value, CUlimit limit)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, get_limit(ret_value, limit));
}

static CUresult set_limit(CUlimit limit, size_t value)
{
	if (!has_limit(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if (!sim_breaks("context_limits"))
		sim_context_current()->limits[limit] = value;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, set_limit(limit, value));
}
