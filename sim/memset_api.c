/* The memset calls. All only queue; the plain forms do so in the legacy stream. */

#include "access.h"
#include "capture.h"
#include "copy.h"
#include "stream.h"

static struct sim_fill plain(CUdeviceptr destination, uint32_t value, unsigned element_bytes,
			     size_t count)
{
	return (struct sim_fill){.destination = destination,
				 .width = sim_breaks("memset_widths") ? count
								      : count * element_bytes,
				 .height = 1,
				 .value = value,
				 .element_bytes = element_bytes};
}

static struct sim_fill rows(CUdeviceptr destination, size_t pitch, uint32_t value,
			    unsigned element_bytes, size_t width, size_t height)
{
	return (struct sim_fill){.destination = destination,
				 .pitch = pitch,
				 .width = width * element_bytes,
				 .height = height,
				 .value = value,
				 .element_bytes = element_bytes};
}

static CUresult check(const struct sim_context *context, const struct sim_fill *fill)
{
	uint64_t bytes;

	if (fill->destination % fill->element_bytes != 0 || fill->pitch % fill->element_bytes != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fill->height > 1 && fill->pitch < fill->width)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(fill->pitch, fill->height - 1, &bytes) ||
	    __builtin_add_overflow(bytes, fill->width, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_access_check(context, fill->destination, bytes, true);
}

static CUresult fill(struct sim_fill wanted, CUstream handle)
{
	struct sim_action action = {.run = sim_fill_run, .fill = wanted};
	struct sim_stream *stream = NULL;
	CUresult result = sim_stream_get(handle, &stream);

	if (result != CUDA_SUCCESS || wanted.width == 0 || wanted.height == 0)
		return result;
	result = check(stream->context, &wanted);
	if (result != CUDA_SUCCESS)
		return result;
	action.context = stream->context;
	if (sim_breaks("stream_is_ordered")) {
		sim_core_unlock();
		(void)sim_fill_run(&action);
		sim_core_lock();
	}
	return sim_stream_submit(stream, &action, NULL, NULL);
}

SIM_API CUresult cuMemsetD8_v2(CUdeviceptr destination, unsigned char value, size_t count)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(plain(destination, value, 1, count), NULL));
}

SIM_API CUresult cuMemsetD16_v2(CUdeviceptr destination, unsigned short value, size_t count)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(plain(destination, value, 2, count), NULL));
}

SIM_API CUresult cuMemsetD32_v2(CUdeviceptr destination, unsigned int value, size_t count)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(plain(destination, value, 4, count), NULL));
}

SIM_API CUresult cuMemsetD2D8_v2(CUdeviceptr destination, size_t pitch, unsigned char value,
				 size_t width, size_t height)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(rows(destination, pitch, value, 1, width, height), NULL));
}

SIM_API CUresult cuMemsetD2D32_v2(CUdeviceptr destination, size_t pitch, unsigned int value,
				  size_t width, size_t height)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(rows(destination, pitch, value, 4, width, height), NULL));
}

SIM_API CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count,
				 CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(plain(destination, value, 1, count), stream));
}

SIM_API CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value, size_t count,
				  CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(plain(destination, value, 2, count), stream));
}

SIM_API CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned int value, size_t count,
				  CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(plain(destination, value, 4, count), stream));
}

SIM_API CUresult cuMemsetD2D8Async(CUdeviceptr destination, size_t pitch, unsigned char value,
				   size_t width, size_t height, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       fill(rows(destination, pitch, value, 1, width, height), stream));
}
