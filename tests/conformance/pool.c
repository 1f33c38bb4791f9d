/*
 * Description: stream-ordered allocation and memory pools.
 */
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static CUmemoryPool default_pool(void)
{
	CUmemoryPool pool = NULL;

	T_OK(cuDeviceGetDefaultMemPool(&pool, 0));
	return pool;
}

static uint64_t pool_value(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	uint64_t value = 0;

	T_OK(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static CUdeviceptr alloc_async(size_t bytes, CUstream stream)
{
	CUdeviceptr address = 0;

	T_OK(cuMemAllocAsync(&address, bytes, stream));
	return address;
}

static void async_memory_is_usable(void)
{
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = alloc_async(T_MIB, stream);
	T_OK(cuMemsetD8Async(address, 1, T_MIB, stream));
	T_OK(cuStreamSynchronize(stream));
	t_fill(address, T_MIB, 1);
	t_verify(address, T_MIB, 1);
	T_OK(cuMemFreeAsync(address, stream));
	T_OK(cuStreamSynchronize(stream));
}

static void pool_counts_use(void)
{
	CUdeviceptr address;
	CUmemoryPool pool;
	CUstream stream;
	uint64_t before;

	(void)t_cuda();
	pool = default_pool();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	before = pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	address = alloc_async(4 * T_MIB, stream);
	T_OK(cuStreamSynchronize(stream));
	T_TRUE(pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= before + 4 * T_MIB);
	T_TRUE(pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >=
	       pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	T_OK(cuMemFreeAsync(address, stream));
	T_OK(cuStreamSynchronize(stream));
	T_EQ(pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), before);
}

static void pool_keeps_to_threshold(void)
{
	uint64_t threshold = UINT64_MAX;
	CUdeviceptr address;
	CUmemoryPool pool;
	CUstream stream;

	(void)t_cuda();
	pool = default_pool();
	T_EQ(pool_value(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
	T_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = alloc_async(64 * T_MIB, stream);
	T_OK(cuMemFreeAsync(address, stream));
	T_OK(cuStreamSynchronize(stream));
	T_TRUE(pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * T_MIB);
	T_OK(cuMemPoolTrimTo(pool, 0));
	T_EQ(pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
}

static void pool_frees_native(void)
{
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	address = t_alloc(4 * T_MIB);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuMemFreeAsync(address, stream));
	T_OK(cuStreamSynchronize(stream));
}

static void pool_frees_no_vmm(void)
{
	struct t_vmm vmm;
	CUstream stream;

	(void)t_cuda();
	vmm = t_vmm(2 * T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_REFUSED(cuMemFreeAsync(vmm.address, stream));
	T_OK(cuStreamSynchronize(stream));
	t_fill(vmm.address, vmm.bytes, 1);
	t_verify(vmm.address, vmm.bytes, 1);
}

static void async_memory_frees_native(void)
{
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = alloc_async(T_MIB, stream);
	T_OK(cuStreamSynchronize(stream));
	T_OK(cuMemFree_v2(address));
	T_IS(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
}

static void pool_memory_has_no_handle(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = alloc_async(4 * T_MIB, stream);
	T_OK(cuStreamSynchronize(stream));
	T_IS(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address),
	     CUDA_ERROR_INVALID_VALUE);
}

static CUmemoryPool pool_new(void)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	};
	CUmemoryPool pool = NULL;

	T_OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

static void pool_of_pointer(void)
{
	CUdeviceptr address = 0;
	CUmemoryPool theirs = NULL;
	CUmemoryPool pool;
	CUstream stream;

	(void)t_cuda();
	pool = pool_new();
	T_TRUE(pool != default_pool());
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuMemAllocFromPoolAsync(&address, T_MIB, pool, stream));
	T_OK(cuPointerGetAttribute(&theirs, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
	T_TRUE(theirs == pool);
	T_OK(cuMemFreeAsync(address, stream));
	T_OK(cuStreamSynchronize(stream));
	T_OK(cuMemPoolDestroy(pool));
}

static void default_pool_stays(void)
{
	CUmemoryPool current = NULL;
	CUmemoryPool pool;

	(void)t_cuda();
	T_REFUSED(cuMemPoolDestroy(default_pool()));
	pool = pool_new();
	T_OK(cuDeviceSetMemPool(0, pool));
	T_OK(cuDeviceGetMemPool(&current, 0));
	T_TRUE(current == pool);
	T_TRUE(default_pool() != pool);
}

static const struct t_behaviour behaviours[] = {
	{"async_memory_is_usable", T_DOCUMENTED, "memory of cuMemAllocAsync is ordinary memory",
	 async_memory_is_usable},
	{"pool_counts_use", T_DOCUMENTED, "a pool counts the bytes in use and reserved",
	 pool_counts_use},
	{"pool_keeps_to_threshold", T_DOCUMENTED,
	 "a pool keeps freed memory up to its threshold (0 at first) until it is trimmed",
	 pool_keeps_to_threshold},
	{"pool_frees_native", T_MEASURED, "cuMemFreeAsync takes memory of cuMemAlloc",
	 pool_frees_native},
	{"pool_frees_no_vmm", T_MEASURED, "cuMemFreeAsync refuses mapped memory",
	 pool_frees_no_vmm},
	{"async_memory_frees_native", T_DOCUMENTED, "cuMemFree takes memory of cuMemAllocAsync",
	 async_memory_frees_native},
	{"pool_memory_has_no_handle", T_MEASURED, "memory of a pool has no allocation handle",
	 pool_memory_has_no_handle},
	{"pool_of_pointer", T_DOCUMENTED, "a pointer names the pool it came from", pool_of_pointer},
	{"default_pool_stays", T_DOCUMENTED,
	 "the default pool cannot be destroyed; the current one can be changed",
	 default_pool_stays},
};

T_BEHAVIOURS_MAIN(behaviours)
