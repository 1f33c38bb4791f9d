/*
 * What share_random writes into memory, and how it sees that it stands there. Memory that no other actor can reach is not
 * waited for: its work is queued on the stream of the actor, as whatever reads it.
 */
#include <string.h>

#include "base/compiler.h"
#include "check.h"
#include "share_random.h"

void launch(struct actor *actor, CUfunction kernel, void **parameters)
{
	T_OK(cuLaunchKernel(kernel, 64, 1, 1, 128, 1, 1, 0, actor->stream, parameters, NULL));
}

void finish(struct actor *actor)
{
	T_OK(cuStreamSynchronize(actor->stream));
}

static void constant_write(struct actor *actor, CUdeviceptr address, uint32_t value)
{
	uint64_t count = PIECE_WORDS;
	void *parameters[] = {&address, &value, &count};

	if (draw(actor, 2) == 0)
		launch(actor, actor->fill, parameters);
	else
		T_OK(cuMemsetD32Async(address, value, count, actor->stream));
}

static void pattern_write(struct actor *actor, const struct piece *piece, CUdeviceptr address)
{
	/* the buffer is read before the copy has come back: it is pageable memory */
	for (uint32_t i = 0; i < PIECE_WORDS; i++)
		actor->buffer[i] = piece_word(piece, i);
	T_OK(cuMemcpyHtoDAsync_v2(address, actor->buffer, PIECE_BYTES, actor->stream));
	finish(actor);
}

void piece_write(struct actor *actor, struct piece *piece, CUdeviceptr address)
{
	uint32_t value = mix(draw(actor, UINT32_MAX), 0);
	uint64_t count = PIECE_WORDS;
	void *parameters[] = {&address, &value, &count};

	switch (piece->is_known ? draw(actor, 4) : draw(actor, 2)) {
	case 0:
		*piece = (struct piece){.is_known = true, .added = value};
		constant_write(actor, address, value);
		break;
	case 1:
		*piece = (struct piece){.is_known = true, .factor = 1, .seed = value};
		pattern_write(actor, piece, address);
		break;
	default:
		piece->added += value;
		launch(actor, actor->add, parameters);
	}
}

void piece_verify(struct actor *actor, const struct piece *piece, CUdeviceptr address)
{
	T_OK(cuMemcpyDtoHAsync_v2(actor->buffer, address, PIECE_BYTES, actor->stream));
	finish(actor);
	for (uint32_t i = 0; i < PIECE_WORDS; i++)
		if (actor->buffer[i] != piece_word(piece, i))
			wrong(actor,
			      "memory of cuMemAlloc at 0x%llx: offset %u: expected 0x%08x, found "
			      "0x%08x",
			      address, i * 4, piece_word(piece, i), actor->buffer[i]);
}

static unsigned piece_count(const struct object *object)
{
	return object->blocks * (unsigned)PIECES_OF_BLOCK;
}

static void settle(struct actor *actor, const struct object *object)
{
	if (object->kind != OBJECT_PRIVATE)
		finish(actor);
}

void contents_write(struct actor *actor, struct object *object, CUdeviceptr address)
{
	unsigned first = draw(actor, piece_count(object));
	unsigned count = 1 + draw(actor, 4);

	for (unsigned i = first; i < piece_count(object) && i < first + count; i++)
		piece_write(actor, &object->pieces[i], address + i * PIECE_BYTES);
	settle(actor, object);
}

void contents_begin(struct actor *actor, struct object *object, CUdeviceptr address)
{
	for (unsigned i = 0; i < piece_count(object); i++) {
		struct piece *piece = &object->pieces[i];

		if (piece->is_known)
			continue;
		*piece = (struct piece){.is_known = true, .added = draw(actor, UINT32_MAX)};
		constant_write(actor, address + i * PIECE_BYTES, piece->added);
	}
	settle(actor, object);
}

void contents_copy(struct actor *actor, const struct slot *to, const struct slot *from)
{
	unsigned source = draw(actor, piece_count(from->object));
	unsigned target = draw(actor, piece_count(to->object));

	if (to->object == from->object && source == target)
		return;
	if (!from->object->pieces[source].is_known)
		return;
	T_OK(cuMemcpyDtoDAsync_v2(to->address + target * PIECE_BYTES,
				  from->address + source * PIECE_BYTES, PIECE_BYTES,
				  actor->stream));
	to->object->pieces[target] = from->object->pieces[source];
	finish(actor);
}

static void piece_compare(struct actor *actor, const struct object *object, CUdeviceptr address,
			  unsigned index)
{
	const struct piece *piece = &object->pieces[index];
	const uint32_t *words = actor->buffer + index * PIECE_WORDS;
	uint32_t differs = 0;

	for (uint32_t i = 0; i < PIECE_WORDS; i++)
		differs |= words[i] ^ piece_word(piece, i);
	for (uint32_t i = 0; differs && i < PIECE_WORDS; i++)
		if (words[i] != piece_word(piece, i))
			wrong(actor,
			      "object %u of process %u, kind %d, at 0x%llx: offset %zu of %zu: "
			      "expected 0x%08x, "
			      "found 0x%08x",
			      model_index(actor, object), object->creator, (int)object->kind,
			      address, index * PIECE_BYTES + (size_t)i * 4, object_bytes(object),
			      piece_word(piece, i), words[i]);
}

/* The device's own comparison of a piece that is the same word all over. */
static void constant_verify(struct actor *actor, const struct object *object, CUdeviceptr address,
			    unsigned index)
{
	CUdeviceptr from = address + index * PIECE_BYTES;
	uint32_t value = object->pieces[index].added;
	uint64_t count = PIECE_WORDS;
	uint64_t found = 0;
	void *parameters[] = {&from, &value, &count, &actor->scratch};

	T_OK(cuMemsetD8Async(actor->scratch, 0, sizeof(found), actor->stream));
	launch(actor, actor->compare, parameters);
	T_OK(cuMemcpyDtoHAsync_v2(&found, actor->scratch, sizeof(found), actor->stream));
	finish(actor);
	if (found != 0)
		wrong(actor,
		      "object %u of process %u at 0x%llx: %llu words of piece %u are not 0x%08x to "
		      "a "
		      "kernel",
		      model_index(actor, object), object->creator, address,
		      (unsigned long long)found, index, value);
}

void contents_verify(struct actor *actor, struct object *object, CUdeviceptr address)
{
	unsigned one = draw(actor, piece_count(object));

	T_OK(cuMemcpyDtoHAsync_v2(actor->buffer, address, object_bytes(object), actor->stream));
	finish(actor);
	for (unsigned i = 0; i < piece_count(object); i++)
		if (object->pieces[i].is_known)
			piece_compare(actor, object, address, i);
	if (object->pieces[one].is_known && object->pieces[one].factor == 0)
		constant_verify(actor, object, address, one);
}
