/*
 * See teams.h.
 */

#include "teams.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"
#include "reduce.h"

#define BYTES T_BLOCK_BYTES
#define WORDS (BYTES / sizeof(uint32_t))
#define HIDDEN 3
#define SPARE TEAM_BLOCKS /* behind the blocks, where nothing is bound */
#define PASSES 500

struct team {
	int device;
	uint32_t round;
	CUmemGenericAllocationHandle
		object; /* the importer has released it, and its mappings answer it */
	CUmemGenericAllocationHandle memory[TEAM_BLOCKS];
	CUmemGenericAllocationHandle spare;
	CUdeviceptr block[TEAM_BLOCKS];
	uint32_t own[TEAM_BLOCKS]; /* what is in each word of it */
	uint32_t others[TEAM_BLOCKS];
	CUdeviceptr all;   /* the whole object */
	CUdeviceptr first; /* block 0 of it, once more */
	CUdeviceptr sums;
	CUfunction reduce;
};

static uint32_t words[WORDS];

static uint32_t value_of(int device, int block, uint32_t round)
{
	return 1 + (uint32_t)device * 1000 + (uint32_t)block * 10 + round * 100000;
}

static CUdeviceptr map_with_access(CUmemGenericAllocationHandle handle, size_t bytes, int device)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr address = t_reserve(bytes);

	access.location.id = device;
	T_OK(cuMemMap(address, bytes, 0, handle, 0));
	T_OK(cuMemSetAccess(address, bytes, &access, 1));
	return address;
}

static CUdeviceptr exportable_make(struct team *team, int block)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);

	prop.location.id = team->device;
	T_OK(cuMemCreate(&team->memory[block], BYTES, &prop, 0));
	return map_with_access(team->memory[block], BYTES, team->device);
}

static void block_make(struct team *team, int block, bool is_exportable)
{
	team->block[block] = is_exportable ? exportable_make(team, block) : t_alloc(BYTES);
	team->own[block] = value_of(team->device, block, 0);
	team->others[block] = value_of(1 - team->device, block, 0);
	T_OK(cuMemsetD32_v2(team->block[block], team->own[block], WORDS));
}

/* As the other device does: each waits in its first bind for the other. */
static void blocks_bind(struct team *team)
{
	CUmemGenericAllocationHandle object = team->object;
	CUdevice device = team->device;

	T_OK(cuMulticastBindMem(object, 0, team->memory[0], 0, BYTES, 0));
	T_OK(cuMulticastBindMem_v2(object, device, BYTES, team->memory[1], 0, BYTES, 0));
	T_OK(cuMulticastBindAddr(object, 2 * BYTES, team->block[2], BYTES, 0));
	T_OK(cuMulticastBindMem(object, HIDDEN * BYTES, team->memory[HIDDEN], 0, BYTES, 0));
	T_OK(cuMulticastBindAddr_v2(object, device, 4 * BYTES, team->block[4], BYTES, 0));
	T_OK(cuMulticastBindAddr(object, 5 * BYTES, team->block[5], BYTES, 0));
	T_OK(cuMemUnmap(team->block[HIDDEN], BYTES));
	T_OK(cuMemRelease(team->memory[HIDDEN]));
}

static void team_make(struct team *team)
{
	CUcontext context = NULL;
	CUmodule module = NULL;

	T_OK(cuDevicePrimaryCtxRetain(&context, team->device));
	T_OK(cuCtxSetCurrent(context));
	T_OK(cuModuleLoadData(&module, reduce_ptx));
	T_OK(cuModuleGetFunction(&team->reduce, module, "stasis_multimem_add_u32"));
	T_OK(cuMulticastAddDevice(team->object, team->device));
	T_OK(cuMulticastAddDevice(team->object, team->device));
	for (int i = 0; i < TEAM_BLOCKS; i++)
		block_make(team, i, i < TEAM_OURS);
	T_OK(cuCtxSynchronize());
	blocks_bind(team);
	team->all = map_with_access(team->object, TEAM_BLOCKS * BYTES, team->device);
	team->first = map_with_access(team->object, BYTES, team->device);
	team->sums = t_alloc(TEAM_BLOCKS * BYTES);
	if (team->device == 1)
		T_OK(cuMemRelease(team->object));
}

/* ---- what it is asked for ---- */

static void words_verify(CUdeviceptr address, uint32_t value)
{
	T_OK(cuMemcpyDtoH_v2(words, address, BYTES));
	for (size_t i = 0; i < WORDS; i++) {
		if (words[i] != value)
			t_fail("word %zu at 0x%llx is %u, not %u", i, address, words[i], value);
	}
}

static void sums_make(struct team *team, CUdeviceptr from, uint64_t count)
{
	void *parameters[] = {&team->sums, &from, &count};

	T_OK(cuLaunchKernel(team->reduce, 1, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL));
	T_OK(cuCtxSynchronize());
}

static void verify(struct team *team)
{
	for (int i = 0; i < TEAM_BLOCKS; i++) {
		if (i != HIDDEN)
			words_verify(team->block[i], team->own[i]);
	}
	sums_make(team, team->first, WORDS);
	words_verify(team->sums, team->own[0] + team->others[0]);
	sums_make(team, team->all, TEAM_BLOCKS * WORDS);
	for (int i = 0; i < TEAM_BLOCKS; i++)
		words_verify(team->sums + (size_t)i * BYTES, team->own[i] + team->others[i]);
}

static void fill(struct team *team)
{
	team->round++;
	for (int i = 0; i < TEAM_BLOCKS; i++) {
		if (i == HIDDEN)
			continue;
		team->own[i] = value_of(team->device, i, team->round);
		team->others[i] = value_of(1 - team->device, i, team->round);
		T_OK(cuMemsetD32_v2(team->block[i], team->own[i], WORDS));
	}
	T_OK(cuCtxSynchronize());
}

static void write_all(struct team *team, bool is_here)
{
	team->round++;
	for (int i = 0; i < TEAM_BLOCKS; i++) {
		team->own[i] = value_of(2, i, team->round);
		team->others[i] = team->own[i];
		if (is_here)
			T_OK(cuMemsetD32_v2(team->all + (size_t)i * BYTES, team->own[i], WORDS));
	}
	T_OK(cuCtxSynchronize());
}

static CUmemGenericAllocationHandle object_retain(struct team *team, CUdeviceptr address)
{
	CUmemGenericAllocationHandle object = 0;

	T_OK(cuMemRetainAllocationHandle(&object, (void *)(uintptr_t)address)); /* NOLINT */
	T_EQ(object, team->object);
	return object;
}

static void bind_again(struct team *team)
{
	CUmemGenericAllocationHandle object = object_retain(team, team->first + BYTES - 1);

	T_OK(cuMulticastUnbind(object, team->device, 0, BYTES));
	T_OK(cuMulticastBindMem(object, 0, team->memory[0], 0, BYTES, 0));
	T_OK(cuMulticastUnbind(object, team->device, 5 * BYTES, BYTES));
	T_OK(cuMulticastBindAddr(object, 5 * BYTES, team->block[5], BYTES, 0));
	T_OK(cuMemRelease(object));
}

static void spare_bind(struct team *team)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);

	prop.location.id = team->device;
	T_OK(cuMemCreate(&team->spare, BYTES, &prop, 0));
	T_OK(cuMulticastBindMem(team->object, SPARE * BYTES, team->spare, 0, BYTES, 0));
}

static void spare_unbind(struct team *team)
{
	T_OK(cuMulticastUnbind(team->object, team->device, SPARE * BYTES, BYTES));
	T_OK(cuMemRelease(team->spare));
}

static void hidden_unbind(struct team *team)
{
	CUmemGenericAllocationHandle object = object_retain(team, team->all);

	T_OK(cuMulticastUnbind(object, team->device, HIDDEN * BYTES, BYTES));
	T_OK(cuMemRelease(object));
}

static void let_go(struct team *team)
{
	if (team->device == 0)
		T_OK(cuMemRelease(team->object));
	T_OK(cuMemUnmap(team->all, TEAM_BLOCKS * BYTES));
	T_OK(cuMemUnmap(team->first, BYTES));
	for (int i = 0; i < TEAM_BLOCKS; i++) {
		if (i >= TEAM_OURS) {
			T_OK(cuMemFree_v2(team->block[i]));
		} else if (i != HIDDEN) {
			T_OK(cuMemUnmap(team->block[i], BYTES));
			T_OK(cuMemRelease(team->memory[i]));
		}
	}
}

static void serve(struct team *team, int fd)
{
	t_say(fd, 'r');
	for (char letter = t_hear_any(fd); letter != 'q' && letter != 0; letter = t_hear_any(fd)) {
		switch (letter) {
		case 'f':
			fill(team);
			break;
		case 'v':
			verify(team);
			break;
		case 'w':
		case 'n':
			write_all(team, letter == 'w');
			break;
		case 'u':
			bind_again(team);
			break;
		case 'b':
			spare_bind(team);
			break;
		case 'c':
			spare_unbind(team);
			break;
		case 'o':
			hidden_unbind(team);
			break;
		case 'l':
			let_go(team);
			break;
		default:
			t_fail("asked for '%c'", letter);
		}
		t_say(fd, 'd');
	}
}

/* It asks for less than it binds and maps: the driver rounds up, and programs use that. */
static CUmulticastObjectProp properties(unsigned device_count)
{
	return (CUmulticastObjectProp){.numDevices = device_count,
				       .size = (TEAM_BLOCKS - 1) * BYTES,
				       .handleTypes = T_FD_TYPE};
}

void t_team_run_creating(int fd)
{
	struct team team = {.device = 0};
	CUmulticastObjectProp prop = properties(2);
	int ticket;

	t_init_only();
	T_OK(cuMulticastCreate(&team.object, &prop));
	ticket = t_export(team.object);
	t_send_fd(fd, ticket);
	T_SYS(close(ticket));
	team_make(&team);
	serve(&team, fd);
}

void t_team_run_importing(int fd)
{
	struct team team = {.device = 1};
	int ticket;

	t_init_only();
	ticket = t_receive_fd(fd);
	team.object = t_import(ticket);
	T_SYS(close(ticket));
	team_make(&team);
	serve(&team, fd);
}

static void *bind_and_wait(void *argument)
{
	struct team *team = argument;

	T_OK(cuCtxSetCurrent(NULL));
	T_OK(cuMulticastBindMem(team->object, 0, team->memory[0], 0, BYTES, 0));
	return NULL;
}

void t_team_run_waiting(int fd)
{
	struct team team = {.device = 0};
	CUmulticastObjectProp prop = properties(2);
	pthread_t thread;

	(void)t_cuda();
	T_OK(cuMulticastCreate(&team.object, &prop));
	T_OK(cuMulticastAddDevice(team.object, 0));
	block_make(&team, 0, true);
	T_EQ(pthread_create(&thread, NULL, bind_and_wait, &team), 0);
	t_say(fd, 'r');
	t_hear(fd, 'a');
	T_OK(cuMulticastAddDevice(team.object, 1));
	T_EQ(pthread_join(thread, NULL), 0);
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

static void pass(int number)
{
	CUmulticastObjectProp prop = properties(1);
	CUmemGenericAllocationHandle object = 0;
	struct t_vmm memory = t_vmm(BYTES, T_FD_TYPE);
	CUdeviceptr address;

	T_OK(cuMulticastCreate(&object, &prop));
	T_OK(cuMulticastAddDevice(object, 0));
	T_OK(cuMulticastBindMem(object, 0, memory.handle, 0, BYTES, 0));
	T_OK(cuMulticastBindAddr(object, BYTES, memory.address, BYTES, 0));
	if (number % 2 == 0)
		T_OK(cuMulticastUnbind(object, 0, BYTES, BYTES));
	address = t_map(object, BYTES);
	t_vmm_release(&memory);
	T_OK(cuMemRelease(object));
	T_OK(cuMemUnmap(address, BYTES));
	T_OK(cuMemAddressFree(address, BYTES));
	T_OK(cuMemAddressFree(memory.address, BYTES));
}

void t_team_run_passing(int fd)
{
	size_t before_bytes;
	size_t before_free;

	(void)t_cuda();
	for (int i = 0; i < PASSES; i++)
		pass(i);
	before_bytes = mallinfo2().uordblks;
	before_free = t_free_bytes();
	for (int i = 0; i < PASSES; i++)
		pass(i);
	T_EQ(t_free_bytes(), before_free);
	T_TRUE(mallinfo2().uordblks < before_bytes + 16384);
	t_say(fd, 'r');
}
