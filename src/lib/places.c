/*
 * See places.h.
 */

#include "lib/places.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Relative to the folder of the running program: build folder, installed or copied tree. */
static const char *const workload_places[] = {
	"../workload/stasis-workload",
	"../libexec/stasis/stasis-workload",
	"stasis-workload",
};

static const char *const simulator_places[] = {
	"../../sim/libcuda.so.1",
	"../lib/stasis/sim/libcuda.so.1",
	"sim/libcuda.so.1",
};

static const char *const interposer_places[] = {
	"../interpose/libstasis-interpose.so",
	"../lib/stasis/libstasis-interpose.so",
};

static const char *const criu_places[] = {
	"../../../.deps/criu/bin/criu",
	"../libexec/stasis/criu/bin/criu",
};

/* The folder of the running program, without the last '/'; false: unknown. */
static bool program_folder(char folder[STASIS_LIB_PATH_BYTES])
{
	ssize_t bytes = readlink("/proc/self/exe", folder, STASIS_LIB_PATH_BYTES - 1);
	char *slash;

	if (bytes <= 0)
		return false;
	folder[bytes] = '\0';
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

static bool place_beside(const char *const *places, size_t count, int access_mode,
			 char ret_path[STASIS_LIB_PATH_BYTES])
{
	char folder[STASIS_LIB_PATH_BYTES];
	char path[PATH_MAX * 2];
	char resolved[PATH_MAX];

	if (!program_folder(folder))
		return false;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, places[i]);
		if (access(path, access_mode) == 0 && realpath(path, resolved)) {
			(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", resolved);
			return true;
		}
	}
	return false;
}

/* Beside the running program, else where it was installed. */
static bool place_find(const char *const *places, size_t count, const char *installed,
		       int access_mode, char ret_path[STASIS_LIB_PATH_BYTES])
{
	if (place_beside(places, count, access_mode, ret_path))
		return true;
	if (access(installed, access_mode) != 0)
		return false;
	(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", installed);
	return true;
}

int stasis_lib_workload_path(char ret_path[STASIS_LIB_PATH_BYTES], struct stasis_error *err)
{
	if (place_find(workload_places, ARRAY_COUNT(workload_places), STASIS_WORKLOAD_INSTALLED,
		       X_OK, ret_path))
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "the program 'stasis-workload' is neither beside this program nor at "
			   "'%s'; build or install it",
			   STASIS_WORKLOAD_INSTALLED);
}

bool stasis_lib_simulator_path(char ret_path[STASIS_LIB_PATH_BYTES])
{
	return place_find(simulator_places, ARRAY_COUNT(simulator_places),
			  STASIS_SIMULATOR_INSTALLED, R_OK, ret_path);
}

int stasis_lib_interposer_path(char ret_path[STASIS_LIB_PATH_BYTES], struct stasis_error *err)
{
	const char *named = secure_getenv("STASIS_INTERPOSE");
	char resolved[PATH_MAX];

	if (named) {
		if (access(named, R_OK) != 0 || !realpath(named, resolved))
			return stasis_fail_errno(err, STASIS_REFUSED,
						 "the interposer '%s', which STASIS_INTERPOSE "
						 "names",
						 named);
		(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", resolved);
		return 0;
	}
	if (place_find(interposer_places, ARRAY_COUNT(interposer_places),
		       STASIS_INTERPOSER_INSTALLED, R_OK, ret_path))
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "'libstasis-interpose.so' is neither beside this program nor at '%s'; "
			   "build or install it, or name it in STASIS_INTERPOSE",
			   STASIS_INTERPOSER_INSTALLED);
}

bool stasis_lib_criu_path(char ret_path[STASIS_LIB_PATH_BYTES])
{
	return place_beside(criu_places, ARRAY_COUNT(criu_places), X_OK, ret_path);
}

/* A machine with an NVIDIA GPU has one of these, a container that may use it too. */
static const char *const device_nodes[] = {
	"/dev/nvidiactl",
	"/dev/dxg",
	"/dev/nvhost-gpu",
};

static bool machine_has_gpu(void)
{
	for (size_t i = 0; i < ARRAY_COUNT(device_nodes); i++) {
		if (access(device_nodes[i], F_OK) == 0)
			return true;
	}
	return false;
}

static bool path_is_simulator(const char *path)
{
	char simulator[STASIS_LIB_PATH_BYTES];
	CLEANUP(free) char *resolved = realpath(path, NULL);

	return resolved && stasis_lib_simulator_path(simulator) && strcmp(resolved, simulator) == 0;
}

int stasis_lib_driver_choose(const struct stasis_lib_sink *sink, struct stasis_driver *ret_driver,
			     bool *ret_is_simulated, struct stasis_error *err)
{
	const char *named = secure_getenv("STASIS_LIBCUDA");
	struct stasis_error cause = STASIS_ERROR_INIT;
	char simulator[STASIS_LIB_PATH_BYTES];

	*ret_is_simulated = false;
	if (named && *named) {
		*ret_is_simulated = path_is_simulator(named);
		return stasis_driver_open(named, ret_driver, err);
	}
	if (!machine_has_gpu())
		(void)stasis_fail(&cause, STASIS_REFUSED, "this machine has no NVIDIA GPU");
	else if (stasis_driver_open(NULL, ret_driver, &cause) == 0)
		return 0;
	if (!stasis_lib_simulator_path(simulator)) {
		stasis_error_append(&cause,
				    ", and the simulated driver is not beside this program");
		stasis_error_take(err, &cause);
		return -1;
	}
	stasis_lib_event(sink, "driver_why", "%s; using the simulated driver", cause.text);
	*ret_is_simulated = true;
	return stasis_driver_open(simulator, ret_driver, err);
}
