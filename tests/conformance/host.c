/*
 * Description: page-locked host memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"

static uint32_t *host_alloc(size_t bytes, unsigned int flags)
{
	void *memory = NULL;

	T_OK(cuMemHostAlloc(&memory, bytes, flags));
	return memory;
}

static void host_reaches_device(void)
{
	CUdeviceptr address;
	uint32_t *words;

	(void)t_cuda();
	words = host_alloc(T_MIB, 0);
	address = t_alloc(T_MIB);
	for (size_t i = 0; i < T_MIB / 4; i++)
		words[i] = t_word(1, i);
	T_OK(cuMemcpyHtoD_v2(address, words, T_MIB));
	t_verify(address, T_MIB, 1);
	T_OK(cuMemFreeHost(words));
}

static void host_flags(void)
{
	unsigned int flags = 0;
	void *memory = NULL;

	(void)t_cuda();
	memory = host_alloc(4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	T_OK(cuMemHostGetFlags(&flags, memory));
	T_TRUE(flags & CU_MEMHOSTALLOC_PORTABLE);
	T_TRUE(flags & CU_MEMHOSTALLOC_DEVICEMAP);
	T_IS(cuMemHostAlloc(&memory, 4096, 0x100), CUDA_ERROR_INVALID_VALUE);
}

static void host_device_pointer(void)
{
	CUdeviceptr address = 0;
	uint32_t *words;

	(void)t_cuda();
	words = host_alloc(4096, CU_MEMHOSTALLOC_DEVICEMAP);
	T_OK(cuMemHostGetDevicePointer_v2(&address, words, 0));
	T_EQ(address, (uintptr_t)words);
	T_OK(cuMemsetD32_v2(address, 0x1234, 1024));
	T_OK(cuCtxSynchronize());
	T_EQ(words[1023], 0x1234);
}

static void host_free_unknown(void)
{
	char *memory = malloc(4096);

	(void)t_cuda();
	T_IS(cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE);
	free(memory);
}

static void *pages(void)
{
	void *memory =
		mmap(NULL, T_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	T_TRUE(memory != MAP_FAILED);
	(void)memset(memory, 1, T_MIB);
	return memory;
}

static void register_once(void)
{
	void *memory = pages();

	(void)t_cuda();
	T_OK(cuMemHostRegister_v2(memory, T_MIB, CU_MEMHOSTREGISTER_PORTABLE));
	T_IS(cuMemHostRegister_v2(memory, T_MIB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	T_OK(cuMemHostUnregister(memory));
	T_IS(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static void registered_is_usable(void)
{
	uint32_t *words = pages();
	CUmemorytype type = 0;
	CUdeviceptr address = 0;

	(void)t_cuda();
	T_OK(cuMemHostRegister_v2(words, T_MIB, CU_MEMHOSTREGISTER_DEVICEMAP));
	T_OK(cuMemHostGetDevicePointer_v2(&address, words, 0));
	T_OK(cuMemsetD32_v2(address, 77, 1024));
	T_OK(cuCtxSynchronize());
	T_EQ(words[1023], 77);
	T_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
	T_EQ(type, CU_MEMORYTYPE_HOST);
	T_OK(cuMemHostUnregister(words));
}

static const struct t_behaviour behaviours[] = {
	{"host_reaches_device", T_DOCUMENTED, "the CPU writes page-locked memory, copies read it",
	 host_reaches_device},
	{"host_flags", T_DOCUMENTED, "flags of page-locked memory are kept; unknown ones refused",
	 host_flags},
	{"host_device_pointer", T_DOCUMENTED,
	 "page-locked memory has the same address on the device, which writes it",
	 host_device_pointer},
	{"host_free_unknown", T_DOCUMENTED, "cuMemFreeHost refuses memory of malloc",
	 host_free_unknown},
	{"register_once", T_DOCUMENTED,
	 "memory is registered once and unregistered once: results 712 and 713", register_once},
	{"registered_is_usable", T_DOCUMENTED, "the device writes registered memory",
	 registered_is_usable},
};

T_BEHAVIOURS_MAIN(behaviours)
