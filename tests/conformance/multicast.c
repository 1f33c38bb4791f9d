/*
 * Description: memory of several devices behind one address. On hardware only where STASIS_TEST_MULTICAST=1
 * says so: a program that dies in it can take the links between all GPUs of a machine with it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "kernels.h"
#include "reduce.h"

#define BYTES T_BLOCK_BYTES
#define COUNT (BYTES / sizeof(uint32_t))

/* A team of two devices, what each has bound, and the address at which device 0 sees both. */
struct team {
	CUmemGenericAllocationHandle object;
	CUmemGenericAllocationHandle memory[2];
	CUdeviceptr member[2];
	CUdeviceptr address;
};

static void allow(int device_count)
{
	t_allow_multicast();
	t_ask_devices(device_count);
}

static void need_multicast(int device_count)
{
	t_need_devices(device_count);
	t_need_multicast(0);
}

static CUmulticastObjectProp properties(void)
{
	return (CUmulticastObjectProp){
		.numDevices = 2,
		.size = BYTES,
		.handleTypes = T_FD_TYPE,
	};
}

/* Device memory, mapped with access for device 0 and its own. */
static CUdeviceptr memory_make(int device, CUmemGenericAllocationHandle *ret_handle)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr address;

	prop.location.id = device;
	T_OK(cuMemCreate(ret_handle, BYTES, &prop, 0));
	address = t_map(*ret_handle, BYTES);
	access.location.id = device;
	T_OK(cuMemSetAccess(address, BYTES, &access, 1));
	return address;
}

static CUmemGenericAllocationHandle object_make(void)
{
	CUmulticastObjectProp prop = properties();
	CUmemGenericAllocationHandle object = 0;

	T_OK(cuMulticastCreate(&object, &prop));
	return object;
}

static struct team team_make(void)
{
	struct team team = {0};

	allow(2);
	(void)t_cuda();
	need_multicast(2);
	team.object = object_make();
	T_OK(cuMulticastAddDevice(team.object, 0));
	T_OK(cuMulticastAddDevice(team.object, 1));
	for (int i = 0; i < 2; i++) {
		team.member[i] = memory_make(i, &team.memory[i]);
		T_OK(cuMulticastBindMem(team.object, 0, team.memory[i], 0, BYTES, 0));
	}
	team.address = t_map(team.object, BYTES);
	return team;
}

static uint32_t word_at(CUdeviceptr address)
{
	uint32_t word = 0;

	T_OK(cuMemcpyDtoH_v2(&word, address, sizeof(word)));
	return word;
}

static void multicast_granularity(void)
{
	CUmulticastObjectProp prop = properties();
	size_t least = 0;
	size_t best = 0;

	allow(2);
	(void)t_cuda();
	need_multicast(2);
	T_OK(cuMulticastGetGranularity(&least, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
	T_OK(cuMulticastGetGranularity(&best, &prop, CU_MULTICAST_GRANULARITY_RECOMMENDED));
	T_TRUE(least >= 65536);
	T_TRUE(best >= least && best % least == 0);
}

static void multicast_create(void)
{
	CUmulticastObjectProp prop = properties();
	CUmemGenericAllocationHandle object = 0;

	allow(2);
	(void)t_cuda();
	need_multicast(2);
	prop.numDevices = 0;
	T_REFUSED(cuMulticastCreate(&object, &prop));
	prop = properties();
	prop.size = 0;
	T_REFUSED(cuMulticastCreate(&object, &prop));
	prop = properties();
	prop.flags = 1;
	T_REFUSED(cuMulticastCreate(&object, &prop));
	T_REFUSED(cuMulticastAddDevice(0, 0));
}

struct waiting {
	struct team *team;
	CUcontext context;
	int ready_fd;
};

static void *bind_first(void *argument)
{
	const struct waiting *waiting = argument;

	T_OK(cuCtxSetCurrent(waiting->context));
	T_EQ(write(waiting->ready_fd, "r", 1), 1);
	T_OK(cuMulticastBindMem(waiting->team->object, 0, waiting->team->memory[0], 0, BYTES, 0));
	return NULL;
}

/* The pause gives a bind that does not wait its chance to be seen; one that waits passes whatever its length. */
static void multicast_bind_waits(void)
{
	struct team team = {0};
	struct waiting waiting = {.team = &team};
	pthread_t thread;
	char letter = 0;
	int ready[2];

	allow(2);
	waiting.context = t_cuda();
	need_multicast(2);
	team.object = object_make();
	T_OK(cuMulticastAddDevice(team.object, 0));
	for (int i = 0; i < 2; i++)
		team.member[i] = memory_make(i, &team.memory[i]);
	T_SYS(pipe(ready));
	waiting.ready_fd = ready[1];
	T_EQ(pthread_create(&thread, NULL, bind_first, &waiting), 0);
	T_EQ(read(ready[0], &letter, 1), 1);
	(void)usleep(100000);
	T_OK(cuMulticastAddDevice(team.object, 1));
	T_EQ(pthread_join(thread, NULL), 0);
	T_OK(cuMulticastBindMem(team.object, 0, team.memory[1], 0, BYTES, 0));
	team.address = t_map(team.object, BYTES);
	T_OK(cuMemsetD32_v2(team.address, 7, COUNT));
	T_OK(cuCtxSynchronize());
}

static void multicast_bind_address(void)
{
	struct team team = team_make();
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle large = 0;
	CUdeviceptr address;

	T_OK(cuMulticastUnbind(team.object, 0, 0, BYTES));
	T_OK(cuMemCreate(&large, 2 * BYTES, &prop, 0));
	address = t_map(large, 2 * BYTES);
	t_fill(address, 2 * BYTES, 1);
	T_OK(cuMulticastBindAddr(team.object, 0, address + BYTES, BYTES, 0));
	t_fill(team.address, BYTES, 2);
	t_verify(address + BYTES, BYTES, 2);
	t_verify(address, BYTES, 1);
}

static void multicast_unbind_whole(void)
{
	struct team team = team_make();

	T_REFUSED(cuMulticastUnbind(team.object, 0, 0, BYTES / 2));
	T_OK(cuMulticastUnbind(team.object, 0, 0, BYTES));
	T_OK(cuMulticastBindMem(team.object, 0, team.memory[0], 0, BYTES, 0));
	t_fill(team.address, BYTES, 3);
	t_verify(team.member[0], BYTES, 3);
}

static void multicast_fill_reaches_all(void)
{
	struct team team = team_make();

	T_OK(cuMemsetD32_v2(team.address, 0x01020304, COUNT));
	T_OK(cuCtxSynchronize());
	for (int i = 0; i < 2; i++)
		T_EQ(word_at(team.member[i] + BYTES - sizeof(uint32_t)), 0x01020304);
}

static void multicast_write_reaches_all(void)
{
	struct team team = team_make();

	t_fill(team.address, BYTES, 4);
	t_verify(team.member[0], BYTES, 4);
	t_verify(team.member[1], BYTES, 4);
}

/* The last of the words that a load that reduces gives, on device 0. */
static uint32_t sum_last(CUdeviceptr address)
{
	uint64_t count = COUNT;
	CUdeviceptr to = t_alloc(BYTES);
	void *parameters[] = {&to, &address, &count};
	CUfunction function = NULL;
	CUmodule module = NULL;

	T_OK(cuModuleLoadData(&module, reduce_ptx));
	T_OK(cuModuleGetFunction(&function, module, "stasis_multimem_add_u32"));
	T_OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	T_OK(cuCtxSynchronize());
	return word_at(to + BYTES - sizeof(uint32_t));
}

static void multicast_reduce(void)
{
	struct team team = team_make();

	T_OK(cuMemsetD32_v2(team.member[0], 40, COUNT));
	T_OK(cuMemsetD32_v2(team.member[1], 2, COUNT));
	T_EQ(sum_last(team.address), 42);
}

/* A kernel that writes, a copy, and a value, each on a stream; every member has each of them. */
static void multicast_streams(void)
{
	struct team team = team_make();
	CUdeviceptr from = t_alloc(BYTES);
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);
	uint64_t count = COUNT / 2;
	uint32_t value = 11;
	void *parameters[] = {&team.address, &value, &count};
	CUfunction function = NULL;
	CUmodule module = NULL;

	T_OK(cuMemsetD32_v2(from, 12, COUNT));
	T_OK(cuCtxSynchronize());
	T_OK(cuModuleLoadData(&module, kernels_ptx));
	T_OK(cuModuleGetFunction(&function, module, "stasis_fill_u32"));
	T_OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, parameters, NULL));
	T_OK(cuMemcpyDtoDAsync_v2(team.address + BYTES / 2, from, BYTES / 2, stream));
	T_OK(cuStreamWriteValue32_v2(stream, team.address + BYTES / 2, 13, 0));
	T_OK(cuStreamSynchronize(stream));
	for (int i = 0; i < 2; i++) {
		T_EQ(word_at(team.member[i] + BYTES / 2 - sizeof(value)), 11);
		T_EQ(word_at(team.member[i] + BYTES / 2), 13);
		T_EQ(word_at(team.member[i] + BYTES - sizeof(value)), 12);
	}
}

/* Bound memory whose handle and mapping are gone is still there. */
static void multicast_holds_memory(void)
{
	struct team team = team_make();

	t_fill(team.address, BYTES, 6);
	for (int i = 0; i < 2; i++) {
		T_OK(cuMemUnmap(team.member[i], BYTES));
		T_OK(cuMemRelease(team.memory[i]));
	}
	t_verify(team.address, BYTES, 6);
}

static void multicast_mapping_holds(void)
{
	struct team team = team_make();
	CUmemGenericAllocationHandle again = 0;

	T_OK(cuMemRelease(team.object));
	t_fill(team.address, BYTES, 7);
	t_verify(team.member[1], BYTES, 7);
	T_OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)team.address)); /* NOLINT */
	T_OK(cuMulticastUnbind(again, 0, 0, BYTES));
	T_OK(cuMulticastBindMem(again, 0, team.memory[0], 0, BYTES, 0));
}

static void multicast_access(void)
{
	struct team team = team_make();
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr address = t_reserve(BYTES);

	T_OK(cuMemMap(address, BYTES, 0, team.object, 0));
	T_REFUSED(cuMemsetD32_v2(address, 1, COUNT));
	T_OK(cuMemSetAccess(address, BYTES, &access, 1));
	T_OK(cuMemsetD32_v2(address, 1, COUNT));
	T_OK(cuCtxSynchronize());
}

typedef CUresult bind_memory(CUmemGenericAllocationHandle, CUdevice, size_t,
			     CUmemGenericAllocationHandle, size_t, size_t, unsigned long long);
typedef CUresult bind_address(CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t,
			      unsigned long long);

/* The newer binds name the device, which must be the memory's. */
static void multicast_bind_device(void)
{
	struct team team = team_make();
	bind_memory *memory_v2 = NULL;
	bind_address *address_v2 = NULL;

	*(void **)&memory_v2 = t_entry("cuMulticastBindMem", 13010);
	*(void **)&address_v2 = t_entry("cuMulticastBindAddr", 13010);
	for (int i = 0; i < 2; i++)
		T_OK(cuMulticastUnbind(team.object, i, 0, BYTES));
	T_REFUSED(memory_v2(team.object, 1, 0, team.memory[0], 0, BYTES, 0));
	T_REFUSED(address_v2(team.object, 0, 0, team.member[1], BYTES, 0));
	T_OK(memory_v2(team.object, 0, 0, team.memory[0], 0, BYTES, 0));
	T_OK(address_v2(team.object, 1, 0, team.member[1], BYTES, 0));
	t_fill(team.address, BYTES, 8);
	t_verify(team.member[0], BYTES, 8);
	t_verify(team.member[1], BYTES, 8);
}

static void multicast_of_eight(void)
{
	CUmulticastObjectProp prop = properties();
	CUmemGenericAllocationHandle object = 0;
	CUmemGenericAllocationHandle memory = 0;
	CUdeviceptr member[8];
	CUdeviceptr address;

	allow(8);
	(void)t_cuda();
	need_multicast(8);
	prop.numDevices = 8;
	T_OK(cuMulticastCreate(&object, &prop));
	for (int i = 0; i < 8; i++)
		T_OK(cuMulticastAddDevice(object, i));
	for (int i = 0; i < 8; i++) {
		member[i] = memory_make(i, &memory);
		T_OK(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0));
	}
	address = t_map(object, BYTES);
	t_fill(address, BYTES, 9);
	for (int i = 0; i < 8; i++) {
		t_verify(member[i], BYTES, 9);
		T_OK(cuMemsetD32_v2(member[i], 1u << i, COUNT));
	}
	T_EQ(sum_last(address), 255);
}

/* One process, two handles of an object: what the one has bound the other unbinds. */
static void multicast_second_import(void)
{
	struct team team = team_make();
	int fd = t_export(team.object);
	CUmemGenericAllocationHandle second = t_import(fd);

	T_SYS(close(fd));
	T_OK(cuMulticastUnbind(second, 0, 0, BYTES));
	T_OK(cuMulticastBindMem(second, 0, team.memory[0], 0, BYTES, 0));
	T_OK(cuMemRelease(second));
	t_fill(team.address, BYTES, 10);
	t_verify(team.member[0], BYTES, 10);
}

/* Device 1 of the team is this process's. */
static void join_team(int fd, void *unused)
{
	CUmemGenericAllocationHandle memory = 0;
	CUmemGenericAllocationHandle object;
	CUdeviceptr member;

	(void)unused;
	(void)t_cuda();
	object = t_import(t_receive_fd(fd));
	T_OK(cuMulticastAddDevice(object, 1));
	member = memory_make(1, &memory);
	T_OK(cuMulticastBindMem(object, 0, memory, 0, BYTES, 0));
	t_say(fd, 'b');
	t_hear(fd, 'w');
	t_verify(member, BYTES, 5);
}

static void multicast_shared(void)
{
	struct team team = {0};
	struct t_child child;

	allow(2);
	child = t_child_start(join_team, NULL);
	(void)t_cuda();
	need_multicast(2);
	team.object = object_make();
	t_send_fd(child.fd, t_export(team.object));
	T_OK(cuMulticastAddDevice(team.object, 0));
	team.member[0] = memory_make(0, &team.memory[0]);
	T_OK(cuMulticastBindMem(team.object, 0, team.memory[0], 0, BYTES, 0));
	t_hear(child.fd, 'b');
	team.address = t_map(team.object, BYTES);
	t_fill(team.address, BYTES, 5);
	t_verify(team.member[0], BYTES, 5);
	t_say(child.fd, 'w');
	t_child_join(&child);
}

static const struct t_behaviour behaviours[] = {
	{"multicast_granularity", T_DOCUMENTED,
	 "the recommended granularity is a multiple of the minimum", multicast_granularity},
	{"multicast_create", T_DOCUMENTED, "no devices, no bytes and flags are refused",
	 multicast_create},
	{"multicast_bind_waits", T_DOCUMENTED,
	 "a bind returns when every device of the team was added", multicast_bind_waits},
	{"multicast_bind_address", T_DOCUMENTED, "a bind by address binds the memory mapped there",
	 multicast_bind_address},
	{"multicast_unbind_whole", T_REPORTED,
	 "only a whole binding can be unbound, and its place bound again", multicast_unbind_whole},
	{"multicast_fill_reaches_all", T_DOCUMENTED, "a memset reaches every member",
	 multicast_fill_reaches_all},
	{"multicast_write_reaches_all", T_DOCUMENTED, "a copy reaches every member",
	 multicast_write_reaches_all},
	{"multicast_reduce", T_DOCUMENTED, "a load that reduces adds the values of all members",
	 multicast_reduce},
	{"multicast_streams", T_DOCUMENTED,
	 "kernels, copies and values of a stream reach every member", multicast_streams},
	{"multicast_of_eight", T_DOCUMENTED, "a team can have eight devices", multicast_of_eight},
	{"multicast_bind_device", T_DOCUMENTED, "a device that a bind names must be the memory's",
	 multicast_bind_device},
	{"multicast_access", T_DOCUMENTED, "a fresh mapping of a multicast object grants no access",
	 multicast_access},
	{"multicast_holds_memory", T_DOCUMENTED,
	 "memory that is bound outlives its handle and its mapping", multicast_holds_memory},
	{"multicast_mapping_holds", T_DOCUMENTED,
	 "a mapping keeps an object and what is bound to it", multicast_mapping_holds},
	{"multicast_second_import", T_REPORTED, "a binding is known by every handle of its object",
	 multicast_second_import},
	{"multicast_shared", T_DOCUMENTED, "processes form a team by an exported object",
	 multicast_shared},
};

T_BEHAVIOURS_MAIN(behaviours)
