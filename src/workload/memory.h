#ifndef STASIS_WORKLOAD_MEMORY_H
#define STASIS_WORKLOAD_MEMORY_H

/*
 * The device memory of the round trip's program: allocated, filled with the pattern through one small host
 * buffer, compared through the same. Nothing else holds its contents. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "driver/driver.h"

struct stasis_workload_options {
	uint64_t bytes;
	uint64_t seed;
	int device;
	const char *libcuda; /* NULL: as stasis_driver_open() chooses */
};

struct stasis_workload_memory {
	struct stasis_driver driver;
	CUcontext context;
	uint64_t seed;
	uint64_t bytes;
	CUdeviceptr pointer;
};

struct stasis_workload_mismatch {
	uint64_t offset; /* of the first wrong byte */
	uint8_t expected;
	uint8_t found;
};

/* Loads the driver and fills the memory. It stays until the process ends. */
NODISCARD int stasis_workload_memory_open(const struct stasis_workload_options *options,
					  struct stasis_workload_memory *ret_memory,
					  struct stasis_error *err);

/* Compares every byte; *ret_mismatch is set where *ret_is_right is false. */
NODISCARD int stasis_workload_memory_verify(const struct stasis_workload_memory *memory,
					    bool *ret_is_right,
					    struct stasis_workload_mismatch *ret_mismatch,
					    struct stasis_error *err);

/* Uses the device anew: allocates, sets, reads back, frees. */
NODISCARD int stasis_workload_memory_operate(const struct stasis_workload_memory *memory,
					     struct stasis_error *err);

#endif
