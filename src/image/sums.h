#ifndef STASIS_IMAGE_SUMS_H
#define STASIS_IMAGE_SUMS_H

/*
 * The sums file of an extent: for each chunk its digest, its flags and where its bytes are stored. A
 * fixed-width little-endian format; docs/format.md has the layout. Also the rules for how chunks lie in
 * stripes, which the writer and the reader hold alike. No files. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/chunk.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"

#define STASIS_IMAGE_SUMS_VERSION 1
#define STASIS_IMAGE_SUMS_HEADER_BYTES 64
#define STASIS_IMAGE_SUMS_RECORD_BYTES 40
#define STASIS_IMAGE_SUMS_CHECKSUM_BYTES 16

struct stasis_image_sums {
	struct stasis_id extent_id;
	uint64_t logical_bytes;
	uint64_t chunk_bytes;
	uint64_t chunk_count;
	uint32_t stripe_count;
	struct stasis_chunk *chunks;
};

void stasis_image_sums_fini(struct stasis_image_sums *sums);

static inline void cleanup_image_sums(struct stasis_image_sums *sums)
{
	stasis_image_sums_fini(sums);
}

/* The size of the file; `chunk_count` is at most STASIS_IMAGE_CHUNKS_MAX. */
static inline uint64_t stasis_image_sums_bytes(uint64_t chunk_count)
{
	return STASIS_IMAGE_SUMS_HEADER_BYTES + chunk_count * STASIS_IMAGE_SUMS_RECORD_BYTES +
	       STASIS_IMAGE_SUMS_CHECKSUM_BYTES;
}

/* The caller frees *ret_data, which has stasis_image_sums_bytes() bytes. */
NODISCARD int stasis_image_sums_encode(const struct stasis_image_sums *sums, uint8_t **ret_data,
				       struct stasis_error *err);

/*
 * Reads a file whole or refuses it with STASIS_BAD_IMAGE. `name` is what errors call it. The caller passes
 * *ret_sums to stasis_image_sums_fini.
 */
NODISCARD int stasis_image_sums_decode(const char *name, const uint8_t *data, size_t bytes,
				       struct stasis_image_sums *ret_sums,
				       struct stasis_error *err);

/*
 * Where each stripe's last stored chunk ends; the file's size is that, rounded up to the alignment. Chunks
 * that are out of all range are left out: stasis_image_sums_check refuses them.
 */
void stasis_image_sums_stripe_ends(const struct stasis_image_sums *sums,
				   uint64_t ret_ends[STASIS_STRIPES_MAX]);

/*
 * Refuses, with STASIS_BAD_IMAGE and by chunk, what does not lie as base/chunk.h says: a chunk of zeros whose
 * digest is not that of zeros in its place or that has a stored range; any other whose range is not its
 * own length, not aligned, beyond its stripe's end or over another's; stripes with gaps.
 */
NODISCARD int stasis_image_sums_check(const char *name, const struct stasis_image_sums *sums,
				      const uint64_t stripe_bytes[STASIS_STRIPES_MAX],
				      struct stasis_error *err);

#endif
