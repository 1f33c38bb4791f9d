/*
 * The coding of sums files; see sums.h.
 *
 *     0   magic "STASISUM"          32  logical bytes     56  stripe count (4)
 *     8   version (4)               40  chunk bytes       60  reserved (4), 0
 *     12  header bytes (4), 64      48  chunk count       64  records, 40 bytes each
 *     16  extent id (16)                                  end  checksum (16) of all before it
 *
 *     record:   0 digest (16)   16 flags (4)   20 reserved (4), 0   24 stored offset   32 stored bytes
 */

#include "image/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/manifest.h"

static const uint8_t magic[8] = {'S', 'T', 'A', 'S', 'I', 'S', 'U', 'M'};

static void u32_put(uint8_t *at, uint32_t value)
{
	for (size_t i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static void u64_put(uint8_t *at, uint64_t value)
{
	for (size_t i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t u32_get(const uint8_t *at)
{
	uint32_t value = 0;

	for (size_t i = 0; i < 4; i++)
		value |= (uint32_t)at[i] << (8 * i);
	return value;
}

static uint64_t u64_get(const uint8_t *at)
{
	uint64_t value = 0;

	for (size_t i = 0; i < 8; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

void stasis_image_sums_fini(struct stasis_image_sums *sums)
{
	free(sums->chunks);
	*sums = (struct stasis_image_sums){0};
}

static void header_put(uint8_t *at, const struct stasis_image_sums *sums)
{
	memcpy(at, magic, sizeof(magic));
	u32_put(at + 8, STASIS_IMAGE_SUMS_VERSION);
	u32_put(at + 12, STASIS_IMAGE_SUMS_HEADER_BYTES);
	memcpy(at + 16, sums->extent_id.bytes, sizeof(sums->extent_id.bytes));
	u64_put(at + 32, sums->logical_bytes);
	u64_put(at + 40, sums->chunk_bytes);
	u64_put(at + 48, sums->chunk_count);
	u32_put(at + 56, sums->stripe_count);
	u32_put(at + 60, 0);
}

static void record_put(uint8_t *at, const struct stasis_chunk *chunk)
{
	memcpy(at, chunk->digest.bytes, sizeof(chunk->digest.bytes));
	u32_put(at + 16, chunk->flags);
	u32_put(at + 20, 0);
	u64_put(at + 24, chunk->stored_offset);
	u64_put(at + 32, chunk->stored_bytes);
}

int stasis_image_sums_encode(const struct stasis_image_sums *sums, uint8_t **ret_data,
			     struct stasis_error *err)
{
	size_t bytes = stasis_image_sums_bytes(sums->chunk_count);
	size_t covered = bytes - STASIS_IMAGE_SUMS_CHECKSUM_BYTES;
	struct stasis_digest checksum;
	uint8_t *data = malloc(bytes);

	if (!data)
		return stasis_fail_errno(err, STASIS_REFUSED, "get %zu bytes for sums", bytes);
	header_put(data, sums);
	for (uint64_t i = 0; i < sums->chunk_count; i++)
		record_put(data + STASIS_IMAGE_SUMS_HEADER_BYTES +
				   i * STASIS_IMAGE_SUMS_RECORD_BYTES,
			   &sums->chunks[i]);
	checksum = stasis_digest_of(data, covered);
	memcpy(data + covered, checksum.bytes, sizeof(checksum.bytes));
	*ret_data = data;
	return 0;
}

/* What must be known before anything else is believed. */
static int frame_check(const char *name, const uint8_t *data, size_t bytes,
		       struct stasis_error *err)
{
	struct stasis_digest checksum;
	size_t covered;

	if (bytes < stasis_image_sums_bytes(0))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: %zu bytes are too few for a sums file", name, bytes);
	if (memcmp(data, magic, sizeof(magic)) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: does not begin with 'STASISUM': this is no sums file",
				   name);
	if (u32_get(data + 8) != STASIS_IMAGE_SUMS_VERSION)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: has version %u, this stasis reads version %d", name,
				   u32_get(data + 8), STASIS_IMAGE_SUMS_VERSION);
	if (u32_get(data + 12) != STASIS_IMAGE_SUMS_HEADER_BYTES)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: a header of %u bytes, not %d", name,
				   u32_get(data + 12), STASIS_IMAGE_SUMS_HEADER_BYTES);
	covered = bytes - STASIS_IMAGE_SUMS_CHECKSUM_BYTES;
	checksum = stasis_digest_of(data, covered);
	if (memcmp(data + covered, checksum.bytes, sizeof(checksum.bytes)) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: its checksum does not fit: the file was damaged", name);
	return 0;
}

static int header_get(const char *name, const uint8_t *data, size_t bytes,
		      struct stasis_image_sums *sums, struct stasis_error *err)
{
	memcpy(sums->extent_id.bytes, data + 16, sizeof(sums->extent_id.bytes));
	sums->logical_bytes = u64_get(data + 32);
	sums->chunk_bytes = u64_get(data + 40);
	sums->chunk_count = u64_get(data + 48);
	sums->stripe_count = u32_get(data + 56);
	if (u32_get(data + 60) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: reserved bits are set in its header",
				   name);
	if (sums->logical_bytes == 0 || sums->logical_bytes > STASIS_IMAGE_BYTES_MAX ||
	    sums->chunk_bytes < STASIS_CHUNK_BYTES_MIN ||
	    sums->chunk_bytes > STASIS_CHUNK_BYTES_MAX ||
	    sums->chunk_bytes % STASIS_STORED_ALIGNMENT != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: %llu bytes in chunks of %llu are out of range", name,
				   (unsigned long long)sums->logical_bytes,
				   (unsigned long long)sums->chunk_bytes);
	if (sums->stripe_count == 0 || sums->stripe_count > STASIS_STRIPES_MAX)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: %u stripes are not 1 to %d", name,
				   sums->stripe_count, STASIS_STRIPES_MAX);
	if (sums->chunk_count != stasis_chunk_count(sums->logical_bytes, sums->chunk_bytes) ||
	    sums->chunk_count > STASIS_IMAGE_CHUNKS_MAX ||
	    bytes != stasis_image_sums_bytes(sums->chunk_count))
		return stasis_fail(
			err, STASIS_BAD_IMAGE,
			"%s: %llu chunks do not fit %llu bytes in chunks of %llu, or the "
			"file's %zu bytes",
			name, (unsigned long long)sums->chunk_count,
			(unsigned long long)sums->logical_bytes,
			(unsigned long long)sums->chunk_bytes, bytes);
	return 0;
}

static int record_get(const char *name, const uint8_t *at, uint64_t index,
		      struct stasis_chunk *chunk, struct stasis_error *err)
{
	memcpy(chunk->digest.bytes, at, sizeof(chunk->digest.bytes));
	chunk->flags = u32_get(at + 16);
	chunk->stored_offset = u64_get(at + 24);
	chunk->stored_bytes = u64_get(at + 32);
	if (!stasis_chunk_flags_are_known(chunk->flags) || u32_get(at + 20) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: chunk %llu: reserved bits are set",
				   name, (unsigned long long)index);
	return 0;
}

int stasis_image_sums_decode(const char *name, const uint8_t *data, size_t bytes,
			     struct stasis_image_sums *ret_sums, struct stasis_error *err)
{
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};

	if (frame_check(name, data, bytes, err) != 0 ||
	    header_get(name, data, bytes, &sums, err) != 0)
		return -1;
	sums.chunks = calloc(sums.chunk_count, sizeof(*sums.chunks));
	if (!sums.chunks)
		return stasis_fail_errno(err, STASIS_REFUSED, "read '%s'", name);
	for (uint64_t i = 0; i < sums.chunk_count; i++) {
		if (record_get(name,
			       data + STASIS_IMAGE_SUMS_HEADER_BYTES +
				       i * STASIS_IMAGE_SUMS_RECORD_BYTES,
			       i, &sums.chunks[i], err) != 0)
			return -1;
	}
	*ret_sums = sums;
	sums = (struct stasis_image_sums){0};
	return 0;
}
