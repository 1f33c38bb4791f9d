/*
 * Description: what a native checkpoint and restore do with memory of one process.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"

#define BYTES (8 * T_MIB)

/* A target's parts: what it sets up, does while CHECKPOINTED, and checks afterwards. */
struct part {
	void (*set_up)(void);
	void (*while_suspended)(void); /* NULL: nothing */
	void (*after)(void);
};

/* What the running part of a target works on; each process has one part. */
static struct {
	CUdeviceptr native;
	struct t_vmm vmm;
	volatile uint32_t *words;
	CUstream stream;
	CUevent event;
	CUgraphExec exec;
	int fd;
} my;

static void target_main(int fd, void *argument)
{
	const struct part *part = argument;
	char letter;

	(void)t_cuda();
	part->set_up();
	T_OK(cuCtxSynchronize());
	t_say(fd, 'r');
	while ((letter = t_hear_any(fd))) {
		if (letter == 's')
			part->while_suspended();
		else
			part->after();
		t_say(fd, 'k');
	}
}

/* Takes a target of this part through suspend and resume, and has it check itself. */
static void survives(struct part part)
{
	struct t_child target = t_child_start(target_main, &part);

	t_init_only();
	t_hear(target.fd, 'r');
	t_suspend(target.pid);
	if (part.while_suspended) {
		t_say(target.fd, 's');
		t_hear(target.fd, 'k');
	}
	t_resume(target.pid);
	t_say(target.fd, 'a');
	t_hear(target.fd, 'k');
	t_child_join(&target);
}

static void native_set_up(void)
{
	my.native = t_alloc(BYTES);
	t_fill(my.native, BYTES, 1);
}

static void native_after(void)
{
	t_verify(my.native, BYTES, 1);
	t_fill(my.native, BYTES, 2);
	t_verify(my.native, BYTES, 2);
	t_fill(t_alloc(BYTES), BYTES, 3);
}

static void native_survives(void)
{
	survives((struct part){.set_up = native_set_up, .after = native_after});
}

static void vmm_set_up(CUmemAllocationHandleType handle_types)
{
	my.vmm = t_vmm(BYTES, handle_types);
	t_fill(my.vmm.address, BYTES, 1);
}

static void private_set_up(void)
{
	vmm_set_up(CU_MEM_HANDLE_TYPE_NONE);
}

static void exportable_set_up(void)
{
	vmm_set_up(T_FD_TYPE);
}

static void exported_set_up(void)
{
	vmm_set_up(T_FD_TYPE);
	T_SYS(close(t_export(my.vmm.handle)));
}

static void vmm_after(void)
{
	t_verify(my.vmm.address, BYTES, 1);
	t_fill(my.vmm.address, BYTES, 2);
	t_verify(my.vmm.address, BYTES, 2);
	t_vmm_release(&my.vmm);
}

static void private_vmm_survives(void)
{
	survives((struct part){.set_up = private_set_up, .after = vmm_after});
}

static void exportable_vmm_survives(void)
{
	survives((struct part){.set_up = exportable_set_up, .after = vmm_after});
}

static void exported_vmm_survives(void)
{
	survives((struct part){.set_up = exported_set_up, .after = vmm_after});
}

static void first_export_after(void)
{
	CUdeviceptr address;
	int fd = t_export(my.vmm.handle);

	address = t_map(t_import(fd), BYTES);
	t_verify(address, BYTES, 1);
	t_fill(my.vmm.address, BYTES, 2);
	t_verify(address, BYTES, 2);
}

static void first_export_after_restore(void)
{
	survives((struct part){.set_up = exportable_set_up, .after = first_export_after});
}

static void open_export_set_up(void)
{
	vmm_set_up(T_FD_TYPE);
	my.fd = t_export(my.vmm.handle);
}

static void open_export_after(void)
{
	CUdeviceptr old = t_map(t_import(my.fd), BYTES);

	t_verify(my.vmm.address, BYTES, 1);
	t_fill(my.vmm.address, BYTES, 2);
	t_verify(old, BYTES, 1); /* what the owner writes now goes elsewhere */
}

static void open_export_splits(void)
{
	survives((struct part){.set_up = open_export_set_up, .after = open_export_after});
}

static void ipc_set_up(void)
{
	native_set_up();
	(void)t_ipc_handle(my.native);
}

static void ipc_handle_survives(void)
{
	survives((struct part){.set_up = ipc_set_up, .after = native_after});
}

static void pinned_set_up(void)
{
	void *memory = NULL;

	T_OK(cuMemHostAlloc(&memory, T_MIB, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	my.words = memory;
	my.words[0] = 55;
	my.words[1] = 1;
}

static void registered_set_up(void)
{
	void *memory =
		mmap(NULL, T_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	T_TRUE(memory != MAP_FAILED);
	T_OK(cuMemHostRegister_v2(memory, T_MIB, CU_MEMHOSTREGISTER_DEVICEMAP));
	my.words = memory;
	my.words[0] = 55;
	my.words[1] = 1;
}

static void host_while_suspended(void)
{
	T_EQ(my.words[0], 55);
	my.words[1] = 99;
}

static void host_after(void)
{
	T_EQ(my.words[0], 55);
	T_EQ(my.words[1], 99);
	T_OK(cuMemsetD32_v2((CUdeviceptr)(uintptr_t)my.words, 7, 1));
	T_OK(cuCtxSynchronize());
	T_EQ(my.words[0], 7);
}

static void pinned_survives(void)
{
	survives((struct part){.set_up = pinned_set_up,
			       .while_suspended = host_while_suspended,
			       .after = host_after});
}

static void registered_survives(void)
{
	survives((struct part){.set_up = registered_set_up,
			       .while_suspended = host_while_suspended,
			       .after = host_after});
}

static void objects_set_up(void)
{
	CUgraph graph = NULL;

	native_set_up();
	my.stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuEventCreate(&my.event, CU_EVENT_DISABLE_TIMING));
	T_OK(cuStreamBeginCapture_v2(my.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	T_OK(cuMemsetD32Async(my.native, 77, BYTES / 4, my.stream));
	T_OK(cuStreamEndCapture(my.stream, &graph));
	T_OK(cuGraphInstantiateWithFlags(&my.exec, graph, 0));
}

static void objects_after(void)
{
	uint32_t word = 0;

	t_verify(my.native, BYTES, 1);
	T_OK(cuGraphLaunch(my.exec, my.stream));
	T_OK(cuEventRecord(my.event, my.stream));
	T_OK(cuEventSynchronize(my.event));
	T_OK(cuMemcpyDtoH_v2(&word, my.native + BYTES - 4, 4));
	T_EQ(word, 77);
}

static void objects_survive(void)
{
	survives((struct part){.set_up = objects_set_up, .after = objects_after});
}

static const struct t_behaviour behaviours[] = {
	{"native_survives", T_MEASURED, "memory of cuMemAlloc: bytes and addresses stay",
	 native_survives},
	{"private_vmm_survives", T_MEASURED, "mapped memory that cannot be exported: bytes stay",
	 private_vmm_survives},
	{"exportable_vmm_survives", T_MEASURED, "mapped memory never exported: bytes stay",
	 exportable_vmm_survives},
	{"exported_vmm_survives", T_MEASURED,
	 "mapped memory exported, its descriptor closed again: bytes stay", exported_vmm_survives},
	{"first_export_after_restore", T_MEASURED,
	 "mapped memory can be exported for the first time after a restore",
	 first_export_after_restore},
	{"open_export_splits", T_MEASURED,
	 "a descriptor open in the owner still names the old memory, the owner has new",
	 open_export_splits},
	{"ipc_handle_survives", T_MEASURED, "memory with an IPC handle that nobody opened survives",
	 ipc_handle_survives},
	{"pinned_survives", T_MEASURED,
	 "page-locked memory is usable by the CPU all the time, and its bytes stay",
	 pinned_survives},
	{"registered_survives", T_MEASURED,
	 "registered memory is usable by the CPU all the time, and its bytes stay",
	 registered_survives},
	{"objects_survive", T_MEASURED, "streams, events and graphs work after a restore",
	 objects_survive},
};

T_BEHAVIOURS_MAIN(behaviours)
