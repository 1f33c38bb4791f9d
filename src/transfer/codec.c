/*
 * See codec.h.
 */

#include "transfer/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/number.h"

/* What packing must save to be worth the time of every later load: one part in so many. */
#define GAIN_PART 16

static const struct stasis_transfer_codec *const codecs[STASIS_TRANSFER_CODECS] = {
	&stasis_transfer_codec_lz4,
	&stasis_transfer_codec_zstd,
};

const struct stasis_transfer_codec *stasis_transfer_codec_find(const char *name)
{
	for (size_t i = 0; i < STASIS_TRANSFER_CODECS; i++) {
		if (strcmp(codecs[i]->name, name) == 0)
			return codecs[i];
	}
	return NULL;
}

static int packing_fill(struct stasis_transfer_packing *packing, size_t chunk_bytes)
{
	int code = stasis_fault_point("transfer_packing");

	if (code)
		return code;
	packing->buffer = aligned_alloc(STASIS_STORED_ALIGNMENT, chunk_bytes);
	if (!packing->buffer)
		return ENOMEM;
	memset(packing->buffer, 0, chunk_bytes);
	packing->buffer_bytes = chunk_bytes;
	for (size_t i = 0; i < STASIS_TRANSFER_CODECS; i++) {
		packing->states[i] = codecs[i]->open();
		if (!packing->states[i])
			return ENOMEM;
	}
	return 0;
}

int stasis_transfer_packing_init(struct stasis_transfer_packing *packing, size_t chunk_bytes)
{
	int code;

	memset(packing, 0, sizeof(*packing));
	code = packing_fill(packing, chunk_bytes);
	if (code)
		stasis_transfer_packing_fini(packing);
	return code;
}

void stasis_transfer_packing_fini(struct stasis_transfer_packing *packing)
{
	for (size_t i = 0; i < STASIS_TRANSFER_CODECS; i++)
		codecs[i]->close(packing->states[i]);
	free(packing->buffer);
	memset(packing, 0, sizeof(*packing));
}

/* Room for what still pays: at least one block less on the disk, and enough of the whole. */
static size_t pack_room(size_t bytes)
{
	size_t blocks = (size_t)stasis_round_up(bytes, STASIS_STORED_ALIGNMENT);

	return (size_t)stasis_min_u64(blocks - STASIS_STORED_ALIGNMENT, bytes - bytes / GAIN_PART);
}

size_t stasis_transfer_pack(struct stasis_transfer_packing *packing,
			    const struct stasis_transfer_codec *codec, const uint8_t *from,
			    size_t bytes)
{
	size_t room = pack_room(bytes);
	size_t packed = 0;

	for (size_t i = 0; i < STASIS_TRANSFER_CODECS && room > 0; i++) {
		if (codecs[i] == codec)
			packed =
				codec->pack(packing->states[i], packing->buffer, room, from, bytes);
	}
	if (packed > 0)
		memset(packing->buffer + packed, 0,
		       (size_t)stasis_round_up(packed, STASIS_STORED_ALIGNMENT) - packed);
	return packed;
}

bool stasis_transfer_unpack(struct stasis_transfer_packing *packing,
			    const struct stasis_chunk *chunk, uint8_t *to, size_t bytes,
			    const char **ret_name)
{
	for (size_t i = 0; i < STASIS_TRANSFER_CODECS; i++) {
		if (chunk->flags != codecs[i]->flag)
			continue;
		*ret_name = codecs[i]->name;
		return codecs[i]->unpack(packing->states[i], to, bytes, packing->buffer,
					 (size_t)chunk->stored_bytes);
	}
	*ret_name = "nothing known";
	return false;
}
