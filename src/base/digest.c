/*
 * See digest.h.
 */

#include "base/digest.h"

#include <string.h>

#include "base/digest_wide.h"

/* The widest registers that both compiler and processor have: about twice the speed of the narrowest. */
static const struct stasis_digest_kind *digest_kind(void)
{
#ifdef STASIS_DIGEST_WIDE
	if (__builtin_cpu_supports("avx512f"))
		return &stasis_digest_kind_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &stasis_digest_kind_avx2;
#endif
	return &stasis_digest_kind_plain;
}

const char *stasis_digest_kind_name(void)
{
	return digest_kind()->name;
}

struct stasis_digest stasis_digest_of(const void *data, size_t bytes)
{
	return digest_kind()->whole(data, bytes);
}

void stasis_digest_begin(struct stasis_digest_stream *stream)
{
	digest_kind()->begin(stream);
}

void stasis_digest_update(struct stasis_digest_stream *stream, const void *data, size_t bytes)
{
	digest_kind()->update(stream, data, bytes);
}

struct stasis_digest stasis_digest_end(struct stasis_digest_stream *stream)
{
	return digest_kind()->end(stream);
}

static void u64_put(uint8_t *at, uint64_t value)
{
	for (size_t i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/*
 * A chunk's digest is that of 48 bytes: extent id (16), chunk index (8, little-endian), length (8, likewise)
 * and the digest of its bytes (16). The long input is digested in one call, or
 * piece by piece where it lies in the cache for another reason.
 */
struct stasis_digest stasis_digest_placed(const struct stasis_id *extent, uint64_t chunk_index,
					  const struct stasis_digest *content, size_t bytes)
{
	uint8_t place[48];

	memcpy(place, extent->bytes, 16);
	u64_put(place + 16, chunk_index);
	u64_put(place + 24, bytes);
	memcpy(place + 32, content->bytes, 16);
	return stasis_digest_of(place, sizeof(place));
}

struct stasis_digest stasis_digest_chunk(const struct stasis_id *extent, uint64_t chunk_index,
					 const void *data, size_t bytes)
{
	struct stasis_digest content = stasis_digest_of(data, bytes);

	return stasis_digest_placed(extent, chunk_index, &content, bytes);
}

bool stasis_digest_equal(const struct stasis_digest *a, const struct stasis_digest *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

const char *stasis_digest_format(const struct stasis_digest *digest,
				 char text[STASIS_DIGEST_TEXT_BYTES])
{
	struct stasis_id id;

	memcpy(id.bytes, digest->bytes, sizeof(id.bytes));
	return stasis_id_format(&id, text);
}

bool stasis_digest_parse(const char *text, struct stasis_digest *ret_digest)
{
	struct stasis_id id;

	if (!stasis_id_parse(text, &id))
		return false;
	memcpy(ret_digest->bytes, id.bytes, sizeof(id.bytes));
	return true;
}

bool stasis_bytes_are_zero(const void *data, size_t bytes)
{
	const uint8_t *at = data;

	/* The first byte is zero and each byte equals the next: memcmp runs at memory speed. */
	return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}
