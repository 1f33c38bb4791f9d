/*
 * Description: no bytes make the decoder of sums files do anything but accept or refuse them; what it
 * accepts is written again as the same bytes.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "image/sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Chunks that were never laid out by us must be judged as safely as those that were. */
static void layout_check(const struct stasis_image_sums *sums)
{
	uint64_t ends[STASIS_STRIPES_MAX];

	stasis_image_sums_stripe_ends(sums, ends);
	for (size_t s = 0; s < STASIS_STRIPES_MAX; s++)
		ends[s] = stasis_round_up(ends[s], STASIS_STORED_ALIGNMENT);
	(void)!stasis_image_sums_check("fuzz", sums, ends, NULL);
}

static void decode(const uint8_t *data, size_t size)
{
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	CLEANUP(free) uint8_t *again = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_image_sums_decode("fuzz", data, size, &sums, &err) != 0) {
		if (err.status != STASIS_BAD_IMAGE || !err.text[0])
			abort();
		return;
	}
	layout_check(&sums);
	if (stasis_image_sums_encode(&sums, &again, NULL) != 0 ||
	    stasis_image_sums_bytes(sums.chunk_count) != size || memcmp(again, data, size) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free) uint8_t *copy = malloc(size + 1);
	struct stasis_digest digest;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	decode(data, size);
	if (size < STASIS_IMAGE_SUMS_CHECKSUM_BYTES)
		return 0;
	/* Past the checksum, which would stop every change at the door. */
	digest = stasis_digest_of(copy, size - STASIS_IMAGE_SUMS_CHECKSUM_BYTES);
	memcpy(copy + size - STASIS_IMAGE_SUMS_CHECKSUM_BYTES, digest.bytes, sizeof(digest.bytes));
	decode(copy, size);
	return 0;
}
