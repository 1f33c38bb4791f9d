/* What a stream is: context, device, id, flags, priority. */

#include "stream.h"

static CUresult get_context(CUstream handle, CUcontext *ret_context, CUgreenCtx *ret_green)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_context = sim_context_handle(stream->context);
	if (ret_green != NULL)
		*ret_green = NULL;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *ret_context)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       get_context(stream, ret_context, NULL));
}

SIM_API CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ret_context, CUgreenCtx *ret_green)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       get_context(stream, ret_context, ret_green));
}

static CUresult get_device(CUstream handle, CUdevice *ret_device)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_device = stream->context->device + sim_breaks("stream_context");
	return result;
}

SIM_API CUresult cuStreamGetDevice(CUstream stream, CUdevice *ret_device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_device(stream, ret_device));
}

static CUresult get_id(CUstream handle, unsigned long long *ret_id)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_id = sim_breaks("stream_identity") ? 1 : stream->id;
	return result;
}

SIM_API CUresult cuStreamGetId(CUstream stream, unsigned long long *ret_id)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_id(stream, ret_id));
}

static CUresult get_flags(CUstream handle, unsigned *ret_flags)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_flags == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_flags = stream->flags;
	return result;
}

SIM_API CUresult cuStreamGetFlags(CUstream stream, unsigned int *ret_flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_flags(stream, ret_flags));
}

static CUresult get_priority(CUstream handle, int *ret_priority)
{
	struct sim_stream *stream = NULL;
	CUresult result;

	if (ret_priority == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_stream_get(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_priority = stream->priority;
	return result;
}

SIM_API CUresult cuStreamGetPriority(CUstream stream, int *ret_priority)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_priority(stream, ret_priority));
}
