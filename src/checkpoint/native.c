/*
 * Lock and unlock, and checkpoint and restore with the driver's own store. See checkpoint.h.
 */

#include "checkpoint/internal.h"

int stasis_target_lock(const struct stasis_target *target, unsigned int timeout_ms,
		       struct stasis_error *err)
{
	CUcheckpointLockArgs args = {.timeoutMs = timeout_ms};
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (stasis_target_expect(target, CU_PROCESS_STATE_RUNNING, "lock", err) != 0 ||
	    stasis_target_check(target, err) != 0)
		return -1;
	result = target->driver->cuCheckpointProcessLock(target->process.pid, &args);
	if (result != CUDA_SUCCESS)
		(void)stasis_target_fail(target, result, "lock", &cause);
	else if (stasis_target_confirm(target, CU_PROCESS_STATE_LOCKED, "lock", &cause) == 0)
		return 0;
	return stasis_target_settle_paused(target, &cause, err);
}

int stasis_target_unlock(const struct stasis_target *target, struct stasis_error *err)
{
	CUcheckpointUnlockArgs args = {0};
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (stasis_target_expect(target, CU_PROCESS_STATE_LOCKED, "unlock", err) != 0 ||
	    stasis_target_check(target, err) != 0)
		return -1;
	result = target->driver->cuCheckpointProcessUnlock(target->process.pid, &args);
	if (result != CUDA_SUCCESS)
		(void)stasis_target_fail(target, result, "unlock", &cause);
	else if (stasis_target_confirm(target, CU_PROCESS_STATE_RUNNING, "unlock", &cause) == 0)
		return 0;
	return stasis_target_settle_unlock(target, &cause, err);
}

int stasis_target_checkpoint(const struct stasis_target *target, struct stasis_error *err)
{
	CUcheckpointCheckpointArgs args = {0};
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (stasis_target_expect(target, CU_PROCESS_STATE_LOCKED, "checkpoint", err) != 0 ||
	    stasis_target_check(target, err) != 0)
		return -1;
	result = target->driver->cuCheckpointProcessCheckpoint(target->process.pid, &args);
	if (result != CUDA_SUCCESS)
		(void)stasis_target_fail(target, result, "checkpoint", &cause);
	else if (stasis_target_confirm(target, CU_PROCESS_STATE_CHECKPOINTED, "checkpoint",
				       &cause) == 0)
		return 0;
	return stasis_target_settle_paused(target, &cause, err);
}

int stasis_target_restore(const struct stasis_target *target, const struct stasis_remap *remap,
			  struct stasis_error *err)
{
	CUcheckpointGpuPair pairs[STASIS_DEVICES_MAX];
	CUcheckpointRestoreArgs args = {0};
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (stasis_target_expect(target, CU_PROCESS_STATE_CHECKPOINTED, "restore", err) != 0 ||
	    stasis_remap_encode(target->driver, remap, pairs, &args, err) != 0 ||
	    stasis_target_check(target, err) != 0)
		return -1;
	result = target->driver->cuCheckpointProcessRestore(target->process.pid, &args);
	if (result != CUDA_SUCCESS)
		(void)stasis_target_fail(target, result, "restore", &cause);
	else if (stasis_target_confirm(target, CU_PROCESS_STATE_LOCKED, "restore", &cause) == 0)
		return 0;
	return stasis_target_settle_lost(target, &cause, err);
}
