/*
 * Description: legacy IPC of memory and events.
 */
#include <string.h>

#include "behaviour.h"
#include "check.h"
#include "child.h"
#include "device.h"
#include "gate.h"

#define BYTES (4 * T_MIB)

static CUdeviceptr ipc_open(CUipcMemHandle handle)
{
	CUdeviceptr address = 0;

	T_OK(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	return address;
}

/* The other process: opens what comes, checks seed 1, writes seed 2. */
static void open_and_answer(int fd, void *unused)
{
	CUipcMemHandle handle;
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	address = ipc_open(handle);
	t_verify(address, BYTES, 1);
	t_fill(address, BYTES, 2);
	t_say(fd, 'w');
	t_wait_end(fd);
	T_OK(cuIpcCloseMemHandle(address));
}

static void ipc_shares_bytes(void)
{
	struct t_child child = t_child_start(open_and_answer, NULL);
	CUipcMemHandle handle;
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(BYTES);
	t_fill(address, BYTES, 1);
	handle = t_ipc_handle(address);
	t_send(child.fd, &handle, sizeof(handle));
	t_hear(child.fd, 'w');
	t_verify(address, BYTES, 2);
	t_child_join(&child);
}

static void ipc_interior(void)
{
	(void)t_cuda();
	(void)t_ipc_handle(t_alloc(BYTES) + 512);
}

static void ipc_small_blocks(void)
{
	CUipcMemHandle first;
	CUipcMemHandle second;
	size_t different = 0;

	(void)t_cuda();
	first = t_ipc_handle(t_alloc(1024));
	second = t_ipc_handle(t_alloc(1024));
	for (size_t i = 0; i < sizeof(first.reserved); i++)
		if (first.reserved[i] != second.reserved[i])
			different++;
	T_EQ(different, 1);
}

static void ipc_of_mapping(void)
{
	CUipcMemHandle handle;
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(2 * T_BLOCK_BYTES, T_FD_TYPE);
	T_REFUSED(cuIpcGetMemHandle(&handle, vmm.address));
}

static void ipc_in_own_process(void)
{
	CUdeviceptr address = 0;
	CUipcMemHandle handle;

	(void)t_cuda();
	handle = t_ipc_handle(t_alloc(BYTES));
	T_REFUSED(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static void ipc_garbage(void)
{
	CUipcMemHandle handle = {0};
	CUdeviceptr address = 0;

	(void)t_cuda();
	T_REFUSED(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	T_REFUSED(cuIpcCloseMemHandle(t_alloc(BYTES)));
}

static void open_twice(int fd, void *unused)
{
	CUipcMemHandle handle;
	CUdeviceptr first;
	CUdeviceptr second;

	(void)unused;
	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	first = ipc_open(handle);
	second = ipc_open(handle);
	T_OK(cuIpcCloseMemHandle(first));
	t_verify(second, BYTES, 1);
	T_OK(cuIpcCloseMemHandle(second));
	t_say(fd, 'k');
}

static void ipc_opens_are_counted(void)
{
	struct t_child child = t_child_start(open_twice, NULL);
	CUipcMemHandle handle;
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(BYTES);
	t_fill(address, BYTES, 1);
	handle = t_ipc_handle(address);
	t_send(child.fd, &handle, sizeof(handle));
	t_hear(child.fd, 'k');
	t_child_join(&child);
}

static void free_opened(int fd, void *unused)
{
	CUipcMemHandle handle;

	(void)unused;
	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	T_REFUSED(cuMemFree_v2(ipc_open(handle)));
	t_say(fd, 'k');
}

static void ipc_is_closed_not_freed(void)
{
	struct t_child child = t_child_start(free_opened, NULL);
	CUipcMemHandle handle;

	(void)t_cuda();
	handle = t_ipc_handle(t_alloc(BYTES));
	t_send(child.fd, &handle, sizeof(handle));
	t_hear(child.fd, 'k');
	t_child_join(&child);
}

/* The other process waits on the event, and tells before and after whether it is reached. */
static void wait_for_event(int fd, void *unused)
{
	CUipcEventHandle handle;
	CUevent event = NULL;

	(void)unused;
	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	T_OK(cuIpcOpenEventHandle(&event, handle));
	T_IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	t_say(fd, 'n');
	T_OK(cuStreamWaitEvent(NULL, event, 0));
	T_OK(cuStreamSynchronize(NULL));
	T_OK(cuEventQuery(event));
	t_say(fd, 'r');
	t_wait_end(fd);
}

static void ipc_event(void)
{
	struct t_child child = t_child_start(wait_for_event, NULL);
	CUipcEventHandle handle;
	struct t_gate gate;
	CUevent event = NULL;
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	T_OK(cuIpcGetEventHandle(&handle, event));
	t_gate_close(&gate, stream);
	T_OK(cuEventRecord(event, stream));
	t_send(child.fd, &handle, sizeof(handle));
	t_hear(child.fd, 'n');
	t_gate_open(&gate);
	t_hear(child.fd, 'r');
	t_child_join(&child);
}

static void ipc_event_needs_flag(void)
{
	CUipcEventHandle handle;
	CUevent event = NULL;

	(void)t_cuda();
	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	T_REFUSED(cuIpcGetEventHandle(&handle, event));
}

static const struct t_behaviour behaviours[] = {
	{"ipc_shares_bytes", T_MEASURED, "two processes read and write the same memory",
	 ipc_shares_bytes},
	{"ipc_interior", T_MEASURED, "an address inside an allocation gives a handle",
	 ipc_interior},
	{"ipc_small_blocks", T_MEASURED,
	 "handles of two small allocations in a block differ in one byte", ipc_small_blocks},
	{"ipc_of_mapping", T_DOCUMENTED, "mapped memory has no IPC handle", ipc_of_mapping},
	{"ipc_in_own_process", T_DOCUMENTED, "a process cannot open its own handle",
	 ipc_in_own_process},
	{"ipc_garbage", T_DOCUMENTED, "a handle of zeros opens nothing, and only opened is closed",
	 ipc_garbage},
	{"ipc_opens_are_counted", T_DOCUMENTED, "memory opened twice is closed twice",
	 ipc_opens_are_counted},
	{"ipc_is_closed_not_freed", T_DOCUMENTED, "opened memory cannot be freed",
	 ipc_is_closed_not_freed},
	{"ipc_event", T_DOCUMENTED, "an event of one process holds a stream of another", ipc_event},
	{"ipc_event_needs_flag", T_DOCUMENTED,
	 "an event not made for other processes has no IPC handle", ipc_event_needs_flag},
};

T_BEHAVIOURS_MAIN(behaviours)
