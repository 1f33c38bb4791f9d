/*
 * Description: each checkpoint call in each state it does not belong to, with each reserved byte set,
 * and on processes that are none of CUDA's, is refused and changes nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "witness.h"

static void refuse_in(pid_t pid, const char *state, CUresult (*call)(pid_t pid))
{
	T_IS(call(pid), CUDA_ERROR_ILLEGAL_STATE);
	T_WITNESS(pid, state);
}

static void check_states(pid_t pid)
{
	refuse_in(pid, "RUNNING", t_unlock);
	refuse_in(pid, "RUNNING", t_checkpoint);
	refuse_in(pid, "RUNNING", t_restore);
	T_EQ(t_state(pid), CU_PROCESS_STATE_RUNNING);
	T_OK(t_lock(pid));
	refuse_in(pid, "LOCKED", t_lock);
	refuse_in(pid, "LOCKED", t_restore);
	T_EQ(t_state(pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_checkpoint(pid));
	refuse_in(pid, "CHECKPOINTED", t_lock);
	refuse_in(pid, "CHECKPOINTED", t_checkpoint);
	refuse_in(pid, "CHECKPOINTED", t_unlock);
	T_EQ(t_state(pid), CU_PROCESS_STATE_CHECKPOINTED);
	T_OK(t_restore(pid));
	refuse_in(pid, "LOCKED", t_restore);
	T_OK(t_unlock(pid));
	T_WITNESS(pid, "RUNNING");
}

static void check_lock_args(pid_t pid)
{
	for (size_t i = offsetof(CUcheckpointLockArgs, reserved0); i < 64; i++) {
		CUcheckpointLockArgs args = {.timeoutMs = 1000};

		((unsigned char *)&args)[i] = 1;
		T_IS(cuCheckpointProcessLock(pid, &args), CUDA_ERROR_INVALID_VALUE);
	}
	T_WITNESS(pid, "RUNNING");
}

static void check_other_args(pid_t pid)
{
	for (size_t i = 0; i < 64; i++) {
		CUcheckpointCheckpointArgs checkpoint = {0};
		CUcheckpointRestoreArgs restore = {0};
		CUcheckpointUnlockArgs unlock = {0};

		((unsigned char *)&checkpoint)[i] = 1;
		((unsigned char *)&restore)[i] = 1;
		((unsigned char *)&unlock)[i] = 1;
		if (i >= offsetof(CUcheckpointCheckpointArgs, reserved))
			T_IS(cuCheckpointProcessCheckpoint(pid, &checkpoint),
			     CUDA_ERROR_INVALID_VALUE);
		if (i < 16 || i >= offsetof(CUcheckpointRestoreArgs, reserved))
			T_IS(cuCheckpointProcessRestore(pid, &restore), CUDA_ERROR_INVALID_VALUE);
		T_IS(cuCheckpointProcessUnlock(pid, &unlock), CUDA_ERROR_INVALID_VALUE);
	}
	T_IS(cuCheckpointProcessGetState(pid, NULL), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuCheckpointProcessGetRestoreThreadId(pid, NULL), CUDA_ERROR_INVALID_VALUE);
	T_WITNESS(pid, "RUNNING");
}

static void wait_only(int fd, void *argument)
{
	(void)argument;
	t_wait_end(fd);
}

static void check_strangers(pid_t stranger)
{
	CUprocessState state;
	int thread_id;
	pid_t dead = (pid_t)T_SYS(fork());

	if (dead == 0)
		_exit(0);
	T_SYS(waitpid(dead, NULL, 0));
	T_IS(cuCheckpointProcessGetState(stranger, &state), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(cuCheckpointProcessGetRestoreThreadId(stranger, &thread_id),
	     CUDA_ERROR_NOT_INITIALIZED);
	T_IS(t_lock(stranger), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(t_checkpoint(stranger), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(t_restore(stranger), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(t_unlock(stranger), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(t_lock(dead), CUDA_ERROR_OPERATING_SYSTEM);
	T_IS(t_lock(0), CUDA_ERROR_INVALID_VALUE);
	T_IS(t_lock(-1), CUDA_ERROR_INVALID_VALUE);
	T_WITNESS(stranger, "NONE");
	T_WITNESS(dead, "NONE");
}

int main(void)
{
	struct t_load load = {.devices = 1, .bytes = T_MIB};
	struct t_child child = t_child_start(t_load_run, &load);
	struct t_child stranger = t_child_start(wait_only, NULL);

	t_hear(child.fd, 'R');
	check_states(child.pid);
	check_lock_args(child.pid);
	check_other_args(child.pid);
	check_strangers(stranger.pid);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
	t_child_join(&stranger);
	return 0;
}
