/* See native.h. */

#include "group/native.h"

#include <unistd.h>

#define LOCK_TRIES 5
#define LOCK_FIRST_MS 500u /* doubled with each try */
#define UNLOCK_TRIES 3
#define UNLOCK_PAUSE_US 100000

static void state_report(const struct stasis_group *group, CUprocessState state)
{
	stasis_group_event(group->watch, "state", "%s", stasis_target_state_name(state));
}

static int state_expect(struct stasis_group *group, size_t index, CUprocessState expected,
			enum stasis_status status, struct stasis_error *err)
{
	struct stasis_group_process *process = &group->processes[index];
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_state(&process->target, &state, err) != 0)
		return -1;
	if (state == expected)
		return 0;
	return stasis_fail(err, status, "process %d (%s) is %s, but should be %s",
			   (int)process->target.process.pid, process->name,
			   stasis_target_state_name(state), stasis_target_state_name(expected));
}

/* Those before `end` were locked by us. */
static int locks_release(struct stasis_group *group, size_t end, struct stasis_error *err)
{
	int result = 0;

	for (size_t i = 0; i < end; i++) {
		if (!group->processes[i].is_out &&
		    stasis_target_unlock(&group->processes[i].target, err) != 0) {
			stasis_error_worsen(err, STASIS_LOST);
			result = -1;
		}
	}
	return result;
}

static int locks_try(struct stasis_group *group, unsigned int timeout_ms, struct stasis_error *err)
{
	struct stasis_error worse = STASIS_ERROR_INIT;

	for (size_t i = 0; i < group->count; i++) {
		if (group->processes[i].is_out ||
		    stasis_target_lock(&group->processes[i].target, timeout_ms, err) == 0)
			continue;
		if (locks_release(group, i, &worse) != 0) {
			stasis_error_worsen(err, worse.status);
			stasis_error_append(err, "; then: %s", worse.text);
		}
		return -1;
	}
	return 0;
}

int stasis_native_lock(struct stasis_group *group, struct stasis_error *err)
{
	unsigned int timeout_ms = LOCK_FIRST_MS;

	for (size_t i = 0; i < group->count; i++) {
		if (!group->processes[i].is_out &&
		    state_expect(group, i, CU_PROCESS_STATE_RUNNING, STASIS_REFUSED, err) != 0)
			return -1;
	}
	for (int try = 1;; try++) {
		struct stasis_error failure = STASIS_ERROR_INIT;

		if (locks_try(group, timeout_ms, &failure) == 0)
			return 0;
		if (try == LOCK_TRIES || failure.status != STASIS_REFUSED ||
		    failure.cuda_result != CUDA_ERROR_NOT_READY) {
			stasis_error_take(err, &failure);
			return -1;
		}
		timeout_ms *= 2;
	}
}

int stasis_native_checkpoint(struct stasis_group *group, struct stasis_error *err)
{
	for (size_t i = 0; i < group->count; i++) {
		if (!group->processes[i].is_out &&
		    stasis_target_checkpoint(&group->processes[i].target, err) != 0)
			return -1;
	}
	return 0;
}

int stasis_native_confirm(struct stasis_group *group, CUprocessState expected,
			  struct stasis_error *err)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->processes[i].is_out)
			continue;
		if (state_expect(group, i, expected, STASIS_LOST, err) != 0)
			return -1;
		state_report(group, expected);
	}
	return 0;
}

/* Whatever became of it: no later step asks it for anything. */
static void process_lose(struct stasis_group *group, size_t index,
			 const struct stasis_error *failure, struct stasis_error *err)
{
	struct stasis_group_process *process = &group->processes[index];

	process->is_out = true;
	stasis_group_event(group->watch, "warning", "%s", failure->text);
	stasis_error_take(err, failure);
	stasis_error_worsen(err, STASIS_LOST);
}

static int process_restore(struct stasis_group *group, size_t index, struct stasis_error *err)
{
	struct stasis_group_process *process = &group->processes[index];
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_state(&process->target, &state, err) != 0)
		return -1;
	if (state == CU_PROCESS_STATE_CHECKPOINTED)
		return stasis_target_restore(&process->target, NULL, err);
	if (state == CU_PROCESS_STATE_LOCKED || state == CU_PROCESS_STATE_RUNNING)
		return 0;
	return stasis_fail(err, STASIS_LOST, "process %d (%s): the driver has it in state %s",
			   (int)process->target.process.pid, process->name,
			   stasis_target_state_name(state));
}

static int process_unlock_once(struct stasis_group *group, size_t index, struct stasis_error *err)
{
	struct stasis_group_process *process = &group->processes[index];
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (stasis_target_state(&process->target, &state, err) != 0)
		return -1;
	if (state == CU_PROCESS_STATE_LOCKED && stasis_target_unlock(&process->target, err) != 0)
		return -1;
	return state_expect(group, index, CU_PROCESS_STATE_RUNNING, STASIS_LOST, err);
}

/* Its state is read before each try, so that unlocking again harms nothing; a failed restore is never tried again. */
static int process_unlock(struct stasis_group *group, size_t index, struct stasis_error *err)
{
	for (int try = 1; try < UNLOCK_TRIES; try++) {
		if (process_unlock_once(group, index, NULL) == 0)
			return 0;
		(void)usleep(UNLOCK_PAUSE_US);
	}
	return process_unlock_once(group, index, err);
}

int stasis_native_return(struct stasis_group *group, struct stasis_error *err)
{
	int (*const steps[])(struct stasis_group *, size_t, struct stasis_error *) = {
		process_restore,
		process_unlock,
	};
	int result = 0;

	for (size_t step = 0; step < ARRAY_COUNT(steps); step++) {
		for (size_t i = 0; i < group->count; i++) {
			struct stasis_error failure = STASIS_ERROR_INIT;

			if (group->processes[i].is_out || steps[step](group, i, &failure) == 0)
				continue;
			process_lose(group, i, &failure, err);
			result = -1;
		}
	}
	return result;
}
