/*
 * Description: memory of a killed process is free again; a restore without room loses the process; one
 * onto the other GPU needs every pair, and moves what the process takes; without persistence a restore
 * needs another process that called cuInit; compute modes and MIG are as the environment says.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "witness.h"

static struct t_load small = {.devices = 1, .bytes = 16 * T_MIB};
static struct t_load large = {.devices = 1, .bytes = 128 * T_MIB};

static struct t_child start(struct t_load *load)
{
	struct t_child child = t_child_start(t_load_run, load);

	t_hear(child.fd, 'R');
	return child;
}

static void killed(uint64_t all_bytes)
{
	struct t_child first = start(&small);
	struct t_child second = start(&small);
	uint64_t one_bytes = t_witness_bytes(first.pid, 0);

	T_TRUE(one_bytes > small.bytes);
	T_EQ(t_witness_free_bytes(0), all_bytes - 2 * one_bytes);
	t_child_kill(&first);
	T_EQ(t_witness_free_bytes(0), all_bytes - one_bytes);
	T_EQ(t_witness_bytes(first.pid, 0), 0);
	t_child_kill(&second);
	T_EQ(t_witness_free_bytes(0), all_bytes);
}

static void no_room(void)
{
	struct t_child sleeper = start(&large);
	struct t_child other;

	t_suspend(sleeper.pid);
	other = start(&large);
	T_IS(t_restore(sleeper.pid), CUDA_ERROR_OUT_OF_MEMORY);
	T_WITNESS(sleeper.pid, "CHECKPOINTED");
	T_EQ(t_witness_is_lost(sleeper.pid), 1);
	T_IS(t_unlock(sleeper.pid), CUDA_ERROR_ILLEGAL_STATE);
	t_child_kill(&other);
	T_IS(t_restore(sleeper.pid), CUDA_ERROR_ILLEGAL_STATE);
	t_child_kill(&sleeper);
}

static CUresult restore_onto(pid_t pid, CUcheckpointGpuPair *pairs, unsigned int count)
{
	CUcheckpointRestoreArgs args = {.gpuPairs = pairs, .gpuPairsCount = count};

	return cuCheckpointProcessRestore(pid, &args);
}

static void wrong_pairs(pid_t pid, const CUuuid *zero, const CUuuid *one)
{
	CUuuid none = {.bytes = {1}};
	CUcheckpointGpuPair partial[] = {{*zero, *one}};
	CUcheckpointGpuPair both_same[] = {{*zero, *one}, {*one, *one}};
	CUcheckpointGpuPair unknown[] = {{*zero, *one}, {*one, none}};
	CUcheckpointGpuPair three[] = {{*zero, *one}, {*one, *zero}, {none, *one}};

	T_IS(restore_onto(pid, partial, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(restore_onto(pid, both_same, 2), CUDA_ERROR_INVALID_VALUE);
	T_IS(restore_onto(pid, unknown, 2), CUDA_ERROR_INVALID_VALUE);
	T_IS(restore_onto(pid, three, 3), CUDA_ERROR_INVALID_VALUE);
	T_IS(restore_onto(pid, NULL, 2), CUDA_ERROR_INVALID_VALUE);
	T_WITNESS(pid, "CHECKPOINTED");
	T_EQ(t_witness_is_lost(pid), 0);
}

/* The parent may call cuInit only here: the children must be forked before it. */
static void other_gpu(uint64_t all_bytes)
{
	struct t_child child = start(&small);
	uint64_t taken_bytes = t_witness_bytes(child.pid, 0);
	CUuuid zero;
	CUuuid one;

	t_init_only();
	T_OK(cuDeviceGetUuid_v2(&zero, 0));
	T_OK(cuDeviceGetUuid_v2(&one, 1));
	t_suspend(child.pid);
	wrong_pairs(child.pid, &zero, &one);
	T_OK(restore_onto(child.pid, (CUcheckpointGpuPair[]){{zero, one}, {one, zero}}, 2));
	T_OK(t_unlock(child.pid));
	T_EQ(t_witness_bytes(child.pid, 0), 0);
	T_EQ(t_witness_bytes(child.pid, 1), taken_bytes);
	T_EQ(t_witness_free_bytes(1), all_bytes - taken_bytes);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
	T_EQ(t_witness_free_bytes(1), all_bytes);
}

/* In a process of its own, since the environment is read once. */
static void without_persistence(int fd, void *argument)
{
	struct t_child sleeper = start(&small);
	struct t_child other;

	(void)fd;
	(void)argument;
	T_SYS(setenv("STASIS_SIM_PERSISTENCE", "0", 1));
	t_suspend(sleeper.pid);
	T_IS(t_restore(sleeper.pid), CUDA_ERROR_NOT_INITIALIZED);
	T_WITNESS(sleeper.pid, "CHECKPOINTED");
	T_EQ(t_witness_is_lost(sleeper.pid), 0);
	other = start(&small);
	t_resume(sleeper.pid);
	t_say(sleeper.fd, 'V');
	t_hear(sleeper.fd, 'O');
	t_child_join(&sleeper);
	t_child_join(&other);
}

/* A context beside another process's, or any, as the compute mode has it; and identities of MIG instances. */
static void modes(int fd, void *mode)
{
	CUcontext context = NULL;
	CUuuid whole;
	CUuuid instance;
	int told = 0;

	(void)fd;
	T_SYS(setenv("STASIS_SIM_COMPUTE_MODE", mode, 1));
	T_SYS(setenv("STASIS_SIM_MIG", "1", 1));
	t_init_only();
	T_OK(cuDeviceGetAttribute(&told, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0));
	T_EQ(told, *(const char *)mode - '0');
	T_IS(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	if (told == CU_COMPUTEMODE_EXCLUSIVE_PROCESS)
		T_OK(cuDevicePrimaryCtxRetain(&context, 1));
	T_OK(cuDeviceGetUuid(&whole, 0));
	T_OK(cuDeviceGetUuid_v2(&instance, 0));
	T_TRUE(memcmp(&whole, &instance, sizeof(whole)) != 0);
}

static void compute_modes(void)
{
	static char prohibited[] = "2";
	static char exclusive[] = "3";
	struct t_child other = start(&small);
	struct t_child child = t_child_start(modes, exclusive);

	t_child_join(&child);
	t_child_kill(&other);
	child = t_child_start(modes, prohibited);
	t_child_join(&child);
}

int main(void)
{
	uint64_t all_bytes = 256 * T_MIB;
	struct t_child child;

	T_SYS(setenv("STASIS_SIM_DEVICES", "2", 1));
	T_SYS(setenv("STASIS_SIM_MEMORY", "256M", 1));
	child = t_child_start(without_persistence, NULL);
	t_child_join(&child);
	compute_modes();
	killed(all_bytes);
	no_room();
	other_gpu(all_bytes);
	return 0;
}
