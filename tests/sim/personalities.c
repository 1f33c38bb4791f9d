/*
 * Description: an older driver has no CustomStorage and takes its arguments for reserved bytes; one of
 * 12.8 does so with gpuPairs too; both still checkpoint natively.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

struct personality {
	const char *version;
	bool has_pairs;
	bool has_custom;
};

static CUresult restore_onto_itself(pid_t pid)
{
	CUcheckpointGpuPair pair;
	CUcheckpointRestoreArgs args = {.gpuPairs = &pair, .gpuPairsCount = 1};

	T_OK(cuDeviceGetUuid_v2(&pair.oldUuid, 0));
	pair.newUuid = pair.oldUuid;
	return cuCheckpointProcessRestore(pid, &args);
}

static void run_personality(int fd, void *argument)
{
	const struct personality *personality = argument;
	struct t_load load = {.devices = 1, .bytes = T_MIB};
	struct t_child child;
	CUcheckpointCustomStorageInfo *info = NULL;
	int version = 0;

	(void)fd;
	T_SYS(setenv("STASIS_SIM_CUDA", personality->version, 1));
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	t_custom_init();
	T_OK(cuDriverGetVersion(&version));
	T_EQ(version, atoi(personality->version)); /* NOLINT(cert-err34-c) */
	T_EQ(t_entry_or_null("cuCheckpointOperationComplete", 13040) != NULL,
	     personality->has_custom);
	T_OK(t_lock(child.pid));
	if (!personality->has_custom)
		T_IS(t_custom_begin_checkpoint(child.pid, &info), CUDA_ERROR_INVALID_VALUE);
	T_OK(t_checkpoint(child.pid));
	if (!personality->has_custom)
		T_IS(t_custom_begin_restore(child.pid, &info), CUDA_ERROR_INVALID_VALUE);
	T_IS(restore_onto_itself(child.pid),
	     personality->has_pairs ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	if (!personality->has_pairs)
		T_OK(t_restore(child.pid));
	T_OK(t_unlock(child.pid));
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
}

int main(void)
{
	static struct personality personalities[] = {
		{"12080", false, false},
		{"13000", true, false},
		{"13010", true, false},
		{"13040", true, true},
	};

	for (size_t i = 0; i < sizeof(personalities) / sizeof(personalities[0]); i++) {
		struct t_child child = t_child_start(run_personality, &personalities[i]);

		t_child_join(&child);
	}
	return 0;
}
