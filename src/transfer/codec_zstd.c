/*
 * Zstandard frames, one a chunk; see codec.h.
 */

#include <stdlib.h>
#include <zstd.h>

#include "transfer/codec.h"

/* The fastest of the usual levels: even so a disk is rarely as fast. */
#define LEVEL 1

struct zstd_state {
	ZSTD_CCtx *packer;
	ZSTD_DCtx *unpacker;
};

static void zstd_close(void *data)
{
	struct zstd_state *state = data;

	if (!state)
		return;
	(void)ZSTD_freeCCtx(state->packer);
	(void)ZSTD_freeDCtx(state->unpacker);
	free(state);
}

static void *zstd_open(void)
{
	struct zstd_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->packer = ZSTD_createCCtx();
	state->unpacker = ZSTD_createDCtx();
	if (!state->packer || !state->unpacker) {
		zstd_close(state);
		return NULL;
	}
	return state;
}

static size_t zstd_pack(void *data, uint8_t *to, size_t room, const uint8_t *from, size_t bytes)
{
	struct zstd_state *state = data;
	size_t count = ZSTD_compressCCtx(state->packer, to, room, from, bytes, LEVEL);

	return ZSTD_isError(count) ? 0 : count;
}

/* Several frames behind each other would be unpacked, too: their sum is held against the chunk's length. */
static bool zstd_unpack(void *data, uint8_t *to, size_t bytes, const uint8_t *from,
			size_t packed_bytes)
{
	struct zstd_state *state = data;
	size_t count = ZSTD_decompressDCtx(state->unpacker, to, bytes, from, packed_bytes);

	return !ZSTD_isError(count) && count == bytes;
}

const struct stasis_transfer_codec stasis_transfer_codec_zstd = {
	.name = "zstd",
	.flag = STASIS_CHUNK_ZSTD,
	.open = zstd_open,
	.close = zstd_close,
	.pack = zstd_pack,
	.unpack = zstd_unpack,
};
