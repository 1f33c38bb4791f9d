/*
 * Description: the states of a process under the checkpoint calls, and what its lock holds.
 */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "gate.h"

#define BYTES (4 * T_MIB)

/* Holds BYTES of memory; 'v': checks them and answers 'k'. */
static void idle_target(int fd, void *unused)
{
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	address = t_alloc(BYTES);
	t_fill(address, BYTES, 1);
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'v') {
		t_verify(address, BYTES, 1);
		t_say(fd, 'k');
	}
}

/* A running target, and CUDA initialised here. */
static struct t_child start_idle(void)
{
	struct t_child target = t_child_start(idle_target, NULL);

	t_init_only();
	t_hear(target.fd, 'r');
	return target;
}

static void demand_good(struct t_child *target)
{
	t_say(target->fd, 'v');
	t_hear(target->fd, 'k');
	t_child_join(target);
}

static void state_starts_running(void)
{
	struct t_child target = start_idle();

	T_EQ(t_state(target.pid), CU_PROCESS_STATE_RUNNING);
	t_child_join(&target);
}

static void lock_and_unlock(void)
{
	struct t_child target = start_idle();

	T_OK(t_lock(target.pid));
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(target.pid));
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_RUNNING);
	demand_good(&target);
}

static void lock_twice(void)
{
	struct t_child target = start_idle();

	T_OK(t_lock(target.pid));
	T_IS(t_lock(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(target.pid));
	demand_good(&target);
}

static void unlock_running(void)
{
	struct t_child target = start_idle();

	T_IS(t_unlock(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	demand_good(&target);
}

static void checkpoint_running(void)
{
	struct t_child target = start_idle();

	T_IS(t_checkpoint(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_RUNNING);
	demand_good(&target);
}

static void restore_uncheckpointed(void)
{
	struct t_child target = start_idle();

	T_IS(t_restore(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	T_OK(t_lock(target.pid));
	T_IS(t_restore(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(target.pid));
	demand_good(&target);
}

static void unlock_checkpointed(void)
{
	struct t_child target = start_idle();

	t_suspend(target.pid);
	T_IS(t_unlock(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_CHECKPOINTED);
	t_resume(target.pid);
	demand_good(&target);
}

static void whole_cycle(void)
{
	struct t_child target = start_idle();

	for (int i = 0; i < 2; i++) {
		t_suspend(target.pid);
		T_OK(t_restore(target.pid));
		T_EQ(t_state(target.pid), CU_PROCESS_STATE_LOCKED);
		T_OK(t_unlock(target.pid));
		T_EQ(t_state(target.pid), CU_PROCESS_STATE_RUNNING);
	}
	demand_good(&target);
}

static void checkpoint_twice(void)
{
	struct t_child target = start_idle();

	t_suspend(target.pid);
	T_REFUSED(t_checkpoint(target.pid));
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_CHECKPOINTED);
	t_resume(target.pid);
	demand_good(&target);
}

static void without_cuda(int fd, void *unused)
{
	(void)unused;
	t_wait_end(fd);
}

static void no_cuda_state(void)
{
	struct t_child target = t_child_start(without_cuda, NULL);
	CUprocessState state = CU_PROCESS_STATE_RUNNING;

	t_init_only();
	T_IS(cuCheckpointProcessGetState(target.pid, &state), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(t_lock(target.pid), CUDA_ERROR_NOT_INITIALIZED);
	t_child_join(&target);
}

static void dead_process(void)
{
	struct t_child target = start_idle();
	CUprocessState state = CU_PROCESS_STATE_RUNNING;

	t_child_kill(&target);
	T_REFUSED(cuCheckpointProcessGetState(target.pid, &state));
	T_REFUSED(t_lock(target.pid));
}

static void reserved_bytes(void)
{
	struct t_child target = start_idle();
	CUcheckpointLockArgs args = {.timeoutMs = T_LOCK_MS, .reserved1 = {1}};

	T_IS(cuCheckpointProcessLock(target.pid, &args), CUDA_ERROR_INVALID_VALUE);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_RUNNING);
	demand_good(&target);
}

static void missing_arguments(void)
{
	struct t_child target = start_idle();

	T_OK(t_lock(target.pid));
	T_OK(cuCheckpointProcessCheckpoint(target.pid, NULL));
	T_OK(t_restore(target.pid));
	T_OK(cuCheckpointProcessUnlock(target.pid, NULL));
	T_IS(cuCheckpointProcessGetState(target.pid, NULL), CUDA_ERROR_INVALID_VALUE);
	demand_good(&target);
}

static void restore_thread(void)
{
	struct t_child target = start_idle();
	struct stat info;
	char path[64];
	int tid = 0;

	T_OK(cuCheckpointProcessGetRestoreThreadId(target.pid, &tid));
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)target.pid, tid);
	T_SYS(stat(path, &info));
	t_child_join(&target);
}

static void checkpoint_frees_memory(void)
{
	struct t_child target = start_idle();
	size_t before;
	size_t suspended;

	(void)t_cuda();
	before = t_free_bytes();
	t_suspend(target.pid);
	suspended = t_free_bytes();
	T_TRUE(suspended >= before + BYTES);
	t_resume(target.pid);
	T_TRUE(t_free_bytes() + BYTES <= suspended);
	demand_good(&target);
}

static void checkpoint_closes_descriptors(void)
{
	struct t_child target = start_idle();

	T_TRUE(t_driver_descriptors(target.pid) > 0);
	t_suspend(target.pid);
	T_EQ(t_driver_descriptors(target.pid), 0);
	t_resume(target.pid);
	demand_good(&target);
}

/* 'b': answers that it still runs. */
static void talking_target(int fd, void *unused)
{
	(void)unused;
	(void)t_cuda();
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'b')
		t_say(fd, 'y');
}

static void threads_run_on(void)
{
	struct t_child target = t_child_start(talking_target, NULL);

	t_init_only();
	t_hear(target.fd, 'r');
	t_suspend(target.pid);
	t_say(target.fd, 'b');
	t_hear(target.fd, 'y');
	t_resume(target.pid);
	t_say(target.fd, 'b');
	t_hear(target.fd, 'y');
	t_child_join(&target);
}

static const struct t_behaviour behaviours[] = {
	{"state_starts_running", T_DOCUMENTED, "a CUDA process is RUNNING", state_starts_running},
	{"lock_and_unlock", T_MEASURED, "a lock makes it LOCKED, an unlock RUNNING",
	 lock_and_unlock},
	{"lock_twice", T_DOCUMENTED, "a second lock is ILLEGAL_STATE", lock_twice},
	{"unlock_running", T_DOCUMENTED, "unlocking a RUNNING process is ILLEGAL_STATE",
	 unlock_running},
	{"checkpoint_running", T_DOCUMENTED, "checkpointing a RUNNING process is ILLEGAL_STATE",
	 checkpoint_running},
	{"restore_uncheckpointed", T_DOCUMENTED,
	 "restoring what is not CHECKPOINTED is ILLEGAL_STATE", restore_uncheckpointed},
	{"unlock_checkpointed", T_DOCUMENTED, "unlocking what is CHECKPOINTED is ILLEGAL_STATE",
	 unlock_checkpointed},
	{"whole_cycle", T_MEASURED,
	 "LOCKED, CHECKPOINTED, after a restore LOCKED, then RUNNING; and all again", whole_cycle},
	{"checkpoint_twice", T_DOCUMENTED, "a second checkpoint is refused", checkpoint_twice},
	{"no_cuda_state", T_REPORTED, "a process without CUDA is NOT_INITIALIZED", no_cuda_state},
	{"dead_process", T_DOCUMENTED, "a dead process is refused", dead_process},
	{"reserved_bytes", T_DOCUMENTED, "reserved bytes that are not zero are INVALID_VALUE",
	 reserved_bytes},
	{"missing_arguments", T_MEASURED, "arguments of checkpoint and unlock may be NULL",
	 missing_arguments},
	{"restore_thread", T_DOCUMENTED, "the restore thread is a thread of the process",
	 restore_thread},
	{"checkpoint_frees_memory", T_MEASURED,
	 "a checkpointed process holds no device memory, a restored one its own again",
	 checkpoint_frees_memory},
	{"checkpoint_closes_descriptors", T_MEASURED,
	 "a checkpointed process has no descriptor of the driver", checkpoint_closes_descriptors},
	{"threads_run_on", T_MEASURED, "threads of a checkpointed process run on", threads_run_on},
};

T_BEHAVIOURS_MAIN(behaviours)
