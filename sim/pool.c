/* Stream-ordered memory; see pool.h. */

#include "pool.h"

CUresult sim_pool_free_now(struct sim_allocation *allocation)
{
	sim_allocation_free(allocation);
	return CUDA_SUCCESS;
}
