/*
 * Description: a caller that dies before its operation has begun leaves the target as it was; one that
 * dies between begin and complete leaves it FAILED for good; a target that dies is noticed at complete.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

static struct t_load load = {.devices = 1, .bytes = 4 * T_MIB};

/*
 * What a caller does, each in a process of its own, since the fault plan is read once; this process never
 * calls the driver.
 */
struct deed {
	pid_t target;
	const char *fault;
	bool is_locking;
	bool is_restore;
	const struct t_store *store;
};

static void do_deed(int fd, void *argument)
{
	const struct deed *deed = argument;
	CUcheckpointCustomStorageInfo *info = NULL;

	(void)fd;
	T_SYS(setenv("STASIS_SIM_FAULT", deed->fault, 1));
	t_custom_init();
	if (deed->is_locking)
		T_OK(t_lock(deed->target));
	T_OK(deed->is_restore ? t_custom_begin_restore(deed->target, &info)
			      : t_custom_begin_checkpoint(deed->target, &info));
	if (deed->is_restore)
		t_custom_load(info, deed->store);
	(void)t_custom_complete(info->handle);
}

/* The caller must have been killed where the fault says. */
static void die_at(struct deed deed)
{
	struct t_child caller = t_child_start(do_deed, &deed);
	int status;

	T_SYS(waitpid(caller.pid, &status, 0));
	T_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void by_child(void (*run)(int fd, void *argument), const struct t_child *target)
{
	struct t_child copy = *target;
	struct t_child child = t_child_start(run, &copy);

	t_child_join(&child);
}

static void unlock(int fd, void *argument)
{
	const struct t_child *target = argument;

	(void)fd;
	T_OK(t_unlock(target->pid));
}

static void refuse_all(int fd, void *argument)
{
	const struct t_child *target = argument;

	(void)fd;
	T_EQ(t_state(target->pid), CU_PROCESS_STATE_FAILED);
	T_IS(t_lock(target->pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_unlock(target->pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_checkpoint(target->pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_restore(target->pid), CUDA_ERROR_ILLEGAL_STATE);
}

/* The endpoint hears of the death a moment after it. */
static void await_failed(const struct t_child *target)
{
	while (strcmp(t_witness_state(target->pid), "OPERATING") == 0)
		(void)usleep(1000);
	T_WITNESS(target->pid, "FAILED");
	by_child(refuse_all, target);
}

static struct t_child new_target(void)
{
	struct t_child target = t_child_start(t_load_run, &load);

	t_hear(target.fd, 'R');
	return target;
}

static void unlock_and_verify(const struct t_child *target)
{
	by_child(unlock, target);
	t_say(target->fd, 'V');
	t_hear(target->fd, 'O');
}

static void callers_of_a_checkpoint(void)
{
	struct t_child target = new_target();
	struct deed deed = {.target = target.pid, .is_locking = true};

	deed.fault = "cuCheckpointProcessCheckpoint:1=kill";
	die_at(deed);
	T_WITNESS(target.pid, "LOCKED");
	unlock_and_verify(&target);
	deed.fault = "cuCheckpointProcessCheckpoint!:1=kill";
	die_at(deed);
	await_failed(&target);
	t_child_kill(&target);
}

static void save_and_send(int fd, void *argument)
{
	const struct t_child *target = argument;
	struct t_store store;

	t_custom_init();
	t_custom_suspend(target->pid, &store);
	t_send(fd, &store.extents[0].bytes, sizeof(store.extents[0].bytes));
	t_send(fd, &store.extents[0].uuid, sizeof(store.extents[0].uuid));
	for (size_t sent = 0; sent < store.extents[0].bytes; sent += 4096)
		t_send(fd, store.extents[0].copy + sent, 4096);
}

static void suspend(struct t_child *target, struct t_extent *ret_extent)
{
	struct t_child saver = t_child_start(save_and_send, target);

	t_receive(saver.fd, &ret_extent->bytes, sizeof(ret_extent->bytes));
	t_receive(saver.fd, &ret_extent->uuid, sizeof(ret_extent->uuid));
	ret_extent->copy = malloc(ret_extent->bytes);
	T_TRUE(ret_extent->copy != NULL);
	for (size_t got = 0; got < ret_extent->bytes; got += 4096)
		t_receive(saver.fd, ret_extent->copy + got, 4096);
	t_child_join(&saver);
}

static void callers_of_a_restore(void)
{
	struct t_child target = new_target();
	struct t_store store = {.count = 1};
	struct deed deed = {.target = target.pid, .is_restore = true, .store = &store};

	suspend(&target, &store.extents[0]);
	deed.fault = "cuCheckpointProcessRestore:1=kill";
	die_at(deed);
	T_WITNESS(target.pid, "CHECKPOINTED");
	T_EQ(t_witness_is_lost(target.pid), 0);
	deed.fault = "cuCheckpointOperationComplete!:1=kill";
	die_at(deed);
	T_WITNESS(target.pid, "LOCKED");
	unlock_and_verify(&target);
	t_custom_free(&store);

	suspend(&target, &store.extents[0]);
	deed.fault = "cuCheckpointProcessRestore!:1=kill";
	die_at(deed);
	await_failed(&target);
	t_child_kill(&target);
	free(store.extents[0].copy);
}

static void lose_target(int fd, void *argument)
{
	const struct t_child *target = argument;
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointOperationHandle handle;

	(void)fd;
	T_SYS(setenv("STASIS_SIM_FAULT", "cuCheckpointOperationComplete:1=killtarget", 1));
	t_custom_init();
	T_OK(t_lock(target->pid));
	T_OK(t_custom_begin_checkpoint(target->pid, &info));
	handle = info->handle;
	T_IS(t_custom_complete(handle), CUDA_ERROR_OPERATING_SYSTEM);
	T_IS(t_custom_complete(handle), CUDA_ERROR_INVALID_HANDLE);
}

static void target_dies(void)
{
	struct t_child target = new_target();
	int status;

	by_child(lose_target, &target);
	T_SYS(waitpid(target.pid, &status, 0));
	T_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	T_WITNESS(target.pid, "NONE");
}

int main(void)
{
	callers_of_a_checkpoint();
	callers_of_a_restore();
	target_dies();
	return 0;
}
