/*
 * Checkpoint calls for tests.
 */
#include "checkpoint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"

CUresult t_lock(pid_t pid)
{
	CUcheckpointLockArgs args = {.timeoutMs = T_LOCK_MS};

	return cuCheckpointProcessLock(pid, &args);
}

CUresult t_checkpoint(pid_t pid)
{
	CUcheckpointCheckpointArgs args = {0};

	return cuCheckpointProcessCheckpoint(pid, &args);
}

CUresult t_restore(pid_t pid)
{
	CUcheckpointRestoreArgs args = {0};

	return cuCheckpointProcessRestore(pid, &args);
}

CUresult t_unlock(pid_t pid)
{
	CUcheckpointUnlockArgs args = {0};

	return cuCheckpointProcessUnlock(pid, &args);
}

CUprocessState t_state(pid_t pid)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	T_OK(cuCheckpointProcessGetState(pid, &state));
	return state;
}

void t_suspend(pid_t pid)
{
	T_OK(t_lock(pid));
	T_OK(t_checkpoint(pid));
	T_EQ(t_state(pid), CU_PROCESS_STATE_CHECKPOINTED);
}

void t_resume(pid_t pid)
{
	T_OK(t_restore(pid));
	T_OK(t_unlock(pid));
	T_EQ(t_state(pid), CU_PROCESS_STATE_RUNNING);
}

static bool leads_to_driver(const char *target)
{
	const char *driver = getenv("STASIS_TEST_DRIVER");
	const char *sim_dir = getenv("STASIS_SIM_DIR");

	if (!strncmp(target, "/dev/nvidia", strlen("/dev/nvidia")))
		return true;
	if (!sim_dir || (driver && !strcmp(driver, "real")))
		return false;
	/* A participant's control file, and the tickets that it holds, are ours and may stay. */
	if (!strncmp(target, "/memfd:stasis-", strlen("/memfd:stasis-")))
		return false;
	return !strncmp(target, "/memfd:", strlen("/memfd:")) ||
	       !strncmp(target, sim_dir, strlen(sim_dir));
}

size_t t_driver_descriptors(pid_t pid)
{
	CLEANUP(dir) DIR *dir = NULL;
	struct dirent *entry;
	char folder[64];
	size_t count = 0;

	(void)snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	dir = opendir(folder);
	T_TRUE(dir != NULL);
	while ((entry = readdir(dir))) {
		char target[512];
		ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (size < 0)
			continue;
		target[size] = '\0';
		if (leads_to_driver(target))
			count++;
	}
	return count;
}
