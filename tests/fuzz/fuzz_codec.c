/*
 * Description: no bytes make the unpacking of a chunk write beyond it or say that it is whole when it is not; what
 * was packed unpacks to the same bytes.
 *
 * Input: flags of the chunk (1 byte), its length (2 bytes, little-endian, in units of 16), packed bytes.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "transfer/codec.h"

#define ROOM_BYTES (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct stasis_transfer_packing packing;

static void unpack(const struct stasis_chunk *chunk, size_t bytes)
{
	/* Of just that length, so that a sanitizer sees the first byte behind it. */
	CLEANUP(free) uint8_t *to = malloc(bytes);
	const char *name = NULL;

	if (to && stasis_transfer_unpack(&packing, chunk, to, bytes, &name) && !name)
		abort();
}

static void pack(const char *name, const uint8_t *from, size_t bytes)
{
	const struct stasis_transfer_codec *codec = stasis_transfer_codec_find(name);
	struct stasis_chunk chunk = {.flags = codec->flag};
	CLEANUP(free) uint8_t *to = malloc(bytes + 1);

	chunk.stored_bytes = stasis_transfer_pack(&packing, codec, from, bytes);
	if (!to || chunk.stored_bytes == 0)
		return;
	if (!stasis_chunk_stored_bytes_fit(&chunk, bytes) ||
	    !stasis_transfer_unpack(&packing, &chunk, to, bytes, &name) ||
	    memcmp(to, from, bytes) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stasis_chunk chunk = {.flags = size > 0 ? data[0] : 0};
	size_t bytes;

	if (size < 4 || size > ROOM_BYTES)
		return 0;
	if (!packing.buffer && stasis_transfer_packing_init(&packing, ROOM_BYTES) != 0)
		return 0;
	pack("lz4", data, size);
	pack("zstd", data, size);
	bytes = ((size_t)data[1] | (size_t)data[2] << 8) * 16 + 1;
	chunk.stored_bytes = size - 3;
	memcpy(packing.buffer, data + 3, size - 3);
	unpack(&chunk, bytes);
	return 0;
}
