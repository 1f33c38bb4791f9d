/* See obstacles.h. */

#include "group/obstacles.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "driver/device.h"
#include "driver/report.h"
#include "group/layout.h"
#include "image/image.h"

#define MPS_VARIABLE "CUDA_MPS_PIPE_DIRECTORY="
#define MPS_DEFAULT "/tmp/nvidia-mps"
/* nvidia-cuda-mps-control and -server, as far as the kernel keeps names. */
#define MPS_NAME "nvidia-cuda-mps"

/* The driver's own, the files of an image beside its extents, one of each kind that nobody thought of. */
#define DESCRIPTORS_SPARE 64
/* Each object's descriptor, and what the driver opens for an import of it. */
#define DESCRIPTORS_PER_OBJECT 2

/* ---- states ---- */

/* One that is not RUNNING was put aside by somebody else, and is left so. */
static int state_check(const struct stasis_group_process *process, struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_state(&process->target, &state, err) != 0)
		return -1;
	if (state == CU_PROCESS_STATE_RUNNING)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "process %d (%s) is %s already: somebody else has put it aside, and it "
			   "is left so; whoever did that has to give it back first",
			   (int)process->target.process.pid, process->name,
			   stasis_target_state_name(state));
}

/* ---- GPUs ---- */

static int gpu_check(const struct stasis_gpu *gpu, struct stasis_error *err)
{
	if (gpu->compute_mode != CU_COMPUTEMODE_DEFAULT)
		return stasis_fail(
			err, STASIS_REFUSED,
			"GPU %d (%s) is in compute mode '%s', and a context of stasis is "
			"needed beside those of the programs; 'nvidia-smi -i %s -c DEFAULT' "
			"allows it, or CUDA_VISIBLE_DEVICES leaves the GPU out",
			gpu->ordinal, gpu->name, stasis_compute_mode_name(gpu->compute_mode),
			gpu->pci_bus_id);
	if (gpu->is_mig)
		return stasis_fail(err, STASIS_REFUSED,
				   "GPU %d (%s, %s) is a MIG instance, which is not supported; run "
				   "the programs on a whole GPU",
				   gpu->ordinal, gpu->name, gpu->pci_bus_id);
	return 0;
}

static int gpus_check(const struct stasis_group *group, struct stasis_error *err)
{
	struct stasis_device_list list;

	if (stasis_device_list_read(group->driver, &list, err) != 0)
		return -1;
	for (unsigned int i = 0; i < list.count; i++) {
		struct stasis_gpu gpu;

		if (stasis_gpu_read(group->driver, &list.devices[i], &gpu, err) != 0 ||
		    gpu_check(&gpu, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- MPS ---- */

/* The folder by which a process finds an MPS daemon; the driver's own where it cannot be read. The caller frees it. */
static char *mps_folder(pid_t pid)
{
	CLEANUP(file) FILE *file = NULL;
	CLEANUP(free) char *entry = NULL;
	char path[32];
	size_t room = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	file = fopen(path, "re");
	while (file && getdelim(&entry, &room, '\0', file) > 0) {
		if (strncmp(entry, MPS_VARIABLE, strlen(MPS_VARIABLE)) == 0)
			return strdup(entry + strlen(MPS_VARIABLE));
	}
	return strdup(MPS_DEFAULT);
}

/* A program becomes a client by being started with a daemon there; there is no way of becoming one later. */
static int mps_client_check(const struct stasis_group_process *process, pid_t daemon,
			    struct stasis_error *err)
{
	CLEANUP(free) char *theirs = mps_folder(daemon);
	CLEANUP(free) char *ours = mps_folder(process->target.process.pid);
	uint64_t start_ticks = 0;

	if (!theirs || !ours)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	if (strcmp(theirs, ours) != 0 || !stasis_process_start_ticks(daemon, &start_ticks) ||
	    start_ticks > process->start_ticks)
		return 0;
	return stasis_fail(
		err, STASIS_REFUSED,
		"process %d (%s) uses the GPU through the MPS daemon, process %d, at '%s', "
		"and cannot be captured; start the program without MPS (a folder of its "
		"own in CUDA_MPS_PIPE_DIRECTORY), or end the daemon before",
		(int)process->target.process.pid, process->name, (int)daemon, theirs);
}

static int mps_daemon_check(const struct stasis_group *group, const char *entry,
			    struct stasis_error *err)
{
	char name[STASIS_PROCESS_NAME_BYTES];
	uint64_t pid = 0;

	if (entry[0] < '1' || entry[0] > '9' || stasis_parse_u64("pid", entry, &pid, NULL) != 0 ||
	    pid > INT32_MAX)
		return 0;
	stasis_process_name((pid_t)pid, name);
	if (strcmp(name, MPS_NAME) != 0)
		return 0;
	for (size_t i = 0; i < group->count; i++) {
		if (mps_client_check(&group->processes[i], (pid_t)pid, err) != 0)
			return -1;
	}
	return 0;
}

static int mps_check(const struct stasis_group *group, struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return stasis_fail_errno(err, STASIS_REFUSED, "read /proc");
	while ((entry = stasis_dir_next(dir)) != NULL) {
		if (mps_daemon_check(group, entry->d_name, err) != 0)
			return -1;
	}
	return 0;
}

int stasis_obstacles_check(const struct stasis_group *group, struct stasis_error *err)
{
	for (size_t i = 0; i < group->count; i++) {
		if (state_check(&group->processes[i], err) != 0)
			return -1;
	}
	return gpus_check(group, err) != 0 ? -1 : mps_check(group, err);
}

/* ---- descriptors ---- */

/* How many a process has open, and may have. False: that is not to be seen. */
static bool descriptors_read(pid_t pid, uint64_t *ret_open, uint64_t *ret_limit)
{
	CLEANUP(dir) DIR *dir = NULL;
	struct rlimit limit;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir || prlimit(pid, RLIMIT_NOFILE, NULL, &limit) != 0)
		return false;
	*ret_open = 0;
	for (const struct dirent *entry; (entry = stasis_dir_next(dir)) != NULL;)
		*ret_open += entry->d_name[0] != '.';
	*ret_limit = limit.rlim_cur;
	return true;
}

/* Going back gives each process a descriptor of what it made; those of its imports it has already. */
static int member_check(const struct stasis_group *group,
			const struct stasis_group_process *process, struct stasis_error *err)
{
	pid_t pid = process->target.process.pid;
	uint64_t need = STASIS_WIRE_DESCRIPTORS_MAX;
	uint64_t open_count = 0;
	uint64_t limit = 0;

	for (uint32_t i = 0; i < group->topology.object_count; i++) {
		const struct stasis_group_object *object = &group->topology.objects[i];

		need += object->is_ours &&
			stasis_id_equal(&object->creator,
					&process->participant.greeting.participant);
	}
	if (!descriptors_read(pid, &open_count, &limit) || open_count + need <= limit)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "process %d (%s) has %" PRIu64 " descriptors open and may need %" PRIu64
			   " more for its shared GPU memory, and its limit is %" PRIu64
			   "; 'prlimit --pid %d --nofile=%" PRIu64 ":' raises it",
			   (int)pid, process->name, open_count, need, limit, (int)pid,
			   open_count + need);
}

/* All holders hand out what they have, before all but one of each object's are let go. */
static int own_check(const struct stasis_group *group, struct stasis_error *err)
{
	CLEANUP(layout) struct stasis_layout layout = {.items = NULL};
	uint64_t need = DESCRIPTORS_SPARE;
	uint64_t open_count = 0;
	uint64_t limit = 0;

	if (stasis_layout_make(&group->topology, &layout, err) != 0)
		return -1;
	for (size_t i = 0; i < layout.item_count; i++)
		need += layout.items[i].object->holder_count + DESCRIPTORS_PER_OBJECT;
	need += layout.extent_count * (STASIS_STRIPES_MAX + 1);
	if (!descriptors_read(getpid(), &open_count, &limit) || open_count + need <= limit)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "the %zu shared allocations of process %d (%s) and those with it take "
			   "%" PRIu64 " descriptors in this process, and its hard limit is %" PRIu64
			   "; 'ulimit -Hn %" PRIu64 "' raises it",
			   layout.item_count, (int)group->processes[0].target.process.pid,
			   group->processes[0].name, open_count + need, limit, open_count + need);
}

int stasis_obstacles_check_descriptors(const struct stasis_group *group, struct stasis_error *err)
{
	if (group->topology.object_count == 0)
		return 0;
	for (size_t i = 0; i < group->count; i++) {
		if (group->processes[i].is_participant &&
		    member_check(group, &group->processes[i], err) != 0)
			return -1;
	}
	return own_check(group, err);
}
