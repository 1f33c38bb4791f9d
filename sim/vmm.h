#ifndef SIM_VMM_H
#define SIM_VMM_H

/* Virtual memory management: what its two files share. Core lock held. */

#include "address.h"

/* Memory by a handle of cuMemCreate, an import or cuMemRetainAllocationHandle. */
CUresult sim_vmm_get(CUmemGenericAllocationHandle handle, struct sim_memory **ret_memory);
/* One more handle reference; the first makes the handle valid. */
CUresult sim_vmm_hold(struct sim_memory *memory, CUmemGenericAllocationHandle *ret_handle);

/* Whether memory can be asked for so; the location as resolved (HOST_NUMA_CURRENT becomes a node). */
CUresult sim_vmm_check_properties(const CUmemAllocationProp *properties,
				  CUmemLocation *ret_location);

#endif
