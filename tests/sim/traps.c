/*
 * Description: the driver's traps: memory that it lets itself be checkpointed with and then cannot bring
 * back (imported, opened by IPC, HOST_NUMA) loses the process at restore; managed memory is refused at
 * the checkpoint; an export descriptor that stays open names the old memory afterwards.
 */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

#define BYTES T_BLOCK_BYTES
#define SEED 5

/* Exports by descriptor and by IPC handle, in one process. */
static void run_owner(int fd, void *argument)
{
	struct t_vmm vmm;
	CUdeviceptr legacy;
	CUipcMemHandle handle;
	int export_fd;

	(void)argument;
	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	legacy = t_alloc(BYTES);
	t_fill(vmm.address, BYTES, SEED);
	t_fill(legacy, BYTES, SEED);
	handle = t_ipc_handle(legacy);
	export_fd = t_export(vmm.handle);
	t_send_fd(fd, export_fd);
	(void)close(export_fd);
	t_send(fd, &handle, sizeof(handle));
	while (t_hear_any(fd) == 'V') {
		t_verify(vmm.address, BYTES, SEED);
		t_verify(legacy, BYTES, SEED);
		t_say(fd, 'O');
	}
}

static void run_importer(int fd, void *argument)
{
	int import_fd;
	CUdeviceptr address;

	(void)argument;
	(void)t_cuda();
	import_fd = t_receive_fd(fd);
	address = t_map(t_import(import_fd), BYTES);
	(void)close(import_fd);
	t_verify(address, BYTES, SEED);
	t_say(fd, 'R');
	t_wait_end(fd);
}

static void run_opener(int fd, void *argument)
{
	CUipcMemHandle handle;
	CUdeviceptr address = 0;

	(void)argument;
	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	T_OK(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	t_verify(address, BYTES, SEED);
	t_say(fd, 'R');
	t_wait_end(fd);
}

static void is_lost(pid_t pid, CUresult restore)
{
	T_IS(t_restore(pid), restore);
	T_EQ(t_state(pid), CU_PROCESS_STATE_CHECKPOINTED);
	T_EQ(t_witness_is_lost(pid), 1);
	T_IS(t_unlock(pid), CUDA_ERROR_ILLEGAL_STATE);
	T_WITNESS(pid, "CHECKPOINTED");
}

static void shared(int fd, void *argument)
{
	struct t_child owner = t_child_start(run_owner, NULL);
	struct t_child importer = t_child_start(run_importer, NULL);
	struct t_child opener = t_child_start(run_opener, NULL);
	CUipcMemHandle handle;
	int export_fd = t_receive_fd(owner.fd);

	(void)fd;
	(void)argument;
	t_send_fd(importer.fd, export_fd);
	(void)close(export_fd);
	t_receive(owner.fd, &handle, sizeof(handle));
	t_send(opener.fd, &handle, sizeof(handle));
	t_hear(importer.fd, 'R');
	t_hear(opener.fd, 'R');
	t_suspend(owner.pid);
	t_suspend(importer.pid);
	t_suspend(opener.pid);
	T_EQ(t_driver_descriptors(importer.pid), 0);
	t_resume(owner.pid);
	is_lost(importer.pid, CUDA_ERROR_NOT_SUPPORTED);
	is_lost(opener.pid, CUDA_ERROR_INVALID_VALUE);
	t_say(owner.fd, 'V');
	t_hear(owner.fd, 'O');
	t_child_kill(&importer);
	t_child_kill(&opener);
	t_child_join(&owner);
}

static void run_host_numa(int fd, void *argument)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;

	(void)argument;
	(void)t_cuda();
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	prop.location.id = 0;
	T_OK(cuMemCreate(&handle, BYTES, &prop, 0));
	t_say(fd, 'R');
	t_wait_end(fd);
}

static void host_numa(int fd, void *argument)
{
	struct t_child child = t_child_start(run_host_numa, NULL);

	(void)fd;
	(void)argument;
	t_hear(child.fd, 'R');
	t_suspend(child.pid);
	is_lost(child.pid, CUDA_ERROR_UNKNOWN);
	t_child_kill(&child);
}

static void run_managed(int fd, void *argument)
{
	CUdeviceptr address = 0;

	(void)argument;
	(void)t_cuda();
	T_OK(cuMemAllocManaged(&address, BYTES, CU_MEM_ATTACH_GLOBAL));
	t_fill(address, BYTES, SEED);
	t_say(fd, 'R');
	while (t_hear_any(fd) == 'V') {
		t_verify(address, BYTES, SEED);
		t_say(fd, 'O');
	}
}

static void managed(int fd, void *argument)
{
	struct t_child child = t_child_start(run_managed, NULL);
	CUcheckpointCustomStorageInfo *info = NULL;

	(void)fd;
	(void)argument;
	t_hear(child.fd, 'R');
	T_OK(t_lock(child.pid));
	T_IS(t_checkpoint(child.pid), CUDA_ERROR_NOT_SUPPORTED);
	T_WITNESS(child.pid, "LOCKED");
	t_custom_init();
	T_IS(t_custom_begin_checkpoint(child.pid, &info), CUDA_ERROR_NOT_SUPPORTED);
	T_WITNESS(child.pid, "LOCKED");
	T_OK(t_unlock(child.pid));
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
}

/* The descriptor stays open in its own process, over two kinds of checkpoint. */
static void run_keeper(int fd, void *argument)
{
	struct t_vmm vmm;
	CUdeviceptr old;
	int export_fd;

	(void)argument;
	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	t_fill(vmm.address, BYTES, SEED);
	export_fd = t_export(vmm.handle);
	t_say(fd, 'R');
	t_hear(fd, 'V');
	old = t_map(t_import(export_fd), BYTES);
	t_verify(vmm.address, BYTES, SEED);
	t_fill(vmm.address, BYTES, SEED + 1);
	t_verify(old, BYTES, SEED);
	t_verify(vmm.address, BYTES, SEED + 1);
	t_say(fd, 'O');
	t_wait_end(fd);
}

static void kept_over_native(int fd, void *argument)
{
	struct t_child child = t_child_start(run_keeper, NULL);
	uint64_t free_bytes;

	(void)fd;
	(void)argument;
	t_hear(child.fd, 'R');
	free_bytes = t_witness_free_bytes(0) + t_witness_bytes(child.pid, 0);
	t_suspend(child.pid);
	T_EQ(t_witness_free_bytes(0), free_bytes - BYTES);
	t_resume(child.pid);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_kill(&child);
}

static void kept_over_custom(int fd, void *argument)
{
	struct t_child child = t_child_start(run_keeper, NULL);
	struct t_store store;

	(void)fd;
	(void)argument;
	t_hear(child.fd, 'R');
	t_custom_init();
	t_custom_suspend(child.pid, &store);
	t_custom_resume(child.pid, &store);
	t_custom_free(&store);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_kill(&child);
}

/* Each in a process of its own: some call cuInit, and nothing can be forked from such a one. */
int main(void)
{
	static void (*const scenarios[])(int fd, void *argument) = {
		shared, host_numa, managed, kept_over_native, kept_over_custom,
	};

	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		struct t_child child = t_child_start(scenarios[i], NULL);

		t_child_join(&child);
	}
	return 0;
}
