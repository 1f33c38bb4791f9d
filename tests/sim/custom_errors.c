/*
 * Description: CustomStorage calls that cannot be met are refused with the target as it was: no context,
 * no cuInit, a capturing stream, a second complete, bytes that went the native way; a process with
 * nothing on any GPU is an operation without extents.
 */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

static void check_needs(pid_t pid)
{
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcontext context;

	T_IS(t_custom_begin_checkpoint(pid, &info), CUDA_ERROR_NOT_INITIALIZED);
	T_WITNESS(pid, "LOCKED");
	t_init_only();
	T_IS(t_custom_begin_checkpoint(pid, &info), CUDA_ERROR_INVALID_CONTEXT);
	T_WITNESS(pid, "LOCKED");
	T_OK(cuDevicePrimaryCtxRetain(&context, 0));
	T_OK(cuCtxSetCurrent(context));
	T_IS(t_custom_begin_checkpoint(getpid(), &info), CUDA_ERROR_NOT_SUPPORTED);
	T_IS(t_custom_complete(NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void check_capture(pid_t pid, struct t_store *ret_store)
{
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointOperationHandle handle;
	CUgraph graph = NULL;
	CUstream stream;

	T_OK(t_custom_begin_checkpoint(pid, &info));
	stream = info->perDeviceData[0].stream;
	handle = info->handle;
	t_custom_save(info, ret_store);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	T_IS(t_custom_complete(handle), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_WITNESS(pid, "OPERATING");
	T_OK(cuStreamEndCapture(stream, &graph));
	T_OK(t_custom_complete(handle));
	T_IS(t_custom_complete(handle), CUDA_ERROR_INVALID_HANDLE);
	T_WITNESS(pid, "CHECKPOINTED");
}

/* Views end with the operation. */
static void check_views_end(pid_t pid, const struct t_store *store)
{
	CUcheckpointCustomStorageInfo *info = NULL;
	CUdeviceptr view;
	uint32_t word;

	T_OK(t_custom_begin_restore(pid, &info));
	view = info->perDeviceData[0].devPtr;
	t_custom_load(info, store);
	T_OK(t_custom_complete(info->handle));
	T_REFUSED(cuMemcpyDtoH_v2(&word, view, sizeof(word)));
	T_OK(t_unlock(pid));
}

static void check_native_way(pid_t pid)
{
	CUcheckpointCustomStorageInfo *info = NULL;

	T_OK(t_lock(pid));
	T_OK(t_checkpoint(pid));
	T_IS(t_custom_begin_restore(pid, &info), CUDA_ERROR_ILLEGAL_STATE);
	T_WITNESS(pid, "CHECKPOINTED");
	t_resume(pid);
}

static void check_empty(pid_t pid)
{
	CUcheckpointCustomStorageInfo *info = NULL;

	T_OK(t_lock(pid));
	T_OK(t_custom_begin_checkpoint(pid, &info));
	T_EQ(info->deviceCount, 0);
	T_OK(t_custom_complete(info->handle));
	T_WITNESS(pid, "CHECKPOINTED");
	T_OK(t_custom_begin_restore(pid, &info));
	T_EQ(info->deviceCount, 0);
	T_OK(t_custom_complete(info->handle));
	T_OK(t_unlock(pid));
}

int main(void)
{
	struct t_load load = {.devices = 1, .bytes = 4 * T_MIB};
	struct t_load nothing = {.devices = 0};
	struct t_child child = t_child_start(t_load_run, &load);
	struct t_child empty = t_child_start(t_load_run, &nothing);
	struct t_store store;

	t_hear(child.fd, 'R');
	t_hear(empty.fd, 'R');
	T_OK(t_lock(child.pid));
	check_needs(child.pid);
	check_capture(child.pid, &store);
	check_views_end(child.pid, &store);
	check_native_way(child.pid);
	check_empty(empty.pid);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
	t_child_join(&empty);
	t_custom_free(&store);
	return 0;
}
