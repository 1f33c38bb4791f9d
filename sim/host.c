/*
 * Host memory that the device can reach: pinned by us, which is plain anonymous memory, or registered
 * by the application. Its device address is its host address. It stays usable while the process is
 * checkpointed, and needs nothing from the simulated machine.
 */

#include "host.h"

#include "capture.h"
#include "stream.h"

#include <sys/mman.h>

#define ALLOC_FLAGS                                                                                \
	((unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                         \
		    CU_MEMHOSTALLOC_WRITECOMBINED))
#define REGISTER_FLAGS                                                                             \
	((unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                   \
		    CU_MEMHOSTREGISTER_READ_ONLY))
#define PAGE 4096ull

static uint64_t address_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static CUresult allocate(void **ret_pointer, size_t bytes, unsigned flags)
{
	struct sim_allocation *allocation = NULL;
	CUresult result;
	void *memory;

	if (ret_pointer == NULL || (flags & ~ALLOC_FLAGS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_pointer = NULL;
	if (bytes == 0)
		return CUDA_SUCCESS;
	result = sim_capture_check_unsafe();
	if (result != CUDA_SUCCESS)
		return result;
	memory = mmap(NULL, sim_round_up(bytes, PAGE), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = sim_allocation_add(SIM_ALLOCATION_HOST, address_of(memory), bytes,
				    sim_context_current(), &allocation);
	if (result != CUDA_SUCCESS) {
		(void)munmap(memory, sim_round_up(bytes, PAGE));
		return result;
	}
	allocation->flags = flags;
	*ret_pointer = memory;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       allocate(ret_pointer, bytes, flags));
}

SIM_API CUresult cuMemAllocHost_v2(void **ret_pointer, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, allocate(ret_pointer, bytes, 0));
}

void sim_host_free(struct sim_allocation *allocation)
{
	if (allocation->kind == SIM_ALLOCATION_HOST)
		(void)munmap((void *)(uintptr_t)allocation->span.start, /* NOLINT */
			     sim_round_up(allocation->span.bytes, PAGE));
	sim_allocation_remove(allocation);
}

/* Only a pointer that an allocation or registration begins with; waits for work that may use it. */
static CUresult release(const void *pointer, enum sim_allocation_kind kind, CUresult unknown)
{
	struct sim_allocation *allocation = sim_allocation_find(address_of(pointer));
	CUresult result = sim_capture_check_unsafe();

	if (result != CUDA_SUCCESS)
		return result;
	if (pointer == NULL)
		return kind == SIM_ALLOCATION_HOST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (allocation == NULL || allocation->kind != kind || allocation->is_freeing)
		return unknown;
	if (allocation->span.start != address_of(pointer))
		return CUDA_ERROR_INVALID_VALUE;
	allocation->is_freeing = true;
	sim_stream_wait_context(allocation->context);
	sim_host_free(allocation);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemFreeHost(void *pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       release(pointer, SIM_ALLOCATION_HOST, CUDA_ERROR_INVALID_VALUE));
}

static CUresult enroll(void *pointer, size_t bytes, unsigned flags)
{
	struct sim_allocation *allocation = NULL;
	CUresult result;

	if (pointer == NULL || bytes == 0 || (flags & ~REGISTER_FLAGS) != 0 ||
	    sim_address_in_window(address_of(pointer)))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_allocation_overlaps(address_of(pointer), bytes))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	result = sim_capture_check_unsafe();
	if (result == CUDA_SUCCESS)
		result = sim_allocation_add(SIM_ALLOCATION_REGISTERED, address_of(pointer), bytes,
					    sim_context_current(), &allocation);
	if (result == CUDA_SUCCESS)
		allocation->flags = flags;
	return result;
}

SIM_API CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, enroll(pointer, bytes, flags));
}

SIM_API CUresult cuMemHostUnregister(void *pointer)
{
	return SIM_CALL_LOCKED(
		SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
		release(pointer, SIM_ALLOCATION_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
}

static CUresult find(const void *pointer, struct sim_allocation **ret_allocation)
{
	struct sim_allocation *allocation = sim_allocation_find(address_of(pointer));

	if (allocation == NULL || !sim_allocation_is_host(allocation))
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation->kind == SIM_ALLOCATION_REGISTERED && sim_breaks("registered_is_usable"))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_allocation = allocation;
	return CUDA_SUCCESS;
}

static CUresult device_pointer(CUdeviceptr *ret_pointer, void *pointer, unsigned flags)
{
	struct sim_allocation *allocation = NULL;
	CUresult result;

	if (ret_pointer == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = find(pointer, &allocation);
	if (result == CUDA_SUCCESS)
		*ret_pointer = address_of(pointer) + (sim_breaks("host_device_pointer") ? PAGE : 0);
	return result;
}

SIM_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret_pointer, void *pointer,
					      unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       device_pointer(ret_pointer, pointer, flags));
}

static CUresult get_flags(unsigned *ret_flags, const void *pointer)
{
	struct sim_allocation *allocation = NULL;
	CUresult result;

	if (ret_flags == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = find(pointer, &allocation);
	/* Every allocation is mapped where addresses are unified. */
	if (result == CUDA_SUCCESS)
		*ret_flags = allocation->flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return result;
}

SIM_API CUresult cuMemHostGetFlags(unsigned int *ret_flags, void *pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, get_flags(ret_flags, pointer));
}
