/*
 * How chunks must lie in stripes; see sums.h and base/chunk.h.
 */

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "image/manifest.h"
#include "image/sums.h"

struct check {
	const char *name;
	const struct stasis_image_sums *sums;
	const uint64_t *stripe_bytes;
	struct stasis_error *err;
};

/* A stored range, for sorting. */
struct range {
	uint64_t offset;
	uint64_t end; /* rounded up to the alignment */
	uint64_t chunk_index;
	uint32_t stripe_index;
};

static bool chunk_is_zero(const struct stasis_chunk *chunk)
{
	return (chunk->flags & STASIS_CHUNK_ZERO) != 0;
}

static uint64_t bytes_of(const struct stasis_image_sums *sums, uint64_t index)
{
	return stasis_chunk_bytes(sums->logical_bytes, sums->chunk_bytes, index);
}

void stasis_image_sums_stripe_ends(const struct stasis_image_sums *sums,
				   uint64_t ret_ends[STASIS_STRIPES_MAX])
{
	for (size_t s = 0; s < STASIS_STRIPES_MAX; s++)
		ret_ends[s] = 0;
	for (uint64_t i = 0; i < sums->chunk_count; i++) {
		const struct stasis_chunk *chunk = &sums->chunks[i];
		uint64_t *end = &ret_ends[i % sums->stripe_count];

		if (chunk_is_zero(chunk) || chunk->stored_offset > STASIS_IMAGE_BYTES_MAX ||
		    chunk->stored_bytes > STASIS_CHUNK_BYTES_MAX)
			continue;
		if (chunk->stored_offset + chunk->stored_bytes > *end)
			*end = chunk->stored_offset + chunk->stored_bytes;
	}
}

/* Digests of the only two runs of zeros there are: a whole chunk's and the last one's. */
static int zeros_digest(const struct check *c, struct stasis_digest *ret_whole,
			struct stasis_digest *ret_last)
{
	CLEANUP(free) uint8_t *zeros = calloc(1, c->sums->chunk_bytes);

	if (!zeros)
		return stasis_fail_errno(c->err, STASIS_REFUSED, "check '%s'", c->name);
	*ret_whole = stasis_digest_of(zeros, c->sums->chunk_bytes);
	*ret_last = stasis_digest_of(zeros, bytes_of(c->sums, c->sums->chunk_count - 1));
	return 0;
}

static int zero_chunk_check(const struct check *c, uint64_t index,
			    const struct stasis_digest *zeros)
{
	const struct stasis_chunk *chunk = &c->sums->chunks[index];
	struct stasis_digest wanted;

	if (chunk->stored_offset != 0 || chunk->stored_bytes != 0)
		return stasis_fail(c->err, STASIS_BAD_IMAGE,
				   "%s: chunk %llu is flagged as zeros and yet has stored bytes",
				   c->name, (unsigned long long)index);
	wanted = stasis_digest_placed(&c->sums->extent_id, index, zeros, bytes_of(c->sums, index));
	if (!stasis_digest_equal(&chunk->digest, &wanted))
		return stasis_fail(c->err, STASIS_BAD_IMAGE,
				   "%s: chunk %llu is flagged as zeros, but its digest is not that "
				   "of zeros",
				   c->name, (unsigned long long)index);
	return 0;
}

static int stored_chunk_check(const struct check *c, uint64_t index, struct range *ret_range)
{
	const struct stasis_chunk *chunk = &c->sums->chunks[index];
	uint32_t stripe = (uint32_t)(index % c->sums->stripe_count);
	uint64_t rounded;

	if (!stasis_chunk_stored_bytes_fit(chunk, bytes_of(c->sums, index)))
		return stasis_fail(c->err, STASIS_BAD_IMAGE,
				   "%s: chunk %llu is %s, but stores %llu bytes "
				   "where it has %llu",
				   c->name, (unsigned long long)index,
				   stasis_chunk_is_packed(chunk) ? "compressed"
								 : "not flagged as zeros",
				   (unsigned long long)chunk->stored_bytes,
				   (unsigned long long)bytes_of(c->sums, index));
	/* At most STASIS_CHUNK_BYTES_MAX now. */
	rounded = stasis_round_up(chunk->stored_bytes, STASIS_STORED_ALIGNMENT);
	if (chunk->stored_offset % STASIS_STORED_ALIGNMENT != 0 ||
	    rounded > c->stripe_bytes[stripe] ||
	    chunk->stored_offset > c->stripe_bytes[stripe] - rounded)
		return stasis_fail(
			c->err, STASIS_BAD_IMAGE,
			"%s: chunk %llu at offset %llu is not aligned or lies beyond the "
			"%llu bytes of stripe %u",
			c->name, (unsigned long long)index,
			(unsigned long long)chunk->stored_offset,
			(unsigned long long)c->stripe_bytes[stripe], stripe);
	*ret_range =
		(struct range){chunk->stored_offset, chunk->stored_offset + rounded, index, stripe};
	return 0;
}

static int range_compare(const void *first, const void *second)
{
	const struct range *a = first;
	const struct range *b = second;

	if (a->stripe_index != b->stripe_index)
		return a->stripe_index < b->stripe_index ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->chunk_index < b->chunk_index ? -1 : a->chunk_index > b->chunk_index;
}

/* Sorted ranges: each begins where the one before it ends, and the last ends with the file. */
static int ranges_check(const struct check *c, struct range *ranges, size_t count)
{
	uint64_t reached[STASIS_STRIPES_MAX] = {0};

	qsort(ranges, count, sizeof(*ranges), range_compare);
	for (size_t i = 0; i < count; i++) {
		uint64_t *at = &reached[ranges[i].stripe_index];

		if (ranges[i].offset != *at)
			return stasis_fail(
				c->err, STASIS_BAD_IMAGE,
				"%s: chunk %llu at offset %llu of stripe %u %s, which ends at %llu",
				c->name, (unsigned long long)ranges[i].chunk_index,
				(unsigned long long)ranges[i].offset, ranges[i].stripe_index,
				ranges[i].offset < *at ? "overlaps the chunk before it"
						       : "leaves a gap behind the chunk before it",
				(unsigned long long)*at);
		*at = ranges[i].end;
	}
	for (uint32_t s = 0; s < c->sums->stripe_count; s++) {
		if (reached[s] != c->stripe_bytes[s])
			return stasis_fail(c->err, STASIS_BAD_IMAGE,
					   "%s: the chunks of stripe %u end at %llu, the stripe at "
					   "%llu",
					   c->name, s, (unsigned long long)reached[s],
					   (unsigned long long)c->stripe_bytes[s]);
	}
	return 0;
}

int stasis_image_sums_check(const char *name, const struct stasis_image_sums *sums,
			    const uint64_t stripe_bytes[STASIS_STRIPES_MAX],
			    struct stasis_error *err)
{
	const struct check c = {name, sums, stripe_bytes, err};
	CLEANUP(free) struct range *ranges = NULL;
	struct stasis_digest whole;
	struct stasis_digest last;
	size_t count = 0;

	ranges = calloc(sums->chunk_count, sizeof(*ranges));
	if (!ranges)
		return stasis_fail_errno(err, STASIS_REFUSED, "check '%s'", name);
	if (zeros_digest(&c, &whole, &last) != 0)
		return -1;
	for (uint64_t i = 0; i < sums->chunk_count; i++) {
		int failed = chunk_is_zero(&sums->chunks[i])
				     ? zero_chunk_check(&c, i,
							i + 1 == sums->chunk_count ? &last : &whole)
				     : stored_chunk_check(&c, i, &ranges[count++]);

		if (failed)
			return -1;
	}
	return ranges_check(&c, ranges, count);
}
