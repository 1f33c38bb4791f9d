/*
 * Description: modules, functions and kernel launches.
 */
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"
#include "kernels.h"

#define WORDS ((size_t)64 << 10)

static CUfunction kernel(const char *name)
{
	CUfunction function = NULL;
	CUmodule module = NULL;

	T_OK(cuModuleLoadData(&module, kernels_ptx));
	T_OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static CUresult launch(CUfunction function, unsigned int grid, unsigned int block, CUstream stream,
		       void **parameters)
{
	return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, NULL);
}

static CUresult launch_fill(CUfunction fill, CUdeviceptr address, uint32_t value, uint64_t count,
			    CUstream stream)
{
	void *parameters[] = {&address, &value, &count};

	return launch(fill, 4, 256, stream, parameters);
}

static uint32_t word_at(CUdeviceptr address)
{
	uint32_t word = 0;

	T_OK(cuMemcpyDtoH_v2(&word, address, sizeof(word)));
	return word;
}

static void module_names(void)
{
	CUfunction function = NULL;
	CUmodule module = NULL;
	CUdeviceptr address = 0;
	size_t bytes = 0;

	(void)t_cuda();
	T_OK(cuModuleLoadData(&module, kernels_ptx));
	T_OK(cuModuleGetFunction(&function, module, "stasis_fill_u32"));
	T_IS(cuModuleGetFunction(&function, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
	T_IS(cuModuleGetGlobal_v2(&address, &bytes, module, "no_such_global"),
	     CUDA_ERROR_NOT_FOUND);
	T_OK(cuModuleUnload(module));
}

static void module_garbage(void)
{
	CUmodule module = NULL;

	(void)t_cuda();
	T_REFUSED(cuModuleLoadData(&module, "this is no program for any GPU"));
	T_IS(cuModuleLoadData(NULL, kernels_ptx), CUDA_ERROR_INVALID_VALUE);
}

static void kernel_writes(void)
{
	CUdeviceptr address;
	CUstream stream;
	CUfunction fill;

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	address = t_alloc(WORDS * 4);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuMemsetD8_v2(address, 0, WORDS * 4));
	T_OK(cuCtxSynchronize());
	T_OK(launch_fill(fill, address, 0xabcd1234, WORDS - 1, stream));
	T_OK(cuStreamSynchronize(stream));
	T_EQ(word_at(address), 0xabcd1234);
	T_EQ(word_at(address + (WORDS - 2) * 4), 0xabcd1234);
	T_EQ(word_at(address + (WORDS - 1) * 4), 0);
}

static void kernel_parameters_are_copied(void)
{
	CUdeviceptr address;
	struct t_gate gate;
	CUstream stream;
	CUfunction fill;
	uint64_t count = WORDS;
	uint32_t value = 5;
	void *parameters[3];

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	address = t_alloc(WORDS * 4);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	parameters[0] = &address;
	parameters[1] = &value;
	parameters[2] = &count;
	/* The first launch of a kernel may load it, and wait for that. */
	T_OK(launch_fill(fill, address, 4, WORDS, stream));
	T_OK(cuStreamSynchronize(stream));
	t_gate_close(&gate, stream);
	T_OK(launch(fill, 4, 256, stream, parameters));
	value = 6;
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	T_EQ(word_at(address), 5);
}

static void kernels_are_ordered(void)
{
	CUdeviceptr address;
	CUstream stream;
	CUfunction fill;
	CUfunction add;
	uint64_t count = WORDS;
	uint32_t value = 3;
	void *parameters[] = {&address, &value, &count};

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	add = kernel("stasis_add_u32");
	address = t_alloc(WORDS * 4);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(launch_fill(fill, address, 10, WORDS, stream));
	T_OK(launch(add, 4, 256, stream, parameters));
	T_OK(launch(add, 4, 256, stream, parameters));
	T_OK(cuStreamSynchronize(stream));
	T_EQ(word_at(address + (WORDS - 1) * 4), 16);
}

static CUresult synchronize_stream(void *stream)
{
	return cuStreamSynchronize(stream);
}

static void kernel_spins(void)
{
	volatile uint32_t *flag = NULL;
	struct t_task task;
	CUdeviceptr address = 0;
	void *parameters[] = {&address};
	CUfunction spin;
	CUstream stream;

	(void)t_cuda();
	spin = kernel("stasis_spin");
	T_OK(cuMemHostAlloc((void **)(uintptr_t)&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	address = (CUdeviceptr)(uintptr_t)flag;
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(launch(spin, 1, 1, stream, parameters));
	t_task_start(&task, synchronize_stream, stream);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	T_OK(t_task_join(&task));
}

static void launch_shape(void)
{
	CUdeviceptr address;
	CUfunction fill;
	uint64_t count = 16;
	uint32_t value = 1;
	void *parameters[] = {&address, &value, &count};

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	address = t_alloc(4096);
	T_IS(launch(fill, 0, 32, NULL, parameters), CUDA_ERROR_INVALID_VALUE);
	T_IS(launch(fill, 1, 0, NULL, parameters), CUDA_ERROR_INVALID_VALUE);
	T_IS(launch(fill, 1, 1025, NULL, parameters), CUDA_ERROR_INVALID_VALUE);
	T_OK(launch(fill, 1, 1024, NULL, parameters));
	T_OK(cuCtxSynchronize());
}

static void launch_shared_memory(void)
{
	CUdeviceptr address;
	CUfunction fill;
	uint64_t count = 16;
	uint32_t value = 1;
	void *parameters[] = {&address, &value, &count};
	const int wide = 64 << 10;

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	address = t_alloc(4096);
	T_IS(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, wide, NULL, parameters, NULL),
	     CUDA_ERROR_INVALID_VALUE);
	T_OK(cuFuncSetAttribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wide));
	T_OK(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, wide, NULL, parameters, NULL));
	T_OK(cuCtxSynchronize());
}

static void function_attributes(void)
{
	CUfunction fill;
	int value = 0;

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	T_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fill));
	T_EQ(value, 1024);
	T_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, fill));
	T_TRUE(value > 0);
	T_IS(cuFuncGetAttribute(&value, (CUfunction_attribute)1000, fill),
	     CUDA_ERROR_INVALID_VALUE);
}

static void launch_by_configuration(void)
{
	CUlaunchConfig shape = {
		.gridDimX = 2,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 128,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
	CUdeviceptr address;
	uint64_t count = WORDS;
	uint32_t value = 9;
	void *parameters[] = {&address, &value, &count};
	CUfunction fill;

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	address = t_alloc(WORDS * 4);
	shape.hStream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuLaunchKernelEx(&shape, fill, parameters, NULL));
	T_OK(cuStreamSynchronize(shape.hStream));
	T_EQ(word_at(address + (WORDS - 1) * 4), 9);
}

static void fault_stays(void)
{
	CUdeviceptr address = 0;
	struct t_vmm vmm;
	CUfunction fill;

	(void)t_cuda();
	fill = kernel("stasis_fill_u32");
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_OK(cuMemUnmap(vmm.address, vmm.bytes));
	T_OK(launch_fill(fill, vmm.address, 1, 16, NULL));
	T_IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	T_IS(cuMemAlloc_v2(&address, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static const struct t_behaviour behaviours[] = {
	{"module_names", T_DOCUMENTED, "a name that a module has not is NOT_FOUND", module_names},
	{"module_garbage", T_DOCUMENTED, "what is no program cannot be loaded", module_garbage},
	{"kernel_writes", T_DOCUMENTED, "a kernel writes so many words and no more", kernel_writes},
	{"kernel_parameters_are_copied", T_DOCUMENTED,
	 "parameters are taken at the launch, whatever becomes of them",
	 kernel_parameters_are_copied},
	{"kernels_are_ordered", T_DOCUMENTED, "kernels on a stream run in its order",
	 kernels_are_ordered},
	{"kernel_spins", T_DOCUMENTED, "a kernel that waits for the CPU runs until it has its word",
	 kernel_spins},
	{"launch_shape", T_DOCUMENTED,
	 "empty grids and blocks above 1024 threads are INVALID_VALUE", launch_shape},
	{"launch_shared_memory", T_DOCUMENTED,
	 "more than 48 KiB of shared memory must be allowed by the function's attribute",
	 launch_shared_memory},
	{"function_attributes", T_DOCUMENTED, "a function tells its threads and registers",
	 function_attributes},
	{"launch_by_configuration", T_DOCUMENTED, "cuLaunchKernelEx launches too",
	 launch_by_configuration},
	{"fault_stays", T_DOCUMENTED,
	 "a kernel that touches no memory of its own ends the context: ILLEGAL_ADDRESS for good",
	 fault_stays},
};

T_BEHAVIOURS_MAIN(behaviours)
