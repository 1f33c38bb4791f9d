/*
 * Description: where virtual memory management meets other memory, queued work and the CPU.
 */
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static void retain_by_address(void)
{
	CUmemGenericAllocationHandle retained = 0;
	CUmemAllocationProp prop = {0};
	struct t_vmm vmm;
	CUdeviceptr inside;

	(void)t_cuda();
	vmm = t_vmm(2 * T_BLOCK_BYTES, T_FD_TYPE);
	inside = vmm.address + T_BLOCK_BYTES + 4096;
	T_OK(cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)inside));
	T_OK(cuMemGetAllocationPropertiesFromHandle(&prop, retained));
	T_EQ(prop.requestedHandleTypes, T_FD_TYPE);
	T_OK(cuMemRelease(retained));
	T_OK(cuMemRelease(vmm.handle));
	t_fill(vmm.address, vmm.bytes, 3);
	t_verify(vmm.address, vmm.bytes, 3);
}

static void retain_native(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(4 * T_MIB);
	T_IS(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address),
	     CUDA_ERROR_INVALID_VALUE);
}

static void free_of_mapping(void)
{
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_IS(cuMemFree_v2(vmm.address), CUDA_ERROR_INVALID_VALUE);
	t_fill(vmm.address, vmm.bytes, 3);
	t_verify(vmm.address, vmm.bytes, 3);
}

static CUresult unmap_it(void *argument)
{
	const struct t_vmm *vmm = argument;

	return cuMemUnmap(vmm->address, vmm->bytes);
}

static void unmap_does_not_wait(void)
{
	struct t_gate gate;
	struct t_task task;
	struct t_vmm vmm;
	CUstream stream;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	T_OK(cuMemsetD8Async(vmm.address, 1, vmm.bytes, stream));
	t_task_start(&task, unmap_it, &vmm);
	T_TRUE(t_task_returns_within(&task, T_PASS_MS));
	T_OK(t_task_join(&task));
	t_gate_open(&gate);
	T_IS(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A page of HOST_NUMA memory that device 0 and the CPU may use. */
static CUdeviceptr host_numa(size_t *ret_bytes)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0},
	};
	CUmemAccessDesc access[2] = {
		t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
		{.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	};
	CUmemGenericAllocationHandle handle = 0;
	size_t bytes = 4 * T_MIB;
	CUdeviceptr address;

	T_OK(cuMemCreate(&handle, bytes, &prop, 0));
	address = t_reserve(bytes);
	T_OK(cuMemMap(address, bytes, 0, handle, 0));
	T_OK(cuMemSetAccess(address, bytes, access, 2));
	*ret_bytes = bytes;
	return address;
}

static void host_numa_access(void)
{
	volatile uint32_t *words;
	CUdeviceptr address;
	size_t bytes = 0;

	(void)t_cuda();
	address = host_numa(&bytes);
	words = (volatile uint32_t *)(uintptr_t)address;
	t_fill(address, T_MIB, 21);
	T_EQ(words[100], t_word(21, 100));
	for (size_t i = 0; i < 1024; i++)
		words[i] = t_word(22, i);
	t_verify(address, 4096, 22);
}

static const struct t_behaviour behaviours[] = {
	{"retain_by_address", T_DOCUMENTED,
	 "any address of a mapping gives a handle with a reference of its own", retain_by_address},
	{"retain_native", T_MEASURED, "memory of cuMemAlloc has no handle: INVALID_VALUE",
	 retain_native},
	{"free_of_mapping", T_MEASURED, "cuMemFree refuses mapped memory and leaves it alone",
	 free_of_mapping},
	{"unmap_does_not_wait", T_MEASURED,
	 "cuMemUnmap succeeds at once under queued work, which then ends in ILLEGAL_ADDRESS",
	 unmap_does_not_wait},
	{"host_numa_access", T_MEASURED, "CPU and device see the same HOST_NUMA memory",
	 host_numa_access},
};

T_BEHAVIOURS_MAIN(behaviours)
