/*
 * The multicast team of share_ring: process 0 makes the object, its descriptor goes round the ring, the first process
 * of each device adds the device and binds its big block, one by the memory's handle, the next by its address, by
 * turns in the way of CUDA 13.1, which names the device, and all map the object.
 *
 * Each round has a writer, one after the other: it writes one half of the team's part through its multicast mapping;
 * the word goes round the ring, and who gets it finds what was written in its own memory and writes a summand of its
 * own into the other half; when the word is back, the writer has a kernel sum up that half of all members.
 */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"
#include "reduce.h"
#include "share_ring.h"

#define BIND_KINDS 4

typedef CUresult bind_memory(CUmemGenericAllocationHandle, CUdevice, size_t,
			     CUmemGenericAllocationHandle, size_t, size_t, unsigned long long);
typedef CUresult bind_address(CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t,
			      unsigned long long);

static bool is_bound(const struct ring_team *team)
{
	return team->options->index < team->devices;
}

static uint64_t part_offset(const struct ring_team *team)
{
	return team->big->bytes - TAIL_BYTES;
}

static uint32_t written_word(uint64_t round)
{
	return ring_word(0x7ea30001U, round);
}

static uint32_t summand(unsigned index, uint64_t round)
{
	return ring_word(0x7ea30002U + index, round);
}

static void say(const struct ring_team *team, enum ring_message_kind kind, uint64_t round)
{
	struct ring_message message = {.kind = kind, .from = team->options->index, .round = round};

	ring_message_send(team->options->right_fd, &message);
}

static void hear(const struct ring_team *team, enum ring_message_kind kind, uint64_t round)
{
	struct ring_message message;

	ring_message_expect(team->options, team->options->left_fd, kind, round, &message);
}

/* Returns when all have come here: the first time round says so to process 0, the second one to all. */
static void all_wait(const struct ring_team *team)
{
	for (uint64_t lap = 1; lap <= 2; lap++) {
		if (team->options->index == 0)
			say(team, RING_LAP, lap);
		hear(team, RING_LAP, lap);
		if (team->options->index != 0)
			say(team, RING_LAP, lap);
	}
}

static void object_create(struct ring_team *team)
{
	CUmulticastObjectProp prop = {
		.numDevices = team->devices,
		.size = team->big->bytes,
		.handleTypes = T_FD_TYPE,
	};

	T_OK(cuMulticastCreate(&team->object, &prop));
}

/* The descriptor itself goes round: the driver exports nothing that was imported. */
static void object_share(struct ring_team *team)
{
	const struct ring_options *options = team->options;
	int fd;

	if (options->index == 0) {
		object_create(team);
		fd = t_export(team->object);
	} else {
		ring_message_wait(options->left_fd);
		fd = t_receive_fd(options->left_fd);
		team->object = t_import(fd);
	}
	if (options->index + 1 < options->processes)
		t_send_fd(options->right_fd, fd);
	T_SYS(close(fd));
}

/* A driver of before CUDA 13.1 would give its older entry for that version. */
static bool has_newer_binds(void)
{
	int version = 0;

	T_OK(cuDriverGetVersion(&version));
	return version >= 13010;
}

static void big_bind(const struct ring_team *team)
{
	const struct ring_block *big = team->big;
	unsigned kind = team->options->index % BIND_KINDS;
	bind_memory *memory_v2 = NULL;
	bind_address *address_v2 = NULL;

	if (kind >= 2 && has_newer_binds()) {
		*(void **)&memory_v2 = t_entry("cuMulticastBindMem", 13010);
		*(void **)&address_v2 = t_entry("cuMulticastBindAddr", 13010);
	}
	if (kind % 2 == 0 && memory_v2)
		T_OK(memory_v2(team->object, team->cuda->device, 0, big->handle, 0, big->bytes, 0));
	else if (kind % 2 == 0)
		T_OK(cuMulticastBindMem(team->object, 0, big->handle, 0, big->bytes, 0));
	else if (address_v2)
		T_OK(address_v2(team->object, team->cuda->device, 0, big->address, big->bytes, 0));
	else
		T_OK(cuMulticastBindAddr(team->object, 0, big->address, big->bytes, 0));
}

static void reduce_load(struct ring_team *team)
{
	CUmodule module = NULL;

	T_OK(cuModuleLoadData(&module, reduce_ptx));
	T_OK(cuModuleGetFunction(&team->reduce, module, "stasis_multimem_add_u32"));
	team->sums = t_alloc(TEAM_HALF_BYTES);
}

void ring_team_make(struct ring_team *team, const struct ring_options *options,
		    const struct ring_cuda *cuda, const struct ring_block *big, CUstream stream)
{
	*team = (struct ring_team){
		.options = options,
		.cuda = cuda,
		.big = big,
		.stream = stream,
		.devices = options->processes < options->devices ? options->processes
								 : options->devices,
	};
	t_need_multicast(cuda->device);
	reduce_load(team);
	object_share(team);
	if (is_bound(team)) {
		T_OK(cuMulticastAddDevice(team->object, cuda->device));
		big_bind(team);
	}
	all_wait(team);
	team->address =
		ring_map(cuda, team->object, big->bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

/* By a kernel in one round, by a memset in the next. */
static void all_write(const struct ring_team *team, uint64_t round)
{
	CUdeviceptr to = team->address + part_offset(team);

	if (round % 2 == 0)
		ring_fill(team->cuda, team->stream, to, written_word(round), TEAM_HALF_WORDS);
	else
		T_OK(cuMemsetD32Async(to, written_word(round), TEAM_HALF_WORDS, team->stream));
	T_OK(cuStreamSynchronize(team->stream));
}

static void own_look(const struct ring_team *team, uint64_t round)
{
	uint64_t offset = part_offset(team);

	if (!is_bound(team))
		return;
	ring_words_verify(team->big, "what the team was sent", offset, written_word(round),
			  TEAM_HALF_WORDS, team->stream);
	ring_fill(team->cuda, team->stream, team->big->address + offset + TEAM_HALF_BYTES,
		  summand(team->options->index, round), TEAM_HALF_WORDS);
	T_OK(cuStreamSynchronize(team->stream));
}

static void sums_check(struct ring_team *team, uint64_t round)
{
	static uint32_t found[TEAM_HALF_WORDS];
	CUdeviceptr from = team->address + part_offset(team) + TEAM_HALF_BYTES;
	uint64_t count = TEAM_HALF_WORDS;
	void *parameters[] = {&team->sums, &from, &count};
	uint32_t expected = 0;

	T_OK(cuMemsetD32Async(team->sums, 0, count, team->stream));
	T_OK(cuLaunchKernel(team->reduce, 1, 1, 1, 128, 1, 1, 0, team->stream, parameters, NULL));
	T_OK(cuMemcpyDtoHAsync_v2(found, team->sums, sizeof(found), team->stream));
	T_OK(cuStreamSynchronize(team->stream));
	for (unsigned i = 0; i < team->devices; i++)
		expected += summand(i, round);
	for (size_t i = 0; i < count; i++)
		if (found[i] != expected)
			t_fail("share_ring: process %d (%u): the team's sum at 0x%llx: offset %zu: "
			       "expected 0x%08x, found 0x%08x",
			       (int)getpid(), team->options->index, (unsigned long long)from, i * 4,
			       expected, found[i]);
}

void ring_team_round(struct ring_team *team, uint64_t round)
{
	unsigned count = team->options->processes;
	unsigned writer = (unsigned)((round - 1) % count);

	if (team->options->index == writer) {
		all_write(team, round);
		own_look(team, round);
		say(team, RING_WRITTEN, round);
		hear(team, RING_WRITTEN, round);
		sums_check(team, round);
		say(team, RING_TURN, round);
	} else {
		hear(team, RING_WRITTEN, round);
		own_look(team, round);
		say(team, RING_WRITTEN, round);
	}
	/* the writer of the next round begins it when that of this one is through */
	if (team->options->index == (writer + 1) % count)
		hear(team, RING_TURN, round);
}

void ring_team_free(struct ring_team *team)
{
	all_wait(team);
	ring_unmap(team->address, team->big->bytes);
	if (is_bound(team))
		T_OK(cuMulticastUnbind(team->object, team->cuda->device, 0, team->big->bytes));
	T_OK(cuMemRelease(team->object));
	T_OK(cuMemFree_v2(team->sums));
}
