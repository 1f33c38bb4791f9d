/*
 * Description: what the simulator decides about multicast: sizes are rounded up, an object lives as long as
 * anything names it, members of dead processes are bound no more, a process that has an object is not
 * checkpointed, and a machine can be without.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "gate.h"

#define BYTES T_BLOCK_BYTES
#define COUNT (BYTES / sizeof(uint32_t))
#define CAPACITY (512 * T_MIB)

static CUmemGenericAllocationHandle object_make(unsigned device_count)
{
	CUmulticastObjectProp prop = {
		.numDevices = device_count, .size = BYTES, .handleTypes = T_FD_TYPE};
	CUmemGenericAllocationHandle object = 0;

	T_OK(cuMulticastCreate(&object, &prop));
	for (unsigned i = 0; i < device_count; i++)
		T_OK(cuMulticastAddDevice(object, (CUdevice)i));
	return object;
}

static CUmemGenericAllocationHandle memory_make(int device, size_t bytes)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle memory = 0;

	prop.location.id = device;
	T_OK(cuMemCreate(&memory, bytes, &prop, 0));
	return memory;
}

static void refusals(void)
{
	CUmemGenericAllocationHandle object = object_make(2);
	CUmemGenericAllocationHandle memory = memory_make(0, BYTES);
	CUmemAccessDesc host = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAllocationProp prop;
	CUdeviceptr address;

	T_IS(cuMulticastAddDevice(memory, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastAddDevice(object, 8), CUDA_ERROR_INVALID_DEVICE);
	T_IS(cuMulticastAddDevice(object, 2), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMulticastAddDevice(object, 1));
	T_IS(cuMulticastBindMem(object, 0, object, 0, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastBindMem(object, 4096, memory, 0, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastBindMem(object, 0, memory, 0, 2 * BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastBindMem(object, CAPACITY, memory, 0, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastBindMem(object, 0, memory, 0, BYTES, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastBindMem_v2(object, 1, 0, memory, 0, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastBindMem_v2(object, -1, 0, memory, 0, BYTES, 0), CUDA_ERROR_INVALID_DEVICE);
	T_OK(cuMulticastBindMem_v2(object, 0, 0, memory, 0, BYTES, 0));
	T_IS(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMulticastUnbind(object, 1, 0, BYTES), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemGetAllocationPropertiesFromHandle(&prop, object), CUDA_ERROR_INVALID_VALUE);
	/* With device 1's part missing nothing can be written, and nothing is. */
	address = t_map(object, BYTES);
	host.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
	T_IS(cuMemSetAccess(address, BYTES, &host, 1), CUDA_ERROR_NOT_SUPPORTED);
	T_OK(cuMemUnmap(address, BYTES));
	T_OK(cuMemRelease(memory));
	T_OK(cuMemRelease(object));
}

/* What is asked for is rounded up, and there is room behind it. */
static void rounding(void)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = memory_make(0, 2 * BYTES);
	CUdeviceptr member = t_map(memory, 2 * BYTES);
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr address = t_reserve(2 * BYTES);

	T_OK(cuMulticastBindMem(object, CAPACITY - 2 * BYTES, memory, 0, 2 * BYTES, 0));
	T_IS(cuMemMap(address, 2 * BYTES, CAPACITY - BYTES, object, 0), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemMap(address, 2 * BYTES, CAPACITY - 2 * BYTES, object, 0));
	T_OK(cuMemSetAccess(address, 2 * BYTES, &access, 1));
	t_fill(address, 2 * BYTES, 1);
	t_verify(member, 2 * BYTES, 1);
	/* Copies out of the object, and from one place in it to another. */
	T_OK(cuMemcpyDtoD_v2(address + BYTES, address, BYTES));
	t_verify(member + BYTES, BYTES, 1);
	t_verify(address, BYTES, 1);
	T_OK(cuMemUnmap(address, 2 * BYTES));
	T_OK(cuMemUnmap(member, 2 * BYTES));
	T_OK(cuMemRelease(object));
	T_OK(cuMemRelease(memory));
}

/* Handles, mappings and export descriptors keep an object; what is bound keeps its memory. */
static void lifetimes(void)
{
	size_t before = t_free_bytes();
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = memory_make(0, BYTES);
	CUmemGenericAllocationHandle again = 0;
	CUdeviceptr address;
	int fd;

	T_OK(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0));
	T_OK(cuMemRelease(memory));
	T_EQ(before - t_free_bytes(), BYTES);
	address = t_map(object, BYTES);
	T_OK(cuMemRelease(object));
	T_IS(cuMulticastAddDevice(object, 0), CUDA_ERROR_INVALID_VALUE);
	t_fill(address, BYTES, 2);
	t_verify(address, BYTES, 2);
	T_OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address)); /* NOLINT */
	fd = t_export(again);
	T_OK(cuMemUnmap(address, BYTES));
	T_OK(cuMemRelease(again));
	/* Nobody in this process names it, so what this process had bound is free. */
	T_EQ(t_free_bytes(), before);
	object = t_import(fd);
	T_SYS(close(fd));
	T_IS(cuMemExportToShareableHandle(&fd, object, T_FD_TYPE, 0), CUDA_ERROR_INVALID_VALUE);
	memory = memory_make(0, BYTES);
	T_OK(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0));
	T_OK(cuMulticastUnbind(object, 0, 0, BYTES));
	T_OK(cuMemRelease(memory));
	T_OK(cuMemRelease(object));
	T_EQ(t_free_bytes(), before);
}

/* As long as a second import of it lives, nothing is unbound; with the last of both, everything is. */
static void second_imports(void)
{
	size_t before = t_free_bytes();
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = memory_make(0, BYTES);
	int fd = t_export(object);
	CUmemGenericAllocationHandle second = t_import(fd);

	T_SYS(close(fd));
	T_OK(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0));
	T_OK(cuMemRelease(memory));
	T_OK(cuMemRelease(object));
	T_EQ(before - t_free_bytes(), BYTES);
	T_OK(cuMemRelease(second));
	T_EQ(t_free_bytes(), before);
}

/* Binds device 1's part, and is killed. */
static void bind_and_wait(int fd, void *unused)
{
	CUmemGenericAllocationHandle object;

	(void)unused;
	(void)t_cuda();
	object = t_import(t_receive_fd(fd));
	T_OK(cuMulticastBindMem(object, 0, memory_make(1, BYTES), 0, BYTES, 0));
	t_say(fd, 'b');
	t_wait_end(fd);
}

static void deaths(struct t_child *child)
{
	CUmemGenericAllocationHandle object = object_make(2);
	CUmemGenericAllocationHandle memory = memory_make(0, BYTES);
	CUmemGenericAllocationHandle other = memory_make(1, BYTES);
	CUdeviceptr member = t_map(memory, BYTES);
	CUdeviceptr address = t_map(object, BYTES);

	T_OK(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0));
	t_send_fd(child->fd, t_export(object));
	t_hear(child->fd, 'b');
	T_IS(cuMulticastBindMem(object, 0, other, 0, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	t_fill(address, BYTES, 3);
	t_child_kill(child);
	T_OK(cuMulticastBindMem(object, 0, other, 0, BYTES, 0));
	t_fill(address, BYTES, 4);
	t_verify(member, BYTES, 4);
	T_OK(cuMemUnmap(address, BYTES));
	T_OK(cuMemRelease(object));
}

/* With a part of the team unbound nothing is written at all; the fault stays with the context. */
static void incomplete(void)
{
	CUmemGenericAllocationHandle object = object_make(2);
	CUdeviceptr address = t_map(object, BYTES);

	T_OK(cuMulticastBindMem(object, 0, memory_make(0, BYTES), 0, BYTES, 0));
	(void)cuMemsetD32_v2(address, 1, COUNT);
	T_IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void held_object(int fd, void *unused)
{
	CUmemGenericAllocationHandle object;
	int exported;

	(void)unused;
	(void)t_cuda();
	object = object_make(1);
	exported = t_export(object);
	t_say(fd, 'h');
	t_hear(fd, 'r');
	T_OK(cuMemRelease(object));
	t_say(fd, 'e');
	t_hear(fd, 'c');
	T_SYS(close(exported));
	t_say(fd, 'f');
	t_wait_end(fd);
}

static void is_refused(pid_t pid)
{
	CUcheckpointCheckpointArgs args;

	memset(&args, 0, sizeof(args));
	T_OK(t_lock(pid));
	T_IS(cuCheckpointProcessCheckpoint(pid, &args), CUDA_ERROR_NOT_SUPPORTED);
	T_EQ(t_state(pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(pid));
}

/* A handle keeps the object there, and so does an export descriptor alone. */
static void checkpoints(struct t_child *child)
{
	t_hear(child->fd, 'h');
	is_refused(child->pid);
	t_say(child->fd, 'r');
	t_hear(child->fd, 'e');
	is_refused(child->pid);
	t_say(child->fd, 'c');
	t_hear(child->fd, 'f');
	t_suspend(child->pid);
	t_resume(child->pid);
	t_child_join(child);
}

#define TEAM_DEVICES 8

/* Half of the team: four devices of this process, with two bindings each. */
static void bind_half(CUmemGenericAllocationHandle object, int first, CUdeviceptr ret_members[])
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	for (int i = 0; i < TEAM_DEVICES / 2; i++)
		T_OK(cuMulticastAddDevice(object, first + i));
	for (int i = 0; i < TEAM_DEVICES / 2; i++) {
		CUmemGenericAllocationHandle memory = memory_make(first + i, 2 * BYTES);

		ret_members[i] = t_map(memory, 2 * BYTES);
		access.location.id = first + i;
		T_OK(cuMemSetAccess(ret_members[i], 2 * BYTES, &access, 1));
		T_OK(cuMulticastBindMem(object, 0, memory, BYTES, BYTES, 0));
		T_OK(cuMulticastBindMem(object, BYTES, memory, 0, BYTES, 0));
	}
}

static void second_half(int fd, void *unused)
{
	CUmemGenericAllocationHandle object;
	CUdeviceptr members[TEAM_DEVICES / 2];

	(void)unused;
	(void)t_cuda();
	object = t_import(t_receive_fd(fd));
	bind_half(object, TEAM_DEVICES / 2, members);
	t_say(fd, 'b');
	t_hear(fd, 'v');
	for (int i = 0; i < TEAM_DEVICES / 2; i++) {
		t_verify(members[i] + BYTES, BYTES, 21);
		t_verify(members[i], BYTES, 22);
	}
}

/* Eight devices of two processes: binds wait for both halves, writes reach all of both. */
static void halves(struct t_child *child)
{
	CUmulticastObjectProp prop = {
		.numDevices = TEAM_DEVICES, .size = 2 * BYTES, .handleTypes = T_FD_TYPE};
	CUmemGenericAllocationHandle object = 0;
	CUdeviceptr members[TEAM_DEVICES / 2];
	CUdeviceptr address;

	T_OK(cuMulticastCreate(&object, &prop));
	t_send_fd(child->fd, t_export(object));
	bind_half(object, 0, members);
	address = t_map(object, 2 * BYTES);
	t_hear(child->fd, 'b');
	t_fill(address, BYTES, 21);
	t_fill(address + BYTES, BYTES, 22);
	t_say(child->fd, 'v');
	t_child_join(child);
	t_verify(members[3] + BYTES, BYTES, 21);
	t_verify(members[3], BYTES, 22);
}

/* A machine whose GPUs have none. */
static void without(int fd, void *unused)
{
	CUmulticastObjectProp prop = {.numDevices = 1, .size = BYTES};
	CUmemGenericAllocationHandle object = 0;
	size_t bytes = 0;
	int has_multicast = 1;

	(void)unused;
	(void)fd;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread yet */
	T_SYS(setenv("STASIS_SIM_MULTICAST", "0", 1));
	(void)t_cuda();
	T_OK(cuDeviceGetAttribute(&has_multicast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
	T_EQ(has_multicast, 0);
	T_IS(cuMulticastCreate(&object, &prop), CUDA_ERROR_NOT_SUPPORTED);
	T_IS(cuMulticastGetGranularity(&bytes, &prop, CU_MULTICAST_GRANULARITY_MINIMUM),
	     CUDA_ERROR_NOT_SUPPORTED);
	T_IS(cuMulticastAddDevice(0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

int main(void)
{
	struct t_child binder;
	struct t_child holder;
	struct t_child plain;
	struct t_child half;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread yet */
	T_SYS(setenv("STASIS_SIM_DEVICES", "8", 1));
	plain = t_child_start(without, NULL);
	t_child_join(&plain);
	holder = t_child_start(held_object, NULL);
	binder = t_child_start(bind_and_wait, NULL);
	half = t_child_start(second_half, NULL);
	(void)t_cuda();
	refusals();
	rounding();
	lifetimes();
	second_imports();
	checkpoints(&holder);
	halves(&half);
	deaths(&binder);
	incomplete();
	return 0;
}
