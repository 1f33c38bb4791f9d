/*
 * The threads of share_ring that never pause: one launches kernels that change all memory of the process,
 * one makes, uses and frees private memory. The shared blocks stand still while the ring's thread holds
 * them; the private ones never do.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "device.h"
#include "share_ring.h"

#define BATCH_GENERATIONS 4
#define CHURN_SIZES 3

static bool is_shared(enum ring_kind kind)
{
	return kind == RING_BIG || kind == RING_SMALL;
}

static void beat_launch(struct ring_load *load, uint64_t generation, CUstream stream)
{
	CUdeviceptr beat = load->own[RING_SMALL].address;

	ring_fill(load->cuda, stream, beat, ~BEAT, BEAT_WORDS);
	ring_fill(load->cuda, stream, beat, BEAT, generation % BEAT_WORDS);
}

static void block_launch(struct ring_load *load, const struct ring_block *block, CUstream stream)
{
	size_t head = block->kind == RING_SMALL ? BEAT_BYTES : 0;
	size_t tail = block->kind == RING_BIG ? TAIL_BYTES : 0;

	ring_add(load->cuda, stream, block->address + head, ring_step(block->owner, block->kind),
		 (block->bytes - head - tail) / 4);
}

/* So many kernels over each block, all queued before the first is waited for. */
static void batch_run(struct ring_load *load, bool with_shared, CUstream stream)
{
	for (uint64_t i = 0; i < BATCH_GENERATIONS; i++)
		for (size_t kind = 0; kind < RING_KINDS; kind++)
			if (with_shared || !is_shared(load->own[kind].kind))
				block_launch(load, &load->own[kind], stream);
	if (with_shared)
		beat_launch(load, load->own[RING_SMALL].generation + BATCH_GENERATIONS, stream);
	T_OK(cuStreamSynchronize(stream));
}

/* Says whether shared memory may change, and that it does not where the ring's thread wants it so. */
static bool batch_begin(struct ring_load *load, bool *ret_with_shared)
{
	bool goes_on;

	(void)pthread_mutex_lock(&load->mutex);
	goes_on = !load->is_ending;
	*ret_with_shared = !load->hold_is_wanted || !load->has_moved;
	if (!*ret_with_shared && !load->is_held) {
		load->is_held = true;
		(void)pthread_cond_broadcast(&load->changed);
	}
	(void)pthread_mutex_unlock(&load->mutex);
	return goes_on;
}

static void batch_end(struct ring_load *load, bool with_shared)
{
	(void)pthread_mutex_lock(&load->mutex);
	for (size_t kind = 0; kind < RING_KINDS; kind++)
		if (with_shared || !is_shared(load->own[kind].kind))
			load->own[kind].generation += BATCH_GENERATIONS;
	load->has_moved |= with_shared;
	(void)pthread_mutex_unlock(&load->mutex);
}

static void *launcher_main(void *argument)
{
	struct ring_load *load = argument;
	bool with_shared;
	CUstream stream;

	T_OK(cuCtxSetCurrent(load->cuda->context));
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	while (batch_begin(load, &with_shared)) {
		batch_run(load, with_shared, stream);
		batch_end(load, with_shared);
		for (size_t kind = RING_PRIVATE; kind < RING_KINDS; kind++)
			ring_block_verify(&load->own[kind], load->own[kind].address,
					  load->own[kind].generation, stream, "launcher",
					  load->index);
	}
	T_OK(cuStreamDestroy_v2(stream));
	return NULL;
}

/* Writes the whole memory by a kernel, and compares all of it by another. */
static void churn_use(struct ring_load *load, CUdeviceptr address, size_t bytes, uint32_t value,
		      CUstream stream)
{
	CUdeviceptr counter = t_alloc(sizeof(uint64_t));
	uint64_t count = bytes / 4;
	uint64_t found = 0;
	void *parameters[] = {&address, &value, &count, &counter};

	T_OK(cuMemsetD8Async(counter, 0, sizeof(uint64_t), stream));
	ring_fill(load->cuda, stream, address, value, count);
	ring_launch(load->cuda->kernels.compare, stream, parameters);
	T_OK(cuMemcpyDtoHAsync_v2(&found, counter, sizeof(found), stream));
	T_OK(cuStreamSynchronize(stream));
	if (found != 0)
		t_fail("share_ring: process %d (%u, churner): memory at 0x%llx: offsets 0 to %zu: "
		       "expected 0x%08x in all words, found %llu others",
		       (int)getpid(), load->index, (unsigned long long)address, bytes, value,
		       (unsigned long long)found);
	T_OK(cuMemFree_v2(counter));
}

static void churn_vmm(struct ring_load *load, size_t bytes, uint32_t value, CUstream stream)
{
	CUmemGenericAllocationHandle handle = ring_create(load->cuda, bytes);
	CUdeviceptr address =
		ring_map(load->cuda, handle, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	churn_use(load, address, bytes, value, stream);
	ring_unmap(address, bytes);
	T_OK(cuMemRelease(handle));
}

static void churn_native(struct ring_load *load, size_t bytes, uint32_t value, CUstream stream)
{
	CUdeviceptr address = t_alloc(bytes);

	churn_use(load, address, bytes, value, stream);
	T_OK(cuMemFree_v2(address));
}

static bool churn_goes_on(struct ring_load *load)
{
	bool goes_on;

	(void)pthread_mutex_lock(&load->mutex);
	goes_on = !load->is_ending;
	load->churn_count++;
	(void)pthread_mutex_unlock(&load->mutex);
	return goes_on;
}

static void *churner_main(void *argument)
{
	static const size_t native_bytes[CHURN_SIZES] = {1000, 300 << 10, 3 << 20};
	struct ring_load *load = argument;
	CUstream stream;

	T_OK(cuCtxSetCurrent(load->cuda->context));
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	for (uint32_t turn = 0; churn_goes_on(load); turn++) {
		uint32_t value = ring_word(load->index + 7, turn);

		churn_vmm(load, (1 + turn % CHURN_SIZES) * RING_BLOCK_BYTES, value, stream);
		churn_native(load, native_bytes[turn % CHURN_SIZES], ~value, stream);
	}
	T_OK(cuStreamDestroy_v2(stream));
	return NULL;
}

void ring_load_start(struct ring_load *load)
{
	T_EQ(pthread_mutex_init(&load->mutex, NULL), 0);
	T_EQ(pthread_cond_init(&load->changed, NULL), 0);
	T_EQ(pthread_create(&load->launcher, NULL, launcher_main, load), 0);
	T_EQ(pthread_create(&load->churner, NULL, churner_main, load), 0);
}

void ring_load_end(struct ring_load *load)
{
	(void)pthread_mutex_lock(&load->mutex);
	load->is_ending = true;
	(void)pthread_mutex_unlock(&load->mutex);
	T_EQ(pthread_join(load->launcher, NULL), 0);
	T_EQ(pthread_join(load->churner, NULL), 0);
	if (load->churn_count < 2)
		t_fail("share_ring: process %d (%u): the churning thread never went round",
		       (int)getpid(), load->index);
	(void)pthread_cond_destroy(&load->changed);
	(void)pthread_mutex_destroy(&load->mutex);
}

void ring_load_hold(struct ring_load *load)
{
	(void)pthread_mutex_lock(&load->mutex);
	load->hold_is_wanted = true;
	while (!load->is_held)
		(void)pthread_cond_wait(&load->changed, &load->mutex);
	(void)pthread_mutex_unlock(&load->mutex);
}

void ring_load_release(struct ring_load *load)
{
	(void)pthread_mutex_lock(&load->mutex);
	load->hold_is_wanted = false;
	load->is_held = false;
	load->has_moved = false;
	(void)pthread_mutex_unlock(&load->mutex);
}
