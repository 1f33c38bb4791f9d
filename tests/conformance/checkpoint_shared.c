/*
 * Description: memory that a native checkpoint cannot carry, and what saves it.
 */
#include <stdint.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"

#define BYTES (4 * T_MIB)

/* Says 'r', then checks seed 1 at each 'v'. */
static void serve(int fd, CUdeviceptr address)
{
	T_OK(cuCtxSynchronize());
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'v') {
		t_verify(address, BYTES, 1);
		t_say(fd, 'k');
	}
}

static void demand_bytes(const struct t_child *target)
{
	t_say(target->fd, 'v');
	t_hear(target->fd, 'k');
}

static void exporting_target(int fd, void *unused)
{
	struct t_vmm vmm;
	int exported;

	(void)unused;
	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	t_fill(vmm.address, BYTES, 1);
	exported = t_export(vmm.handle);
	t_send_fd(fd, exported);
	T_SYS(close(exported));
	serve(fd, vmm.address);
}

static void importing_target(int fd, void *unused)
{
	CUmemGenericAllocationHandle handle;
	int received;

	(void)unused;
	(void)t_cuda();
	received = t_receive_fd(fd);
	handle = t_import(received);
	T_SYS(close(received));
	serve(fd, t_map(handle, BYTES));
}

/* Locks and checkpoints both, restores and unlocks the first; gives the second's restore result. */
static CUresult cycle_of_two(const struct t_child *first, const struct t_child *second)
{
	CUresult result;

	T_OK(t_lock(first->pid));
	T_OK(t_lock(second->pid));
	T_OK(t_checkpoint(first->pid));
	T_OK(t_checkpoint(second->pid));
	T_OK(t_restore(first->pid));
	result = t_restore(second->pid);
	T_OK(t_unlock(first->pid));
	return result;
}

static void importer_is_lost(void)
{
	struct t_child exporter = t_child_start(exporting_target, NULL);
	struct t_child importer = t_child_start(importing_target, NULL);
	int fd;

	t_init_only();
	fd = t_receive_fd(exporter.fd);
	t_hear(exporter.fd, 'r');
	t_send_fd(importer.fd, fd);
	T_SYS(close(fd));
	t_hear(importer.fd, 'r');
	T_IS(cycle_of_two(&exporter, &importer), CUDA_ERROR_NOT_SUPPORTED);
	T_IS(t_unlock(importer.pid), CUDA_ERROR_ILLEGAL_STATE);
	demand_bytes(&exporter);
	t_child_join(&exporter);
	t_child_kill(&importer);
}

static void ipc_owner_target(int fd, void *unused)
{
	CUipcMemHandle handle;
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	address = t_alloc(BYTES);
	t_fill(address, BYTES, 1);
	handle = t_ipc_handle(address);
	t_send(fd, &handle, sizeof(handle));
	serve(fd, address);
}

static void ipc_opener_target(int fd, void *unused)
{
	CUipcMemHandle handle;
	CUdeviceptr address = 0;

	(void)unused;
	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	T_OK(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	serve(fd, address);
}

static void ipc_opener_is_lost(void)
{
	struct t_child owner = t_child_start(ipc_owner_target, NULL);
	struct t_child opener = t_child_start(ipc_opener_target, NULL);
	CUipcMemHandle handle;

	t_init_only();
	t_receive(owner.fd, &handle, sizeof(handle));
	t_hear(owner.fd, 'r');
	t_send(opener.fd, &handle, sizeof(handle));
	t_hear(opener.fd, 'r');
	T_IS(cycle_of_two(&owner, &opener), CUDA_ERROR_INVALID_VALUE);
	T_IS(t_unlock(opener.pid), CUDA_ERROR_ILLEGAL_STATE);
	demand_bytes(&owner);
	t_child_join(&owner);
	t_child_kill(&opener);
}

static void host_numa_target(int fd, void *unused)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle handle = 0;

	(void)unused;
	(void)t_cuda();
	prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
	T_OK(cuMemCreate(&handle, BYTES, &prop, 0));
	t_say(fd, 'r');
	t_wait_end(fd);
}

static void host_numa_is_lost(void)
{
	struct t_child target = t_child_start(host_numa_target, NULL);

	t_init_only();
	t_hear(target.fd, 'r');
	t_suspend(target.pid);
	T_IS(t_restore(target.pid), CUDA_ERROR_UNKNOWN);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_CHECKPOINTED);
	T_IS(t_unlock(target.pid), CUDA_ERROR_ILLEGAL_STATE);
	t_child_kill(&target);
}

/*
 * Captures a graph over its memory, sends the descriptor away, lets the memory go, and after the restore
 * takes it back at the same address.
 */
static void releasing_target(int fd, void *unused)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;
	CUdeviceptr copy;
	struct t_vmm vmm;
	CUstream stream;
	int exported;

	(void)unused;
	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	copy = t_alloc(BYTES);
	t_fill(vmm.address, BYTES, 1);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_OK(cuMemcpyDtoDAsync_v2(copy, vmm.address, BYTES, stream));
	T_OK(cuStreamEndCapture(stream, &graph));
	T_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	exported = t_export(vmm.handle);
	t_send_fd(fd, exported);
	T_SYS(close(exported));
	t_vmm_release(&vmm);
	t_say(fd, 'r');
	vmm.handle = t_import(t_receive_fd(fd));
	T_OK(cuMemMap(vmm.address, BYTES, 0, vmm.handle, 0));
	T_OK(cuMemSetAccess(vmm.address, BYTES, &access, 1));
	T_OK(cuGraphLaunch(exec, stream));
	T_OK(cuStreamSynchronize(stream));
	t_verify(copy, BYTES, 1);
	t_say(fd, 'k');
	t_wait_end(fd);
}

static void released_memory_comes_back(void)
{
	struct t_child target = t_child_start(releasing_target, NULL);
	int fd;

	t_init_only();
	fd = t_receive_fd(target.fd);
	t_hear(target.fd, 'r');
	t_suspend(target.pid);
	t_resume(target.pid);
	t_send_fd(target.fd, fd);
	t_hear(target.fd, 'k');
	t_child_join(&target);
}

static void native_target(int fd, void *unused)
{
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	address = t_alloc(BYTES);
	t_fill(address, BYTES, 1);
	serve(fd, address);
}

static CUresult restore_with(pid_t pid, CUcheckpointGpuPair *pairs, unsigned int count)
{
	CUcheckpointRestoreArgs args = {.gpuPairs = pairs, .gpuPairsCount = count};

	return cuCheckpointProcessRestore(pid, &args);
}

static void gpu_pairs_name_all(void)
{
	CUcheckpointGpuPair pairs[2];
	struct t_child target;
	int version = 0;

	t_ask_devices(2);
	target = t_child_start(native_target, NULL);
	t_init_only();
	t_need_devices(2);
	T_OK(cuDriverGetVersion(&version));
	if (version < 13000)
		t_skip("needs driver: GPU pairs come with CUDA 13.0, this driver is %d", version);
	T_OK(cuDeviceGetUuid_v2(&pairs[0].oldUuid, 0));
	T_OK(cuDeviceGetUuid_v2(&pairs[0].newUuid, 1));
	pairs[1].oldUuid = pairs[0].newUuid;
	pairs[1].newUuid = pairs[0].oldUuid;
	t_hear(target.fd, 'r');
	t_suspend(target.pid);
	T_IS(restore_with(target.pid, pairs, 1), CUDA_ERROR_INVALID_VALUE);
	T_OK(restore_with(target.pid, pairs, 2));
	T_OK(t_unlock(target.pid));
	demand_bytes(&target);
	t_child_join(&target);
}

static const struct t_behaviour behaviours[] = {
	{"importer_is_lost", T_MEASURED,
	 "an importer of shared memory is checkpointed, its restore is NOT_SUPPORTED for good",
	 importer_is_lost},
	{"ipc_opener_is_lost", T_MEASURED,
	 "an opener of IPC memory is checkpointed, its restore is INVALID_VALUE for good",
	 ipc_opener_is_lost},
	{"host_numa_is_lost", T_MEASURED,
	 "a process with HOST_NUMA memory is checkpointed, its restore is UNKNOWN for good",
	 host_numa_is_lost},
	{"released_memory_comes_back", T_MEASURED,
	 "memory kept by a descriptor elsewhere is mapped again after a restore; graphs run on it",
	 released_memory_comes_back},
	{"gpu_pairs_name_all", T_MEASURED,
	 "a restore onto other devices names every device of the process", gpu_pairs_name_all},
};

T_BEHAVIOURS_MAIN(behaviours)
