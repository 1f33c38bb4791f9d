#ifndef SIM_POOL_H
#define SIM_POOL_H

/*
 * Stream-ordered memory. A pool counts what its allocations use and what it keeps for later ones, up to
 * its release threshold; both are taken of the device. Core lock held.
 */

#include "allocation.h"

/* Pools say that they reserve memory in steps of this; the device is asked only for what is used. */
#define SIM_POOL_CHUNK (32ull << 20)

struct sim_pool {
	unsigned references; /* the handle, and every allocation */
	int device;
	bool is_default;
	bool is_imported;
	uint64_t id; /* imported: that of the original in its process */
	CUmemPoolProps properties;
	uint64_t used_bytes;
	uint64_t used_high;
	uint64_t kept_bytes; /* free, but still taken of the device */
	uint64_t reserved_high;
	uint64_t release_threshold;
	int reuse[3]; /* the three reuse attributes: remembered, without effect */
	CUmemAccess_flags device_rights[SIM_DEVICES_MAX];
};

CUresult sim_pool_get(CUmemoryPool handle, struct sim_pool **ret_pool);
CUresult sim_pool_new(const CUmemPoolProps *properties, CUmemoryPool *ret_pool);
/* Where cuMemAllocAsync allocates on the device. */
CUresult sim_pool_current(int device, CUmemoryPool *ret_pool);
/* Gives back to the device what is kept beyond that many bytes, used ones included. */
void sim_pool_trim(struct sim_pool *pool, uint64_t bytes_to_keep);
/* Gives the allocation's rights to every device that the pool lets in. */
void sim_pool_grant(const struct sim_pool *pool, const struct sim_allocation *allocation);

/* cuMemFree, and the end of cuMemFreeAsync: the memory returns to its pool. */
void sim_pool_free(struct sim_allocation *allocation);

#endif
