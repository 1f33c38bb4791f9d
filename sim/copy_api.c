/*
 * The copy and memset calls: they check their arguments, then queue the work. Copies to and from the
 * host answer when they are done; copies inside the device and memsets only queue, as the driver does.
 * An asynchronous copy of pageable host memory is staged if it is small, else waited for.
 */

#include "access.h"
#include "allocation.h"
#include "capture.h"
#include "copy.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define STAGED_MAX (64ull << 10)

/* What an argument of a copy may be. */
enum side { DEVICE_SIDE, HOST_SIDE, ANY_SIDE };

struct request {
	struct sim_copy copy;
	enum side to;
	enum side from;
	bool is_asynchronous;
};

static uint64_t host(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static struct sim_copy plain(uint64_t destination, uint64_t source, uint64_t bytes)
{
	return (struct sim_copy){
		.destination = destination, .source = source, .width = bytes, .height = 1};
}

/* The bytes from the first to the last that rows touch. */
static bool extent(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *ret_bytes)
{
	return !__builtin_mul_overflow(pitch, height - 1, ret_bytes) &&
	       !__builtin_add_overflow(*ret_bytes, width, ret_bytes);
}

static CUresult check_side(enum side side, const struct sim_context *context, uint64_t address,
			   uint64_t bytes, bool write)
{
	if (address == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (side == DEVICE_SIDE || !sim_access_is_pageable(address))
		return sim_access_check(context, address, bytes, write);
	return CUDA_SUCCESS;
}

static CUresult check(const struct request *request)
{
	const struct sim_copy *copy = &request->copy;
	uint64_t to_bytes;
	uint64_t from_bytes;
	CUresult result;

	if (!extent(copy->destination_pitch, copy->width, copy->height, &to_bytes) ||
	    !extent(copy->source_pitch, copy->width, copy->height, &from_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = check_side(request->to, copy->destination_context, copy->destination, to_bytes,
			    true);
	if (result == CUDA_SUCCESS)
		result = check_side(request->from, copy->source_context, copy->source, from_bytes,
				    false);
	return result;
}

/* Takes the bytes of pageable memory now, so that the caller may change them. */
static CUresult submit_staged(struct sim_stream *stream, struct sim_action *action)
{
	void *staged = malloc(action->copy.width);

	if (staged == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(staged, (const void *)(uintptr_t)action->copy.source, /* NOLINT */
	       action->copy.width);
	action->copy.source = host(staged);
	return sim_stream_submit(stream, action, staged, NULL);
}

static CUresult submit(struct sim_stream *stream, const struct request *request)
{
	const struct sim_copy *copy = &request->copy;
	struct sim_action action = {.run = sim_copy_run, .context = stream->context, .copy = *copy};
	bool to_pageable = sim_access_is_pageable(copy->destination);
	bool from_pageable = sim_access_is_pageable(copy->source);
	bool inside_device =
		sim_address_in_window(copy->destination) && sim_address_in_window(copy->source);

	if (stream->capture != NULL)
		return sim_stream_submit(stream, &action, NULL, NULL);
	if (request->is_asynchronous && from_pageable && !to_pageable && copy->height == 1 &&
	    copy->width <= STAGED_MAX)
		return submit_staged(stream, &action);
	if (request->is_asynchronous && !to_pageable && !from_pageable)
		return sim_stream_submit(stream, &action, NULL, NULL);
	if (inside_device)
		return sim_stream_submit(stream, &action, NULL, NULL);
	return sim_stream_run(stream, &action);
}

static CUresult copy(struct request request, CUstream handle)
{
	struct sim_stream *stream = NULL;
	CUresult result = sim_stream_get(handle, &stream);

	if (sim_breaks("async_copy_returns"))
		request.is_asynchronous = false;
	if (result == CUDA_SUCCESS && !request.is_asynchronous)
		result = sim_capture_check_legacy(stream);
	if (result != CUDA_SUCCESS || request.copy.width == 0 || request.copy.height == 0)
		return result;
	if (request.copy.destination_context == NULL)
		request.copy.destination_context = stream->context;
	if (request.copy.source_context == NULL)
		request.copy.source_context = stream->context;
	result = check(&request);
	return result == CUDA_SUCCESS ? submit(stream, &request) : result;
}

static CUresult copy_now(uint64_t destination, enum side to, uint64_t source, enum side from,
			 uint64_t bytes)
{
	struct request request = {
		.copy = plain(destination, source, bytes), .to = to, .from = from};

	return copy(request, NULL);
}

static CUresult copy_async(uint64_t destination, enum side to, uint64_t source, enum side from,
			   uint64_t bytes, CUstream stream)
{
	struct request request = {.copy = plain(destination, source, bytes),
				  .to = to,
				  .from = from,
				  .is_asynchronous = true};

	return copy(request, stream);
}

SIM_API CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_now(destination, ANY_SIDE, source, ANY_SIDE, bytes));
}

SIM_API CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
			       CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_async(destination, ANY_SIDE, source, ANY_SIDE, bytes, stream));
}

SIM_API CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void *source, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_now(destination, DEVICE_SIDE, host(source), HOST_SIDE, bytes));
}

SIM_API CUresult cuMemcpyDtoH_v2(void *destination, CUdeviceptr source, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_now(host(destination), HOST_SIDE, source, DEVICE_SIDE, bytes));
}

SIM_API CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_now(destination, DEVICE_SIDE, source, DEVICE_SIDE, bytes));
}

SIM_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void *source, size_t bytes,
				      CUstream stream)
{
	return SIM_CALL_LOCKED(
		SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
		copy_async(destination, DEVICE_SIDE, host(source), HOST_SIDE, bytes, stream));
}

SIM_API CUresult cuMemcpyDtoHAsync_v2(void *destination, CUdeviceptr source, size_t bytes,
				      CUstream stream)
{
	return SIM_CALL_LOCKED(
		SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
		copy_async(host(destination), HOST_SIDE, source, DEVICE_SIDE, bytes, stream));
}

SIM_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
				      CUstream stream)
{
	return SIM_CALL_LOCKED(
		SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
		copy_async(destination, DEVICE_SIDE, source, DEVICE_SIDE, bytes, stream));
}

/* Each side is reached with the rights of its own context. */
static CUresult copy_peer(struct request request, CUcontext to, CUcontext from, CUstream stream)
{
	struct sim_context *destination = NULL;
	struct sim_context *source = NULL;
	CUresult result = sim_context_get(to, &destination);

	if (result == CUDA_SUCCESS)
		result = sim_context_get(from, &source);
	if (result != CUDA_SUCCESS)
		return result;
	request.copy.destination_context = destination;
	request.copy.source_context = source;
	return copy(request, stream);
}

SIM_API CUresult cuMemcpyPeer(CUdeviceptr destination, CUcontext destination_context,
			      CUdeviceptr source, CUcontext source_context, size_t bytes)
{
	struct request request = {.copy = plain(destination, source, bytes)};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_peer(request, destination_context, source_context, NULL));
}

SIM_API CUresult cuMemcpyPeerAsync(CUdeviceptr destination, CUcontext destination_context,
				   CUdeviceptr source, CUcontext source_context, size_t bytes,
				   CUstream stream)
{
	struct request request = {.copy = plain(destination, source, bytes),
				  .is_asynchronous = true};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       copy_peer(request, destination_context, source_context, stream));
}

/* Which side of a 2D copy a memory type names; arrays are not simulated. */
static CUresult side_of(CUmemorytype type, const void *host_pointer, CUdeviceptr device_pointer,
			enum side *ret_side, uint64_t *ret_address)
{
	*ret_side = type == CU_MEMORYTYPE_HOST     ? HOST_SIDE
		    : type == CU_MEMORYTYPE_DEVICE ? DEVICE_SIDE
						   : ANY_SIDE;
	*ret_address = type == CU_MEMORYTYPE_HOST ? host(host_pointer) : device_pointer;
	if (type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
	    type == CU_MEMORYTYPE_UNIFIED)
		return CUDA_SUCCESS;
	return type == CU_MEMORYTYPE_ARRAY ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *from, bool is_asynchronous, CUstream stream)
{
	struct request request = {.is_asynchronous = is_asynchronous};
	struct sim_copy *wanted = &request.copy;
	CUresult result;

	if (from == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = side_of(from->dstMemoryType, from->dstHost, from->dstDevice, &request.to,
			 &wanted->destination);
	if (result == CUDA_SUCCESS)
		result = side_of(from->srcMemoryType, from->srcHost, from->srcDevice, &request.from,
				 &wanted->source);
	if (result != CUDA_SUCCESS)
		return result;
	wanted->width = from->WidthInBytes;
	wanted->height = from->Height;
	wanted->destination_pitch = from->dstPitch != 0 ? from->dstPitch : wanted->width;
	wanted->source_pitch = from->srcPitch != 0 ? from->srcPitch : wanted->width;
	if (wanted->destination_pitch < from->dstXInBytes + wanted->width ||
	    wanted->source_pitch < from->srcXInBytes + wanted->width)
		return CUDA_ERROR_INVALID_VALUE;
	wanted->destination += from->dstY * wanted->destination_pitch + from->dstXInBytes;
	wanted->source += from->srcY * wanted->source_pitch + from->srcXInBytes;
	return copy(request, stream);
}

SIM_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, copy_2d(copy, false, NULL));
}

SIM_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, copy_2d(copy, true, stream));
}
