/*
 * Description: a custom restore onto the other GPU shows its view there, takes that GPU's memory, and
 * brings every byte; refused pairs, and an operation given up before it begins, change nothing.
 */
#include <stdlib.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

static CUresult begin(pid_t pid, CUcheckpointGpuPair *pairs, unsigned int count,
		      CUcheckpointCustomStorageInfo **ret_info)
{
	CUcheckpointRestoreArgs args = {
		.gpuPairs = pairs,
		.gpuPairsCount = count,
		.customStorageInfo_out = ret_info,
	};

	return cuCheckpointProcessRestore(pid, &args);
}

/* Without GPU 1's context the view has nowhere to be; the target must be as it was. */
static void check_given_up(pid_t pid, CUcheckpointGpuPair *pairs)
{
	CUcheckpointCustomStorageInfo *info = NULL;

	T_OK(cuDevicePrimaryCtxRelease_v2(1));
	T_IS(begin(pid, pairs, 2, &info), CUDA_ERROR_INVALID_CONTEXT);
	T_WITNESS(pid, "CHECKPOINTED");
	T_EQ(t_witness_is_lost(pid), 0);
	T_EQ(t_witness_bytes(pid, 0), 0);
	T_EQ(t_witness_bytes(pid, 1), 0);
	t_custom_init();
}

int main(void)
{
	struct t_load load = {.devices = 1, .bytes = 8 * T_MIB};
	struct t_child child;
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointGpuPair pairs[2];
	struct t_store store;
	uint64_t taken_bytes;

	T_SYS(setenv("STASIS_SIM_DEVICES", "2", 1));
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	t_custom_init();
	taken_bytes = t_witness_bytes(child.pid, 0);
	t_custom_suspend(child.pid, &store);
	for (int i = 0; i < 2; i++) {
		T_OK(cuDeviceGetUuid_v2(&pairs[i].oldUuid, i));
		T_OK(cuDeviceGetUuid_v2(&pairs[i].newUuid, 1 - i));
	}
	T_IS(begin(child.pid, pairs, 1, &info), CUDA_ERROR_INVALID_VALUE);
	check_given_up(child.pid, pairs);
	T_OK(begin(child.pid, pairs, 2, &info));
	T_EQ(info->deviceCount, 1);
	T_EQ(t_custom_device(&info->perDeviceData[0]), 1);
	T_EQ(t_witness_bytes(child.pid, 1), taken_bytes);
	store.extents[0].uuid = pairs[0].newUuid;
	t_custom_load(info, &store);
	T_OK(t_custom_complete(info->handle));
	T_OK(t_unlock(child.pid));
	T_EQ(t_witness_bytes(child.pid, 0), 0);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
	t_custom_free(&store);
	return 0;
}
