#ifndef STASIS_LIB_ROUNDTRIP_H
#define STASIS_LIB_ROUNDTRIP_H

/*
 * The worker's part of a round trip: runs in a process of its own, which starts the workload, loads the
 * driver, and captures and restores.
 */

#include <sys/types.h>

#include <stasis.h>

#include "lib/supervise.h"

/* How many of the workload's bytes are looked for in an image; fewer could be anybody's. */
#define STASIS_LIB_NEEDLE_BYTES 32

struct stasis_lib_work {
	const struct stasis_roundtrip_options *options;
	pid_t supervisor_pid;
};

/* `argument` is a struct stasis_lib_work. */
stasis_lib_child_function stasis_lib_work_run;

#endif
