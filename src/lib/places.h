#ifndef STASIS_LIB_PLACES_H
#define STASIS_LIB_PLACES_H

/*
 * Where the files lie that go with the running program, in a build folder, in an installation, in a tree
 * that was copied elsewhere; and which driver to use. Any thread.
 */

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "driver/driver.h"
#include "lib/library.h"

#define STASIS_LIB_PATH_BYTES 4096

/* The round trip's program. */
NODISCARD int stasis_lib_workload_path(char ret_path[STASIS_LIB_PATH_BYTES],
				       struct stasis_error *err);

/* The simulated driver; false: it is not there. */
NODISCARD bool stasis_lib_simulator_path(char ret_path[STASIS_LIB_PATH_BYTES]);

/* The library that is preloaded into programs: what STASIS_INTERPOSE names, else our own. Absolute. */
NODISCARD int stasis_lib_interposer_path(char ret_path[STASIS_LIB_PATH_BYTES],
					 struct stasis_error *err);

/* The CRIU that was unpacked beside the project; false: it is not there. */
NODISCARD bool stasis_lib_criu_path(char ret_path[STASIS_LIB_PATH_BYTES]);

/*
 * The driver that STASIS_LIBCUDA names; else this machine's, if it has a GPU; else the simulated one, and an
 * event says why. The table is filled; the driver is not initialised.
 */
NODISCARD int stasis_lib_driver_choose(const struct stasis_lib_sink *sink,
				       struct stasis_driver *ret_driver, bool *ret_is_simulated,
				       struct stasis_error *err);

#endif
