/*
 * The memory of share_ring: how it is made and imported, what must stand in it, and what the driver must
 * go on saying about it. Called by the thread of the ring; ring_fill, ring_add and ring_block_verify by
 * the launching thread, too, each on a stream of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "check.h"
#include "device.h"
#include "kernels.h"
#include "share_ring.h"

#define PIECE_WORDS ((size_t)1 << 20)

static const CUpointer_attribute attributes[] = {
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE,          CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,       CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE,           CU_POINTER_ATTRIBUTE_MAPPED,
	CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
};
_Static_assert(sizeof(attributes) / sizeof(attributes[0]) == RING_ATTRIBUTES, "one answer each");

const char *ring_kind_name(enum ring_kind kind)
{
	static const char *const names[RING_KINDS] = {"big", "small", "private", "native"};

	return names[kind];
}

struct ring_cuda ring_cuda_begin(unsigned device)
{
	struct ring_cuda cuda = {0};
	CUmodule module = NULL;

	t_init_only();
	t_need_devices((int)device + 1);
	T_OK(cuDeviceGet(&cuda.device, (int)device));
	T_OK(cuDevicePrimaryCtxRetain(&cuda.context, cuda.device));
	T_OK(cuCtxSetCurrent(cuda.context));
	T_OK(cuModuleLoadData(&module, kernels_ptx));
	T_OK(cuModuleGetFunction(&cuda.kernels.fill, module, "stasis_fill_u32"));
	T_OK(cuModuleGetFunction(&cuda.kernels.add, module, "stasis_add_u32"));
	T_OK(cuModuleGetFunction(&cuda.kernels.compare, module, "stasis_compare_u32"));
	return cuda;
}

void ring_cuda_end(struct ring_cuda *cuda)
{
	T_OK(cuCtxSynchronize());
	T_OK(cuDevicePrimaryCtxRelease_v2(cuda->device));
}

void ring_launch(CUfunction kernel, CUstream stream, void **parameters)
{
	T_OK(cuLaunchKernel(kernel, 256, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
}

void ring_fill(const struct ring_cuda *cuda, CUstream stream, CUdeviceptr to, uint32_t value,
	       uint64_t count)
{
	void *parameters[] = {&to, &value, &count};

	ring_launch(cuda->kernels.fill, stream, parameters);
}

void ring_add(const struct ring_cuda *cuda, CUstream stream, CUdeviceptr to, uint32_t value,
	      uint64_t count)
{
	void *parameters[] = {&to, &value, &count};

	ring_launch(cuda->kernels.add, stream, parameters);
}

CUmemGenericAllocationHandle ring_create(const struct ring_cuda *cuda, size_t bytes)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle handle = 0;

	prop.location.id = cuda->device;
	T_OK(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

CUdeviceptr ring_map(const struct ring_cuda *cuda, CUmemGenericAllocationHandle handle,
		     size_t bytes, CUmemAccess_flags rights)
{
	CUmemAccessDesc access = t_access(rights);
	CUdeviceptr address = t_reserve(bytes);

	access.location.id = cuda->device;
	T_OK(cuMemMap(address, bytes, 0, handle, 0));
	T_OK(cuMemSetAccess(address, bytes, &access, 1));
	return address;
}

void ring_unmap(CUdeviceptr address, size_t bytes)
{
	T_OK(cuMemUnmap(address, bytes));
	T_OK(cuMemAddressFree(address, bytes));
}

void ring_block_make(const struct ring_cuda *cuda, struct ring_block *block)
{
	if (block->kind == RING_NATIVE) {
		block->address = t_alloc(block->bytes);
	} else {
		block->handle = ring_create(cuda, block->bytes);
		block->address = ring_map(cuda, block->handle, block->bytes,
					  CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	}
	if (block->kind == RING_SMALL)
		block->alias =
			ring_map(cuda, block->handle, block->bytes, CU_MEM_ACCESS_FLAGS_PROT_READ);
	ring_answers_record(block, cuda->device);
}

/* The neighbour writes into the big block and only reads the small one. */
void ring_block_import(const struct ring_cuda *cuda, struct ring_block *block, int fd)
{
	block->handle = t_import(fd);
	block->address = ring_map(cuda, block->handle, block->bytes,
				  block->kind == RING_BIG ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
							  : CU_MEM_ACCESS_FLAGS_PROT_READ);
	ring_answers_record(block, cuda->device);
}

void ring_block_free(struct ring_block *block)
{
	if (block->handle == 0) {
		T_OK(cuMemFree_v2(block->address));
		return;
	}
	if (block->alias != 0)
		ring_unmap(block->alias, block->bytes);
	ring_unmap(block->address, block->bytes);
	T_OK(cuMemRelease(block->handle));
}

/* What stands in a block; the team's part and the mark stand behind it. */
static uint32_t expected_word(const struct ring_block *block, uint64_t generation, uint64_t index)
{
	if (block->kind == RING_SMALL && index < BEAT_WORDS)
		return index < generation % BEAT_WORDS ? BEAT : ~BEAT;
	return ring_word(ring_salt(block->owner, block->kind), index) +
	       (uint32_t)generation * ring_step(block->owner, block->kind);
}

static uint64_t pattern_words(const struct ring_block *block)
{
	return (block->bytes - (block->kind == RING_BIG ? TAIL_BYTES : 0)) / 4;
}

static uint32_t *piece_new(void)
{
	uint32_t *piece = malloc(PIECE_WORDS * sizeof(*piece));

	if (!piece)
		t_fail("share_ring: no memory for a piece of %zu words", PIECE_WORDS);
	return piece;
}

void ring_block_write(struct ring_block *block, CUstream stream)
{
	CLEANUP(free) uint32_t *piece = piece_new();
	uint64_t total = block->bytes / 4;
	uint64_t patterned = pattern_words(block);

	for (uint64_t at = 0; at < total; at += PIECE_WORDS) {
		size_t count = total - at < PIECE_WORDS ? total - at : PIECE_WORDS;

		for (size_t i = 0; i < count; i++)
			piece[i] = at + i < patterned ? expected_word(block, 0, at + i) : 0;
		T_OK(cuMemcpyHtoDAsync_v2(block->address + at * 4, piece, count * 4, stream));
		T_OK(cuStreamSynchronize(stream));
	}
	block->generation = 0;
}

/* The first wrong word of the piece, or `count`. The loop without branches is what large blocks need. */
static size_t piece_wrong(const struct ring_block *block, uint64_t generation,
			  const uint32_t *piece, uint64_t at, size_t count)
{
	uint32_t salt = ring_salt(block->owner, block->kind);
	uint32_t added = (uint32_t)generation * ring_step(block->owner, block->kind);
	uint32_t differs = 0;
	size_t start = block->kind == RING_SMALL && at == 0 ? BEAT_WORDS : 0;

	for (size_t i = start; i < count; i++)
		differs |= piece[i] ^ (ring_word(salt, at + i) + added);
	if (!differs && start == 0)
		return count;
	for (size_t i = 0; i < count; i++)
		if (piece[i] != expected_word(block, generation, at + i))
			return i;
	return count;
}

void ring_block_verify(const struct ring_block *block, CUdeviceptr address, uint64_t generation,
		       CUstream stream, const char *reader, unsigned reader_index)
{
	CLEANUP(free) uint32_t *piece = piece_new();
	uint64_t total = pattern_words(block);

	for (uint64_t at = 0; at < total; at += PIECE_WORDS) {
		size_t count = total - at < PIECE_WORDS ? total - at : PIECE_WORDS;
		size_t wrong;

		T_OK(cuMemcpyDtoHAsync_v2(piece, address + at * 4, count * 4, stream));
		T_OK(cuStreamSynchronize(stream));
		wrong = piece_wrong(block, generation, piece, at, count);
		if (wrong == count)
			continue;
		t_fail("share_ring: process %d (%u, %s): block %s of %u at 0x%llx: offset %llu: "
		       "expected 0x%08x of generation %llu, found 0x%08x",
		       (int)getpid(), reader_index, reader, ring_kind_name(block->kind),
		       block->owner, (unsigned long long)address,
		       (unsigned long long)(at + wrong) * 4,
		       expected_word(block, generation, at + wrong), (unsigned long long)generation,
		       piece[wrong]);
	}
}

uint32_t ring_mark(unsigned writer, uint64_t round)
{
	return round == 0 ? 0 : ring_word(writer * 40503U + 77U, round);
}

void ring_words_verify(const struct ring_block *big, const char *what, uint64_t offset,
		       uint32_t word, size_t count, CUstream stream)
{
	CLEANUP(free) uint32_t *piece = piece_new();

	T_OK(cuMemcpyDtoHAsync_v2(piece, big->address + offset, count * 4, stream));
	T_OK(cuStreamSynchronize(stream));
	for (size_t i = 0; i < count; i++)
		if (piece[i] != word)
			t_fail("share_ring: process %d (%u, owner): %s in block big at 0x%llx: "
			       "offset %llu: expected 0x%08x, found 0x%08x",
			       (int)getpid(), big->owner, what, (unsigned long long)big->address,
			       (unsigned long long)offset + i * 4, word, piece[i]);
}

void ring_mark_verify(const struct ring_block *big, uint32_t mark, CUstream stream)
{
	ring_words_verify(big, "mark", big->bytes - MARK_BYTES, mark, MARK_WORDS, stream);
}

static void answers_ask(const struct ring_block *block, CUdevice device,
			struct ring_answers *ret_answers)
{
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};

	*ret_answers = (struct ring_answers){0};
	for (size_t i = 0; i < RING_ATTRIBUTES; i++)
		ret_answers->results[i] = cuPointerGetAttribute(&ret_answers->attributes[i],
								attributes[i], block->address);
	T_OK(cuMemGetAddressRange_v2(&ret_answers->range_address, &ret_answers->range_bytes,
				     block->address));
	if (block->handle == 0)
		return;
	T_OK(cuMemGetAllocationPropertiesFromHandle(&ret_answers->prop, block->handle));
	T_OK(cuMemRetainAllocationHandle(&ret_answers->retained,
					 (void *)block->address)); /* NOLINT */
	T_OK(cuMemRelease(ret_answers->retained));
	T_OK(cuMemGetAccess(&ret_answers->access, &location, block->address));
}

void ring_answers_record(struct ring_block *block, CUdevice device)
{
	answers_ask(block, device, &block->answers);
}

static void answer_is(const struct ring_block *block, unsigned index, const char *what,
		      unsigned long long expected, unsigned long long found)
{
	if (expected != found)
		t_fail("share_ring: process %d (%u): block %s of %u at 0x%llx: offset 0: %s: "
		       "expected 0x%llx, found 0x%llx",
		       (int)getpid(), index, ring_kind_name(block->kind), block->owner,
		       (unsigned long long)block->address, what, expected, found);
}

void ring_answers_check(const struct ring_block *block, CUdevice device, unsigned index)
{
	const struct ring_answers *was = &block->answers;
	struct ring_answers now;
	char what[32];

	answers_ask(block, device, &now);
	for (size_t i = 0; i < RING_ATTRIBUTES; i++) {
		(void)snprintf(what, sizeof(what), "pointer attribute %d", (int)attributes[i]);
		answer_is(block, index, what, was->results[i], now.results[i]);
		answer_is(block, index, what, was->attributes[i], now.attributes[i]);
	}
	answer_is(block, index, "start of its range", was->range_address, now.range_address);
	answer_is(block, index, "size of its range", was->range_bytes, now.range_bytes);
	answer_is(block, index, "handle of its address", was->retained, now.retained);
	answer_is(block, index, "rights", was->access, now.access);
	answer_is(block, index, "kind of allocation", was->prop.type, now.prop.type);
	answer_is(block, index, "handle types", was->prop.requestedHandleTypes,
		  now.prop.requestedHandleTypes);
	answer_is(block, index, "kind of location", was->prop.location.type,
		  now.prop.location.type);
	answer_is(block, index, "device", (unsigned)was->prop.location.id,
		  (unsigned)now.prop.location.id);
}
