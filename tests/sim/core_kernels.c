/*
 * Description: the built-in kernels, by the entry names of PTX text; launches and their arguments; a
 * kernel that spins until the host lets it go; pools.
 */
#include "check.h"
#include "device.h"
#include "workloads/kernels.h"

#define COUNT 100000ull

static CUfunction function(CUmodule module, const char *name)
{
	CUfunction found = NULL;

	T_OK(cuModuleGetFunction(&found, module, name));
	return found;
}

static CUresult launch(CUfunction kernel, CUstream stream, void **parameters)
{
	return cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}

static void arithmetic(CUmodule module)
{
	CUdeviceptr memory = t_alloc(COUNT * 4);
	CUdeviceptr counter = t_alloc(8);
	uint64_t count = COUNT;
	uint64_t mismatches = 0;
	uint32_t value = 40;
	void *parameters[] = {&memory, &value, &count, &counter};

	T_OK(cuMemsetD8_v2(counter, 0, 8));
	T_OK(launch(function(module, "stasis_fill_u32"), NULL, parameters));
	value = 2;
	T_OK(launch(function(module, "stasis_add_u32"), NULL, parameters));
	T_OK(cuMemsetD32_v2(memory + 400, 0, 3));
	value = 42;
	T_OK(launch(function(module, "stasis_compare_u32"), NULL, parameters));
	T_OK(cuMemcpyDtoH_v2(&mismatches, counter, sizeof(mismatches)));
	T_EQ(mismatches, 3);
	T_OK(cuMemFree_v2(memory));
	T_OK(cuMemFree_v2(counter));
}

static void arguments(CUmodule module)
{
	CUfunction kernel = function(module, "stasis_fill_u32");
	CUfunction none = NULL;
	CUmodule bad = NULL;
	int threads = 0;

	T_IS(cuModuleGetFunction(&none, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
	T_REFUSED(cuModuleLoadData(&bad, "not PTX at all"));
	T_IS(launch(kernel, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, NULL, (void *[]){NULL}, NULL),
	     CUDA_ERROR_INVALID_VALUE);
	T_OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel));
	T_TRUE(threads > 0);
}

static void spinning(CUmodule module)
{
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *flag = NULL;
	CUdeviceptr address = 0;
	void *parameters[] = {&address};

	T_OK(cuMemHostAlloc((void **)&flag, sizeof(*flag), CU_MEMHOSTALLOC_DEVICEMAP));
	T_OK(cuMemHostGetDevicePointer_v2(&address, flag, 0));
	__atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
	T_OK(launch(function(module, "stasis_spin"), stream, parameters));
	T_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
	T_OK(cuStreamSynchronize(stream));
	T_OK(cuStreamDestroy_v2(stream));
	T_OK(cuMemFreeHost(flag));
}

static void pools(void)
{
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);
	size_t before = t_free_bytes();
	CUmemoryPool pool = NULL;
	CUdeviceptr memory = 0;
	CUdeviceptr native = t_alloc(512);
	struct t_vmm vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	cuuint64_t used = 0;

	T_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	T_OK(cuMemAllocAsync(&memory, 3 * T_MIB, stream));
	t_fill(memory, 3 * T_MIB, 9);
	t_verify(memory, 3 * T_MIB, 9);
	T_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	T_EQ(used, 3 * T_MIB);
	T_OK(cuMemFreeAsync(memory, stream));
	T_IS(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemFreeAsync(vmm.address, stream), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemFreeAsync(native, stream));
	T_OK(cuStreamSynchronize(stream));
	t_vmm_release(&vmm);
	T_OK(cuMemPoolTrimTo(pool, 0));
	T_EQ(t_free_bytes(), before);
	T_OK(cuStreamDestroy_v2(stream));
}

int main(void)
{
	CUmodule module = NULL;

	(void)t_cuda();
	T_OK(cuModuleLoadData(&module, kernels_ptx));
	arithmetic(module);
	arguments(module);
	spinning(module);
	pools();
	T_OK(cuModuleUnload(module));
	return 0;
}
