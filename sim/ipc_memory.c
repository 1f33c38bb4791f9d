/* Memory by name; see ipc_memory.h. */

#include "ipc_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP 512u

_Static_assert(sizeof(struct sim_ipc_name) == CU_IPC_HANDLE_SIZE, "a name is a handle");

CUresult sim_ipc_name_file(int fd, uint32_t magic, struct sim_ipc_name *ret_name)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*ret_name = (struct sim_ipc_name){
		.magic = magic,
		.pid = getpid(),
		.fd = fd,
		.physical_device = -1,
		.inode = status.st_ino,
	};
	return CUDA_SUCCESS;
}

CUresult sim_ipc_open_file(const struct sim_ipc_name *name, uint32_t magic, int *ret_fd)
{
	CLEANUP(fd) int fd = -1;
	struct stat status;
	char path[64];

	if (name->magic != magic)
		return CUDA_ERROR_INVALID_VALUE;
	if (name->pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", name->pid, name->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
	if (fstat(fd, &status) != 0 || status.st_ino != name->inode)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_fd = fd_steal(&fd);
	return CUDA_SUCCESS;
}

CUresult sim_ipc_name_allocation(const struct sim_allocation *allocation,
				 struct sim_ipc_name *ret_name)
{
	struct sim_range *range = sim_address_find(allocation->span.start);
	CUresult result = sim_ipc_name_file(range->memory->fd, SIM_IPC_MAGIC_MEMORY, ret_name);

	if (result != CUDA_SUCCESS)
		return result;
	ret_name->physical_device = sim_core.devices[range->memory->device].physical;
	ret_name->block_offset = range->memory->offset;
	ret_name->block_bytes = range->memory->bytes;
	ret_name->bytes = allocation->span.bytes;
	ret_name->step = (uint16_t)((allocation->span.start - range->span.start) / STEP);
	if (sim_breaks("ipc_small_blocks"))
		ret_name->bytes += ret_name->step;
	range->memory->ipc_handle_taken = true;
	return CUDA_SUCCESS;
}

static CUresult place(struct sim_memory *memory, const struct sim_ipc_name *name,
		      struct sim_allocation **ret_allocation)
{
	struct sim_context *context = sim_context_current();
	struct sim_range *range = NULL;
	CUresult result = sim_address_place(memory, &range);

	if (result != CUDA_SUCCESS)
		return result;
	range->device_rights[context->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	range->device_rights[memory->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	result = sim_address_show(range);
	if (result == CUDA_SUCCESS)
		result = sim_allocation_add(SIM_ALLOCATION_IPC,
					    range->span.start + (uint64_t)name->step * STEP,
					    name->bytes, context, ret_allocation);
	if (result != CUDA_SUCCESS)
		sim_address_displace(range->span.start);
	return result;
}

CUresult sim_ipc_open_allocation(const struct sim_ipc_name *name,
				 struct sim_allocation **ret_allocation)
{
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	struct sim_memory *memory = NULL;
	int fd = -1;
	CUresult result = sim_ipc_open_file(name, SIM_IPC_MAGIC_MEMORY, &fd);

	if (result != CUDA_SUCCESS)
		return result;
	result = sim_core_find_device_locked(name->physical_device, &properties.location.id);
	if (result != CUDA_SUCCESS) {
		(void)close(fd);
		return result;
	}
	result = sim_memory_adopt(SIM_MEMORY_IPC_OPENED, &properties, name->block_bytes,
				  name->block_offset, fd, -1, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = place(memory, name, ret_allocation);
	sim_memory_unref(memory);
	if (result == CUDA_SUCCESS)
		(*ret_allocation)->opened = 1;
	return result;
}
