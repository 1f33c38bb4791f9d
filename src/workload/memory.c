/*
 * See memory.h.
 */

#include "workload/memory.h"

#include <inttypes.h>

#include "base/number.h"
#include "workload/pattern.h"

#define BUFFER_BYTES ((size_t)1 << 20)
#define OPERATION_BYTES ((size_t)1 << 16)
#define OPERATION_BYTE 0xa5

/* One buffer serves fill, compare and operate. */
static unsigned char buffer[BUFFER_BYTES];

static int memory_fill(const struct stasis_workload_memory *memory, struct stasis_error *err)
{
	for (uint64_t offset = 0; offset < memory->bytes; offset += BUFFER_BYTES) {
		size_t bytes = (size_t)stasis_min_u64(BUFFER_BYTES, memory->bytes - offset);
		CUresult result;

		stasis_workload_pattern_fill(memory->seed, offset, buffer, bytes);
		result = memory->driver.cuMemcpyHtoD(memory->pointer + offset, buffer, bytes);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_REFUSED, result,
						"cuMemcpyHtoD at offset %" PRIu64, offset);
	}
	return 0;
}

static int context_open(struct stasis_workload_memory *memory, int ordinal,
			struct stasis_error *err)
{
	const struct stasis_driver *driver = &memory->driver;
	CUdevice device;
	CUresult result = driver->cuDeviceGet(&device, ordinal);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "cuDeviceGet of device %d",
					ordinal);
	result = driver->cuDevicePrimaryCtxRetain(&memory->context, device);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"cuDevicePrimaryCtxRetain of device %d", ordinal);
	result = driver->cuCtxSetCurrent(memory->context);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "cuCtxSetCurrent");
	return 0;
}

int stasis_workload_memory_open(const struct stasis_workload_options *options,
				struct stasis_workload_memory *ret_memory, struct stasis_error *err)
{
	struct stasis_workload_memory *memory = ret_memory;
	CUresult result;

	memory->seed = options->seed;
	memory->bytes = options->bytes;
	if (stasis_driver_open(options->libcuda, &memory->driver, err) != 0 ||
	    stasis_driver_start(&memory->driver, err) != 0 ||
	    context_open(memory, options->device, err) != 0)
		return -1;
	result = memory->driver.cuMemAlloc(&memory->pointer, memory->bytes);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"cuMemAlloc of %" PRIu64 " bytes on device %d",
					memory->bytes, options->device);
	return memory_fill(memory, err);
}

int stasis_workload_memory_verify(const struct stasis_workload_memory *memory, bool *ret_is_right,
				  struct stasis_workload_mismatch *ret_mismatch,
				  struct stasis_error *err)
{
	for (uint64_t offset = 0; offset < memory->bytes; offset += BUFFER_BYTES) {
		size_t bytes = (size_t)stasis_min_u64(BUFFER_BYTES, memory->bytes - offset);
		CUresult result =
			memory->driver.cuMemcpyDtoH(buffer, memory->pointer + offset, bytes);
		size_t index;

		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_REFUSED, result,
						"cuMemcpyDtoH at offset %" PRIu64, offset);
		if (!stasis_workload_pattern_check(memory->seed, offset, buffer, bytes, &index)) {
			ret_mismatch->offset = offset + index;
			ret_mismatch->found = buffer[index];
			stasis_workload_pattern_fill(memory->seed, offset + index,
						     &ret_mismatch->expected, 1);
			*ret_is_right = false;
			return 0;
		}
	}
	*ret_is_right = true;
	return 0;
}

static int operation_check(const struct stasis_workload_memory *memory, CUdeviceptr pointer,
			   struct stasis_error *err)
{
	const struct stasis_driver *driver = &memory->driver;
	CUresult result = driver->cuMemsetD8(pointer, OPERATION_BYTE, OPERATION_BYTES);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "cuMemsetD8 of new memory");
	result = driver->cuMemcpyDtoH(buffer, pointer, OPERATION_BYTES);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "cuMemcpyDtoH of new memory");
	for (size_t i = 0; i < OPERATION_BYTES; i++) {
		if (buffer[i] != OPERATION_BYTE)
			return stasis_fail(err, STASIS_REFUSED,
					   "new memory reads 0x%02x at offset %zu, not 0x%02x",
					   buffer[i], i, OPERATION_BYTE);
	}
	return 0;
}

int stasis_workload_memory_operate(const struct stasis_workload_memory *memory,
				   struct stasis_error *err)
{
	CUdeviceptr pointer;
	CUresult result = memory->driver.cuMemAlloc(&pointer, OPERATION_BYTES);
	int check;

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "cuMemAlloc of new memory");
	check = operation_check(memory, pointer, err);
	result = memory->driver.cuMemFree(pointer);
	if (check == 0 && result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "cuMemFree of new memory");
	return check;
}
