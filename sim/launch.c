/* Attributes of functions and kernel launches. */

#include "launch.h"
#include "capture.h"
#include "module.h"
#include "stream.h"

#include <string.h>

#define THREADS_MAX 1024u
#define SHARED_DEFAULT_BYTES 49152
#define SHARED_MAX_BYTES 232448

/* The driver's markers in the 'extra' list of a launch. */
#define EXTRA_END ((void *)0x00)
#define EXTRA_BUFFER ((void *)0x01)
#define EXTRA_BYTES ((void *)0x02)

/* Beyond the default only what the application has asked for by the function's attribute. */
static unsigned shared_bytes_allowed(const struct sim_function *function)
{
	if (function->max_dynamic_shared_bytes != 0)
		return (unsigned)function->max_dynamic_shared_bytes;
	return sim_breaks("launch_shared_memory") ? SHARED_MAX_BYTES : SHARED_DEFAULT_BYTES;
}

static CUresult get_attribute(int *ret_value, CUfunction_attribute attribute, CUfunction handle)
{
	struct sim_function *function = NULL;
	CUresult result;

	if (ret_value == NULL ||
	    (unsigned)attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_function_get(handle, &function);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_value = 0;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
		*ret_value = (int)THREADS_MAX;
	else if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS)
		*ret_value = 12;
	else if (attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION)
		*ret_value = 50;
	else if (attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION)
		*ret_value = 90;
	else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		*ret_value = -1;
	else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		*ret_value = (int)shared_bytes_allowed(function);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncGetAttribute(int *ret_value, CUfunction_attribute attribute,
				    CUfunction function)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       get_attribute(ret_value, attribute, function));
}

static CUresult set_attribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
	struct sim_function *function = NULL;
	CUresult result = sim_function_get(handle, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
	    value > SHARED_MAX_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	function->max_dynamic_shared_bytes = value;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       set_attribute(function, attribute, value));
}

static CUresult copy_parameters(const struct sim_kernel *kernel, void **parameters,
				struct sim_launch *launch)
{
	for (unsigned i = 0; i < kernel->parameter_count; i++) {
		if (parameters[i] == NULL)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(&launch->parameters[i], parameters[i], kernel->parameter_bytes[i]);
	}
	return CUDA_SUCCESS;
}

/* All parameters in one buffer, each aligned to its own size. */
static CUresult unpack_parameters(const struct sim_kernel *kernel, void **extra,
				  struct sim_launch *launch)
{
	const unsigned char *buffer = NULL;
	size_t bytes = 0;
	size_t at = 0;

	for (; *extra != EXTRA_END; extra += 2) {
		if (*extra == EXTRA_BUFFER)
			buffer = extra[1];
		else if (*extra == EXTRA_BYTES)
			bytes = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0; i < kernel->parameter_count; i++) {
		size_t own = kernel->parameter_bytes[i];

		at = sim_round_up(at, own);
		if (buffer == NULL || at + own > bytes)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(&launch->parameters[i], buffer + at, own);
		at += own;
	}
	return CUDA_SUCCESS;
}

static CUresult check_shape(const CUlaunchConfig *shape)
{
	uint64_t threads = (uint64_t)shape->blockDimX * shape->blockDimY * shape->blockDimZ;
	uint64_t blocks = (uint64_t)shape->gridDimX * shape->gridDimY * shape->gridDimZ;

	if (threads == 0 || threads > THREADS_MAX || blocks == 0 || shape->gridDimY > 65535 ||
	    shape->gridDimZ > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	if (shape->sharedMemBytes > SHARED_MAX_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult sim_launch_prepare(const CUlaunchConfig *shape, CUfunction handle, void **parameters,
			    void **extra, struct sim_action *ret_action)
{
	struct sim_function *function = NULL;
	CUresult result = sim_function_get(handle, &function);

	if (result == CUDA_SUCCESS)
		result = check_shape(shape);
	if (result == CUDA_SUCCESS && shape->sharedMemBytes > shared_bytes_allowed(function))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	if ((parameters == NULL) == (extra == NULL))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_action = (struct sim_action){.run = function->kernel->run};
	if (sim_breaks("kernel_spins") || sim_breaks("kernels_are_ordered"))
		ret_action->run = NULL;
	ret_action->launch.kernel = function->kernel;
	return parameters != NULL
		       ? copy_parameters(function->kernel, parameters, &ret_action->launch)
		       : unpack_parameters(function->kernel, extra, &ret_action->launch);
}

static CUresult launch(const CUlaunchConfig *shape, CUfunction function, void **parameters,
		       void **extra)
{
	struct sim_action action;
	struct sim_stream *stream = NULL;
	CUresult result;

	if (shape == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_launch_prepare(shape, function, parameters, extra, &action);
	if (result == CUDA_SUCCESS)
		result = sim_stream_get(shape->hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	action.context = stream->context;
	return sim_stream_submit(stream, &action, NULL, NULL);
}

SIM_API CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				unsigned int block_z, unsigned int shared_bytes, CUstream stream,
				void **parameters, void **extra)
{
	CUlaunchConfig shape = {.gridDimX = grid_x,
				.gridDimY = grid_y,
				.gridDimZ = grid_z,
				.blockDimX = block_x,
				.blockDimY = block_y,
				.blockDimZ = block_z,
				.sharedMemBytes = shared_bytes,
				.hStream = stream};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       launch(&shape, function, parameters, extra));
}

SIM_API CUresult cuLaunchKernelEx(const CUlaunchConfig *shape, CUfunction function,
				  void **parameters, void **extra)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       launch(shape, function, parameters, extra));
}
