/*
 * See digest_wide.h. Compiled once for each kind of processor, with STASIS_DIGEST_KIND its name; xxHash is
 * included whole, so that it uses the registers that this file may use.
 */

#include "base/digest_wide.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PASTE_NAMES(a, b) a##b
#define KIND_NAME(kind) PASTE_NAMES(stasis_digest_kind_, kind)
#define TEXT_OF(name) #name
#define KIND_TEXT(kind) TEXT_OF(kind)

static struct stasis_digest canonical(XXH128_hash_t hash)
{
	struct stasis_digest digest;
	XXH128_canonical_t bytes;

	XXH128_canonicalFromHash(&bytes, hash);
	_Static_assert(sizeof(bytes.digest) == sizeof(digest.bytes), "XXH3 with 128 bits");
	memcpy(digest.bytes, bytes.digest, sizeof(digest.bytes));
	return digest;
}

static struct stasis_digest whole(const void *data, size_t bytes)
{
	return canonical(XXH3_128bits(data, bytes));
}

static void begin(struct stasis_digest_stream *stream)
{
	_Static_assert(sizeof(stream->state) >= sizeof(XXH3_state_t) &&
			       _Alignof(struct stasis_digest_stream) >= _Alignof(XXH3_state_t),
		       "room for the state of xxHash");
	(void)XXH3_128bits_reset((XXH3_state_t *)stream->state);
}

static void update(struct stasis_digest_stream *stream, const void *data, size_t bytes)
{
	(void)XXH3_128bits_update((XXH3_state_t *)stream->state, data, bytes);
}

static struct stasis_digest end(const struct stasis_digest_stream *stream)
{
	return canonical(XXH3_128bits_digest((const XXH3_state_t *)stream->state));
}

const struct stasis_digest_kind KIND_NAME(STASIS_DIGEST_KIND) = {
	.name = KIND_TEXT(STASIS_DIGEST_KIND),
	.whole = whole,
	.begin = begin,
	.update = update,
	.end = end,
};
