#ifndef STASIS_BASE_CHUNK_H
#define STASIS_BASE_CHUNK_H

/*
 * How the bytes of an extent lie in its stripe files: the words that the transfer engine and the image
 * share.
 *
 * An extent of B bytes is cut into chunks of C bytes; the last one may be shorter. Chunk i lives in stripe
 * i % S. Inside a stripe, stored chunks lie behind each other in the order in which they were written, each
 * at a multiple of STASIS_STORED_ALIGNMENT, so that files open for direct I/O take them; a chunk of zeros is
 * not stored at all. Example with C = 4 MiB, B = 18 MiB, S = 2, chunk 2 all zeros:
 *
 *     stripe 0   | chunk 0   4 MiB | chunk 4   2 MiB |
 *     stripe 1   | chunk 3   4 MiB | chunk 1   4 MiB |        (the order of writing is not fixed)
 *
 * A stripe's file ends where its last stored chunk ends, rounded up to the alignment.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"

#define STASIS_STRIPES_MAX 16
#define STASIS_STORED_ALIGNMENT 4096
#define STASIS_CHUNK_BYTES_MIN (UINT64_C(64) << 10)
#define STASIS_CHUNK_BYTES_MAX (UINT64_C(64) << 20)
#define STASIS_CHUNK_BYTES_DEFAULT (UINT64_C(4) << 20)

/* How a chunk is stored; its digest is always that of its own bytes. Without a flag they lie there as they are. */
#define STASIS_CHUNK_ZERO UINT32_C(1) /* it reads as zeros; nothing of it is stored */
#define STASIS_CHUNK_LZ4 UINT32_C(2)  /* one LZ4 block */
#define STASIS_CHUNK_ZSTD UINT32_C(4) /* one Zstandard frame */

struct stasis_chunk {
	struct stasis_digest digest; /* of the chunk's own bytes, see stasis_digest_chunk */
	uint32_t flags;
	uint64_t stored_offset; /* in the stripe's file; 0 for a chunk of zeros */
	uint64_t stored_bytes;  /* what must be read there; 0 for a chunk of zeros */
};

static inline bool stasis_chunk_is_packed(const struct stasis_chunk *chunk)
{
	return chunk->flags == STASIS_CHUNK_LZ4 || chunk->flags == STASIS_CHUNK_ZSTD;
}

/* No chunk has two flags, or one that is not listed. */
static inline bool stasis_chunk_flags_are_known(uint32_t flags)
{
	return flags == 0 || flags == STASIS_CHUNK_ZERO || flags == STASIS_CHUNK_LZ4 ||
	       flags == STASIS_CHUNK_ZSTD;
}

/* Whether a chunk of `bytes` that is not flagged as zeros can store as many as its record says. */
static inline bool stasis_chunk_stored_bytes_fit(const struct stasis_chunk *chunk, uint64_t bytes)
{
	if (stasis_chunk_is_packed(chunk))
		return chunk->stored_bytes > 0 && chunk->stored_bytes < bytes;
	return chunk->stored_bytes == bytes;
}

static inline uint64_t stasis_chunk_count(uint64_t extent_bytes, uint64_t chunk_bytes)
{
	return extent_bytes / chunk_bytes + (extent_bytes % chunk_bytes != 0);
}

/* Bytes of chunk `index`, which the caller knows to be below the count. */
static inline uint64_t stasis_chunk_bytes(uint64_t extent_bytes, uint64_t chunk_bytes,
					  uint64_t index)
{
	uint64_t left = extent_bytes - index * chunk_bytes;

	return left < chunk_bytes ? left : chunk_bytes;
}

#endif
