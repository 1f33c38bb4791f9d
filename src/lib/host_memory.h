#ifndef STASIS_LIB_HOST_MEMORY_H
#define STASIS_LIB_HOST_MEMORY_H

/*
 * How much memory of the host can still be had: the kernel's MemAvailable, and what the cgroups of this
 * process leave. Any thread.
 */

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct stasis_lib_host_memory {
	uint64_t available_bytes; /* the least of the two below */
	uint64_t kernel_bytes;    /* MemAvailable */
	uint64_t cgroup_bytes;    /* UINT64_MAX: no limit */
};

NODISCARD int stasis_lib_host_memory_read(struct stasis_lib_host_memory *ret_memory,
					  struct stasis_error *err);

#endif
