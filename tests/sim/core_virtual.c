/*
 * Description: virtual memory management: mappings, rights, handles, and an unmap under queued work, which
 * kills the context.
 */
#include <string.h>

#include "check.h"
#include "device.h"
#include "gate.h"

static void mappings(void)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUdeviceptr address = t_reserve(3 * T_BLOCK_BYTES);
	CUmemGenericAllocationHandle handles[2];

	for (int i = 0; i < 2; i++) {
		CUdeviceptr at = address + (CUdeviceptr)i * T_BLOCK_BYTES;

		T_OK(cuMemCreate(&handles[i], T_BLOCK_BYTES, &prop, 0));
		T_OK(cuMemMap(at, T_BLOCK_BYTES, 0, handles[i], 0));
		T_OK(cuMemRelease(handles[i]));
		T_IS(cuMemRelease(handles[i]), CUDA_ERROR_INVALID_VALUE);
	}
	T_IS(cuMemSetAccess(address, T_MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemSetAccess(address, 3 * T_BLOCK_BYTES, &access, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemsetD8_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemSetAccess(address, 2 * T_BLOCK_BYTES, &access, 1));
	t_fill(address + T_MIB, T_BLOCK_BYTES, 5);
	t_verify(address + T_MIB, T_BLOCK_BYTES, 5);
	T_IS(cuMemUnmap(address, T_MIB), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemAddressFree(address, 3 * T_BLOCK_BYTES), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemUnmap(address, 3 * T_BLOCK_BYTES));
	T_IS(cuMemAddressFree(address, T_BLOCK_BYTES), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemAddressFree(address, 3 * T_BLOCK_BYTES));
}

static void handles_can_be_retained(void)
{
	struct t_vmm vmm = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	CUmemGenericAllocationHandle again = 0;
	CUmemAllocationProp prop;
	CUdeviceptr native = t_alloc(512);
	size_t before = t_free_bytes();

	T_OK(cuMemRelease(vmm.handle));
	T_OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(vmm.address + 77)));
	T_OK(cuMemGetAllocationPropertiesFromHandle(&prop, again));
	T_EQ(prop.requestedHandleTypes, T_FD_TYPE);
	T_IS(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)native),
	     CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemUnmap(vmm.address, vmm.bytes));
	T_EQ(t_free_bytes(), before);
	T_OK(cuMemRelease(again));
	T_EQ(t_free_bytes(), before + T_BLOCK_BYTES);
	T_OK(cuMemFree_v2(native));
}

static void attributes_differ(void)
{
	struct t_vmm vmm = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	CUdeviceptr native = t_alloc(1000);
	CUcontext context = NULL;
	unsigned long long types = 0;
	int value = -1;
	size_t bytes = 0;

	T_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, native));
	T_TRUE(context != NULL);
	T_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, vmm.address));
	T_TRUE(context == NULL);
	T_OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, vmm.address));
	T_EQ(types, T_FD_TYPE);
	T_OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
				   native));
	T_EQ(value, 1);
	T_OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, native + 5));
	T_EQ(bytes, 1000);
	value = 1;
	T_OK(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, native));
	T_IS(cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, vmm.address),
	     CUDA_ERROR_NOT_SUPPORTED);
	T_IS(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_IS_MANAGED, 64),
	     CUDA_ERROR_INVALID_VALUE);
	t_vmm_release(&vmm);
	T_OK(cuMemFree_v2(native));
}

/* Managed and host memory is the CPU's too, where it was given access. */
static void the_cpu_reaches_host_memory(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemAccessDesc access[2] = {t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)};
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = t_reserve(T_BLOCK_BYTES);
	CUdeviceptr managed = 0;

	prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
	access[1] = access[0];
	access[1].location = prop.location;
	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	T_OK(cuMemMap(address, T_BLOCK_BYTES, 0, handle, 0));
	T_OK(cuMemSetAccess(address, T_BLOCK_BYTES, access, 2));
	t_fill(address, T_BLOCK_BYTES, 3);
	T_EQ(*(volatile uint32_t *)(uintptr_t)(address + 40), t_word(3, 10));
	T_OK(cuMemUnmap(address, T_BLOCK_BYTES));
	T_OK(cuMemRelease(handle));

	T_OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	memset((void *)(uintptr_t)managed, 0, 4096);
	t_fill(managed, 4096, 4);
	T_EQ(*(volatile uint32_t *)(uintptr_t)(managed + 40), t_word(4, 10));
	T_OK(cuMemFree_v2(managed));
}

/* Last: the context does not survive it. */
static void unmapping_under_work_kills(void)
{
	struct t_vmm vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr memory = 0;
	struct t_gate gate;

	t_gate_close(&gate, stream);
	T_OK(cuMemsetD8Async(vmm.address, 1, vmm.bytes, stream));
	T_OK(cuMemUnmap(vmm.address, vmm.bytes));
	t_gate_open(&gate);
	T_IS(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	T_IS(cuMemAlloc_v2(&memory, 512), CUDA_ERROR_ILLEGAL_ADDRESS);
	T_IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
	(void)t_cuda();
	mappings();
	handles_can_be_retained();
	attributes_differ();
	the_cpu_reaches_host_memory();
	unmapping_under_work_kills();
	return 0;
}
