#ifndef STASIS_BASE_DIGEST_WIDE_H
#define STASIS_BASE_DIGEST_WIDE_H

/*
 * XXH3 compiled for one kind of processor: what digest.c chooses from. All kinds give the same digests.
 * Internal to the base module.
 */

#include "base/digest.h"

struct stasis_digest_kind {
	const char *name; /* "avx2" */
	struct stasis_digest (*whole)(const void *data, size_t bytes);
	void (*begin)(struct stasis_digest_stream *stream);
	void (*update)(struct stasis_digest_stream *stream, const void *data, size_t bytes);
	struct stasis_digest (*end)(const struct stasis_digest_stream *stream);
};

extern const struct stasis_digest_kind stasis_digest_kind_plain;
extern const struct stasis_digest_kind stasis_digest_kind_avx2;
extern const struct stasis_digest_kind stasis_digest_kind_avx512;

#endif
