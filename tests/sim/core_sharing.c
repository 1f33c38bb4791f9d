/*
 * Description: memory, pools and events that two processes share: export descriptors that keep memory by
 * themselves, imports that cannot be exported again, legacy IPC handles, and what is given back.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"
#include "gate.h"

#define BYTES (4 * T_BLOCK_BYTES)

static void import_in_child(int fd, void *unused)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	int shared = -1;
	int refused = -1;

	(void)unused;
	(void)t_cuda();
	shared = t_receive_fd(fd);
	handle = t_import(shared);
	address = t_map(handle, BYTES);
	t_verify(address, BYTES, 1);
	t_fill(address, BYTES, 2);
	T_IS(cuMemExportToShareableHandle(&refused, handle, T_FD_TYPE, 0),
	     CUDA_ERROR_INVALID_VALUE);
	T_SYS(close(shared));
	t_say(fd, 'f');
	t_hear(fd, 'e');
}

static void descriptors(void)
{
	struct t_child child = t_child_start(import_in_child, NULL);
	struct t_vmm vmm;
	struct stat status;
	CUdeviceptr address;
	size_t before;
	int shared;
	int refused = -1;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	t_fill(vmm.address, BYTES, 1);
	shared = t_export(vmm.handle);
	T_SYS(fstat(shared, &status));
	T_TRUE(!S_ISREG(status.st_mode));
	t_send_fd(child.fd, shared);
	t_hear(child.fd, 'f');
	t_verify(vmm.address, BYTES, 2);
	t_say(child.fd, 'e');
	t_child_join(&child);

	before = t_free_bytes();
	t_vmm_release(&vmm);
	T_EQ(t_free_bytes(), before); /* the descriptor alone keeps it */
	vmm.handle = t_import(shared);
	address = t_map(vmm.handle, BYTES);
	t_verify(address, BYTES, 2);
	T_IS(cuMemExportToShareableHandle(&refused, vmm.handle, T_FD_TYPE, 0),
	     CUDA_ERROR_INVALID_VALUE);
	T_SYS(close(shared));
	T_OK(cuMemUnmap(address, BYTES));
	T_OK(cuMemRelease(vmm.handle));
	T_EQ(t_free_bytes(), before + BYTES);
	T_REFUSED(cuMemImportFromShareableHandle(&vmm.handle, (void *)(intptr_t)STDIN_FILENO,
						 T_FD_TYPE));
}

struct names {
	CUipcMemHandle first;
	CUipcMemHandle second;
	CUipcEventHandle event;
};

static void open_in_child(int fd, void *unused)
{
	struct names names;
	CUdeviceptr first = 0;
	CUdeviceptr again = 0;
	CUdeviceptr second = 0;
	CUevent event = NULL;

	(void)unused;
	t_receive(fd, &names, sizeof(names));
	(void)t_cuda();
	T_OK(cuIpcOpenMemHandle_v2(&first, names.first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	T_OK(cuIpcOpenMemHandle_v2(&again, names.first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	T_EQ(first, again);
	T_OK(cuIpcOpenMemHandle_v2(&second, names.second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	T_OK(cuIpcOpenEventHandle(&event, names.event));
	T_IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	T_OK(cuStreamWaitEvent(NULL, event, 0));
	t_say(fd, 'w');
	T_OK(cuStreamSynchronize(NULL));
	T_OK(cuEventQuery(event));
	t_verify(first, 1024, 1);
	t_verify(second, 1024, 2);
	t_fill(second, 1024, 3);
	T_IS(cuMemFree_v2(first), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuIpcCloseMemHandle(first));
	T_OK(cuIpcCloseMemHandle(first));
	T_IS(cuIpcCloseMemHandle(first), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuIpcCloseMemHandle(second));
	T_OK(cuEventDestroy_v2(event));
}

static size_t difference(const CUipcMemHandle *left, const CUipcMemHandle *right)
{
	size_t count = 0;

	for (size_t i = 0; i < sizeof(left->reserved); i++)
		count += left->reserved[i] != right->reserved[i];
	return count;
}

static void legacy_ipc(void)
{
	struct t_child child = t_child_start(open_in_child, NULL);
	CUipcMemHandle interior;
	struct names names;
	struct t_gate gate;
	CUdeviceptr first;
	CUdeviceptr second;
	CUdeviceptr own = 0;
	CUstream stream;
	CUevent event = NULL;

	(void)t_cuda();
	first = t_alloc(1024);
	second = t_alloc(1024);
	t_fill(first, 1024, 1);
	T_OK(cuIpcGetMemHandle(&names.first, first));
	T_OK(cuIpcGetMemHandle(&names.second, second));
	T_OK(cuIpcGetMemHandle(&interior, second + 100));
	T_EQ(memcmp(&interior, &names.second, sizeof(interior)), 0);
	T_EQ(difference(&names.first, &names.second), 1);
	T_REFUSED(cuIpcOpenMemHandle_v2(&own, names.first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	t_gate_close(&gate, stream);
	T_OK(cuEventRecord(event, stream));
	T_OK(cuIpcGetEventHandle(&names.event, event));
	t_send(child.fd, &names, sizeof(names));
	t_hear(child.fd, 'w');
	t_fill(second, 1024, 2);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	t_child_join(&child);
	t_verify(second, 1024, 3);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "ipc") == 0)
		legacy_ipc();
	else
		descriptors();
	return 0;
}
