#ifndef SIM_IPC_MEMORY_H
#define SIM_IPC_MEMORY_H

/*
 * Memory by name: 64 bytes that say in which process and which of its files some memory lies. Opening
 * takes the file out of that process through /proc, so both must be of one user, and the process must
 * still be there. Core lock held.
 */

#include "allocation.h"

/* What a handle of memory, a pointer of a pool, or an event's handle holds; 64 bytes. */
struct sim_ipc_name {
	uint32_t magic;
	int32_t pid;
	int32_t fd;
	int32_t physical_device;
	uint64_t inode;        /* so that another file under the same number is not taken for it */
	uint64_t block_offset; /* of the memory object in the file */
	uint64_t block_bytes;
	uint64_t bytes; /* of the allocation */
	uint32_t pool;  /* low bits of its id; 0: none */
	uint16_t step;  /* where in the block it begins, in 512 bytes, up to 2 MiB */
	uint8_t reserved[10];
};

#define SIM_IPC_MAGIC_MEMORY 0x4d495053u
#define SIM_IPC_MAGIC_EVENT 0x56495053u

/* INVALID_VALUE: the process or its file is gone. */
CUresult sim_ipc_name_file(int fd, uint32_t magic, struct sim_ipc_name *ret_name);
CUresult sim_ipc_open_file(const struct sim_ipc_name *name, uint32_t magic, int *ret_fd);

CUresult sim_ipc_name_allocation(const struct sim_allocation *allocation,
				 struct sim_ipc_name *ret_name);
/* Maps the whole block, and makes an allocation of the part that was named. */
CUresult sim_ipc_open_allocation(const struct sim_ipc_name *name,
				 struct sim_allocation **ret_allocation);

#endif
