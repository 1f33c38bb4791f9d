#ifndef STASIS_BASE_DIGEST_H
#define STASIS_BASE_DIGEST_H

/*
 * Digests that find damage (not tampering): XXH3 with 128 bits, by xxHash. The digest of a chunk covers
 * where it belongs as well as its bytes, so that no chunk can stand in for another. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/id.h"

#define STASIS_DIGEST_NAME "xxh3-128"
#define STASIS_DIGEST_TEXT_BYTES STASIS_ID_TEXT_BYTES

struct stasis_digest {
	uint8_t bytes[16]; /* canonical (big-endian) form */
};

struct stasis_digest stasis_digest_of(const void *data, size_t bytes);

/* The same of bytes that come piece by piece. Holds the state of xxHash; in place, nothing to free. */
struct stasis_digest_stream {
	_Alignas(64) uint8_t state[640];
};

void stasis_digest_begin(struct stasis_digest_stream *stream);
void stasis_digest_update(struct stasis_digest_stream *stream, const void *data, size_t bytes);
struct stasis_digest stasis_digest_end(struct stasis_digest_stream *stream);

/* Which registers of this processor digests use: "plain", "avx2", "avx512". */
const char *stasis_digest_kind_name(void);

/* Digest of a chunk: extent id, chunk index, length in bytes, bytes. docs/format.md has the layout. */
struct stasis_digest stasis_digest_chunk(const struct stasis_id *extent, uint64_t chunk_index,
					 const void *data, size_t bytes);

/* The same from the digest of the bytes alone, where that is known already (runs of zeros). */
struct stasis_digest stasis_digest_placed(const struct stasis_id *extent, uint64_t chunk_index,
					  const struct stasis_digest *content, size_t bytes);

bool stasis_digest_equal(const struct stasis_digest *a, const struct stasis_digest *b);
const char *stasis_digest_format(const struct stasis_digest *digest,
				 char text[STASIS_DIGEST_TEXT_BYTES]);
NODISCARD bool stasis_digest_parse(const char *text, struct stasis_digest *ret_digest);

/* True where all bytes are zero. */
bool stasis_bytes_are_zero(const void *data, size_t bytes);

#endif
