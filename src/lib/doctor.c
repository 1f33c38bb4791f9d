/*
 * doctor: what this machine can do and what stands in the way, in one screen. Every part is reported
 * however the others turn out; a machine without a driver is no failure.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "driver/driver.h"
#include "driver/report.h"
#include "lib/host_memory.h"
#include "lib/library.h"
#include "lib/places.h"

#define CAP_SYS_PTRACE_BIT 19 /* linux/capability.h */

struct diagnosis {
	const struct stasis_lib_sink *sink;
	struct stasis_driver driver;
	struct stasis_driver_report report;
	uint64_t device_bytes; /* of all GPUs */
};

static void ability_report(const struct stasis_lib_sink *sink, const char *key, bool is_there,
			   const char *why)
{
	if (is_there)
		stasis_lib_event(sink, key, "yes");
	else
		stasis_lib_event(sink, key, "no: %s", why);
}

static void gpu_report(const struct stasis_lib_sink *sink, size_t index,
		       const struct stasis_gpu *gpu)
{
	char uuid[STASIS_UUID_TEXT_BYTES];

	stasis_lib_event_of(sink, "gpu", index, "name", "%s", gpu->name);
	stasis_lib_event_of(sink, "gpu", index, "uuid", "%s", stasis_uuid_format(&gpu->uuid, uuid));
	stasis_lib_event_of(sink, "gpu", index, "pci_bus_id", "%s", gpu->pci_bus_id);
	stasis_lib_event_of(sink, "gpu", index, "capability", "%d.%d", gpu->capability_major,
			    gpu->capability_minor);
	stasis_lib_event_of(sink, "gpu", index, "bytes", "%" PRIu64, gpu->total_bytes);
	if (gpu->has_free_bytes)
		stasis_lib_event_of(sink, "gpu", index, "free_bytes", "%" PRIu64, gpu->free_bytes);
	if (gpu->compute_mode != CU_COMPUTEMODE_DEFAULT)
		stasis_lib_event_of(sink, "gpu", index, "compute_mode",
				    "%s: stasis may find no room for a context of its own",
				    stasis_compute_mode_name(gpu->compute_mode));
	if (gpu->is_mig)
		stasis_lib_event_of(sink, "gpu", index, "mig", "yes: not supported");
}

static void stores_report(struct diagnosis *diagnosis)
{
	const struct stasis_driver_report *report = &diagnosis->report;

	ability_report(diagnosis->sink, "store_native", report->has_checkpoint,
		       report->why_no_checkpoint);
	ability_report(diagnosis->sink, "store_custom", report->has_custom_storage,
		       report->why_no_custom_storage);
	ability_report(diagnosis->sink, "other_gpus", report->has_gpu_pairs,
		       report->why_no_gpu_pairs);
}

static void driver_diagnose(struct diagnosis *diagnosis)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_driver_report *report = &diagnosis->report;
	char version[STASIS_VERSION_BYTES];
	char simulator[STASIS_LIB_PATH_BYTES];

	if (*stasis_kernel_module_version(version))
		stasis_lib_event(diagnosis->sink, "kernel_module", "%s", version);
	else
		stasis_lib_event(diagnosis->sink, "kernel_module", "none");
	if (stasis_driver_open(NULL, &diagnosis->driver, &err) != 0 ||
	    stasis_driver_start(&diagnosis->driver, &err) != 0 ||
	    stasis_driver_report_read(&diagnosis->driver, STASIS_REPORT_FREE_BYTES, report, &err) !=
		    0) {
		stasis_lib_event(diagnosis->sink, "driver", "none: %s", err.text);
		ability_report(diagnosis->sink, "store_native", false, "there is no driver");
		ability_report(diagnosis->sink, "store_custom", false, "there is no driver");
	} else {
		stasis_lib_event(diagnosis->sink, "driver", "%s", diagnosis->driver.path);
		stasis_lib_event(diagnosis->sink, "cuda_version", "%d.%d",
				 report->cuda_version / 1000, report->cuda_version % 1000 / 10);
		stores_report(diagnosis);
		for (unsigned int i = 0; i < report->gpu_count; i++) {
			gpu_report(diagnosis->sink, i, &report->gpus[i]);
			diagnosis->device_bytes += report->gpus[i].total_bytes;
		}
	}
	if (stasis_lib_simulator_path(simulator))
		stasis_lib_event(diagnosis->sink, "simulated_driver", "%s", simulator);
}

/* An absolute path to a program that can be executed; false: not there. */
static bool program_find(const char *name, char *path, size_t path_bytes)
{
	const char *places = secure_getenv("PATH");
	CLEANUP(free) char *copy = strdup(places ? places : "");
	char *rest = NULL;

	if (!copy)
		return false;
	for (char *place = strtok_r(copy, ":", &rest); place; place = strtok_r(NULL, ":", &rest)) {
		(void)snprintf(path, path_bytes, "%s/%s", place, name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static void criu_diagnose(const struct diagnosis *diagnosis)
{
	char path[STASIS_LIB_PATH_BYTES];

	if (program_find("criu", path, sizeof(path)) || stasis_lib_criu_path(path))
		stasis_lib_event(diagnosis->sink, "criu", "%s", path);
	else
		stasis_lib_event(diagnosis->sink, "criu",
				 "none: whole processes cannot be dumped; 'make criu' gets one");
}

static bool has_ptrace_capability(void)
{
	CLEANUP(file) FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "CapEff:", 7) == 0)
			return (strtoull(line + 7, NULL, 16) >> CAP_SYS_PTRACE_BIT) & 1;
	}
	return false;
}

/* Yama says whose processes one may act on; without Yama it is those of the same user. */
static const char *yama_meaning(char scope, bool has_capability)
{
	if (scope == '3')
		return "3: no process may be acted on; only a reboot changes that";
	if (has_capability)
		return "does not matter: this process has CAP_SYS_PTRACE";
	if (scope == '2')
		return "2: needs CAP_SYS_PTRACE, which this process has not; run as root, or "
		       "setcap cap_sys_ptrace+ep on the program";
	if (scope == '1')
		return "1: only own descendants may be acted on; for others run as root, or "
		       "setcap cap_sys_ptrace+ep on the program";
	return "0: every process of the same user may be acted on";
}

static void privileges_diagnose(const struct diagnosis *diagnosis)
{
	CLEANUP(file) FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	bool has_capability = has_ptrace_capability();
	int scope = file ? fgetc(file) : '0';

	stasis_lib_event(diagnosis->sink, "user", "%s", geteuid() == 0 ? "root" : "not root");
	stasis_lib_event(diagnosis->sink, "cap_sys_ptrace", "%s", has_capability ? "yes" : "no");
	stasis_lib_event(diagnosis->sink, "yama_scope", "%s",
			 yama_meaning((char)scope, has_capability));
}

static void room_report(const struct diagnosis *diagnosis, const char *key, uint64_t free_bytes)
{
	if (diagnosis->device_bytes == 0)
		return;
	stasis_lib_event(diagnosis->sink, key, "%s",
			 free_bytes >= diagnosis->device_bytes ? "yes"
							       : "no: full GPUs would not fit");
}

static void room_diagnose(const struct diagnosis *diagnosis, const char *directory)
{
	struct stasis_lib_host_memory host;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct statvfs disk;

	if (stasis_lib_host_memory_read(&host, &err) == 0) {
		stasis_lib_event(diagnosis->sink, "memory_available_bytes", "%" PRIu64,
				 host.available_bytes);
		if (host.cgroup_bytes < host.kernel_bytes)
			stasis_lib_event(diagnosis->sink, "memory_bound", "by the cgroup");
		room_report(diagnosis, "memory_holds_gpus", host.available_bytes);
	} else {
		stasis_lib_event(diagnosis->sink, "warning", "%s", err.text);
	}
	stasis_lib_event(diagnosis->sink, "directory", "%s", directory);
	if (statvfs(directory, &disk) != 0) {
		(void)stasis_fail_errno(&err, STASIS_REFUSED, "'%s'", directory);
		stasis_lib_event(diagnosis->sink, "warning", "%s", err.text);
		return;
	}
	stasis_lib_event(diagnosis->sink, "disk_free_bytes", "%" PRIu64,
			 (uint64_t)disk.f_bavail * disk.f_frsize);
	room_report(diagnosis, "disk_holds_gpus", (uint64_t)disk.f_bavail * disk.f_frsize);
}

enum stasis_status stasis_library_diagnose(struct stasis_library *library, const char *directory)
{
	CLEANUP(free) struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
	struct stasis_error *err = stasis_lib_begin(library);

	if (!diagnosis) {
		(void)stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "doctor");
		return stasis_lib_end(library, -1);
	}
	diagnosis->sink = &library->sink;
	stasis_lib_event(&library->sink, "stasis_version", "%s", stasis_version());
	driver_diagnose(diagnosis);
	criu_diagnose(diagnosis);
	privileges_diagnose(diagnosis);
	room_diagnose(diagnosis, directory && *directory ? directory : ".");
	return stasis_lib_end(library, 0);
}
