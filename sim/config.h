#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

/*
 * How the simulated machine and its driver are to be: read from the environment once. A value that
 * cannot be used ends the process with a line that names it, so that no test passes for nothing.
 *
 *     STASIS_SIM_DIR            what the processes of one simulated machine share
 *                               (default /tmp/stasis-sim-UID), mode 0700
 *     STASIS_SIM_DEVICES        GPUs of the machine, 1 to 16 (default 1)
 *     STASIS_SIM_MEMORY         bytes of each, with K, M or G (default 8G)
 *     STASIS_SIM_CUDA           12080, 13000, 13010 or 13040 (default): what the driver can do
 *     STASIS_SIM_CONTEXT_BYTES  what a context takes of its GPU (default 64M)
 *     STASIS_SIM_PERSISTENCE    0: a restore needs a live process that called cuInit (default 1)
 *     STASIS_SIM_HOST_VISIBLE   1: the CPU may touch device memory, for debugging
 *     STASIS_SIM_MULTICAST      0: the GPUs have no multicast
 *     STASIS_SIM_COMPUTE_MODE   0: default; 2: prohibited; 3: exclusive process
 *     STASIS_SIM_MIG            1: each GPU is a MIG instance
 *     STASIS_SIM_BREAK          names of breaks.h and answers.h, separated by commas
 *     STASIS_SIM_FAULT, _PROCESS, _WHEN, _ONCE     see fault.h
 *     STASIS_SIM_LOG            see log.h
 */

#include <stdbool.h>
#include <stdint.h>

#include "compiler.h"

#define SIM_DEVICES_MAX 16

struct sim_config {
	const char *dir;
	int device_count;
	int version;
	uint64_t memory_bytes;
	uint64_t context_bytes;
	bool is_persistent;
	bool is_host_visible;
	bool has_multicast;
	bool is_mig;
	int compute_mode; /* a CUcomputemode */
};

/* Any thread; the first call reads the environment. */
const struct sim_config *sim_config(void);

/* Whether STASIS_SIM_BREAK names this behaviour; the name must stand in breaks.h or answers.h. */
bool sim_breaks(const char *name);
bool sim_breaks_something(void);

/* Ends the process with one line on standard error: for misuse of the simulator, not of CUDA. */
NORETURN void sim_die(const char *format, ...) FORMAT(1, 2);

#endif
