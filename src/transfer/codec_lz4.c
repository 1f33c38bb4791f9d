/*
 * LZ4 blocks, without a frame: their length is the chunk's record. See codec.h.
 */

#include <lz4.h>
#include <stdlib.h>

#include "transfer/codec.h"

_Static_assert(STASIS_CHUNK_BYTES_MAX <= LZ4_MAX_INPUT_SIZE, "a chunk's length is an int");

static void *lz4_open(void)
{
	return malloc((size_t)LZ4_sizeofState());
}

static size_t lz4_pack(void *state, uint8_t *to, size_t room, const uint8_t *from, size_t bytes)
{
	int count = LZ4_compress_fast_extState(state, (const char *)from, (char *)to, (int)bytes,
					       (int)room, 1);

	return count > 0 ? (size_t)count : 0;
}

static bool lz4_unpack(void *state, uint8_t *to, size_t bytes, const uint8_t *from,
		       size_t packed_bytes)
{
	(void)state;
	return LZ4_decompress_safe((const char *)from, (char *)to, (int)packed_bytes, (int)bytes) ==
	       (int)bytes;
}

const struct stasis_transfer_codec stasis_transfer_codec_lz4 = {
	.name = "lz4",
	.flag = STASIS_CHUNK_LZ4,
	.open = lz4_open,
	.close = free,
	.pack = lz4_pack,
	.unpack = lz4_unpack,
};
