#ifndef STASIS_TRANSFER_CODEC_H
#define STASIS_TRANSFER_CODEC_H

/*
 * Compression of chunks, one by one, as a plug-in operation of the engine. A chunk is packed only where that
 * pays; how it is stored is said by its flags, so that an image may hold chunks of every kind. Unpacking never
 * writes beyond the chunk, whatever it is given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chunk.h"
#include "base/compiler.h"

/* A larger chunk would take too long to pack for a transfer that is to be stopped within 100 ms. */
#define STASIS_TRANSFER_PACKED_CHUNK_BYTES_MAX (UINT64_C(16) << 20)

#define STASIS_TRANSFER_CODECS 2

struct stasis_transfer_codec {
	const char *name; /* "lz4" */
	uint32_t flag;    /* STASIS_CHUNK_LZ4, … */
	/* What one thread needs to use it; NULL: no memory. `close` accepts NULL. */
	void *(*open)(void);
	void (*close)(void *state);
	/* Packs into at most `room` bytes and returns how many it took; 0: it does not fit. */
	size_t (*pack)(void *state, uint8_t *to, size_t room, const uint8_t *from, size_t bytes);
	/* Unpacks to exactly `bytes`; false: what was packed is not that, or is damaged. */
	bool (*unpack)(void *state, uint8_t *to, size_t bytes, const uint8_t *from,
		       size_t packed_bytes);
};

extern const struct stasis_transfer_codec stasis_transfer_codec_lz4;
extern const struct stasis_transfer_codec stasis_transfer_codec_zstd;

/* By name, "lz4" or "zstd"; NULL: there is no such codec. */
const struct stasis_transfer_codec *stasis_transfer_codec_find(const char *name);

/* One thread's buffer and states, for packing and unpacking; zeros are the empty value. */
struct stasis_transfer_packing {
	uint8_t *buffer; /* aligned for direct I/O */
	size_t buffer_bytes;
	void *states[STASIS_TRANSFER_CODECS];
};

/* Room for chunks of so many bytes, touched. Returns 0 or an errno, then with nothing kept. */
NODISCARD int stasis_transfer_packing_init(struct stasis_transfer_packing *packing,
					   size_t chunk_bytes);
void stasis_transfer_packing_fini(struct stasis_transfer_packing *packing);

static inline void cleanup_transfer_packing(struct stasis_transfer_packing *packing)
{
	stasis_transfer_packing_fini(packing);
}

/*
 * Packs a chunk into the buffer, padded with zeros to a whole block. Returns how many bytes are to be stored;
 * 0: it does not pay, and the chunk is stored as it is.
 */
size_t stasis_transfer_pack(struct stasis_transfer_packing *packing,
			    const struct stasis_transfer_codec *codec, const uint8_t *from,
			    size_t bytes);

/* Unpacks what lies in the buffer by a chunk's flags; *ret_name, for messages, is the codec's. */
bool stasis_transfer_unpack(struct stasis_transfer_packing *packing,
			    const struct stasis_chunk *chunk, uint8_t *to, size_t bytes,
			    const char **ret_name);

#endif
