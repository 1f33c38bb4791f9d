/*
 * How fast one thread digests: chunks in the cache, and memory that is not. Prints GB/s and on what.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/number.h"

#define TOTAL_BYTES (UINT64_C(4) << 30)
#define LARGEST_BYTES ((size_t)256 << 20)

static double rate_of(const uint8_t *data, size_t bytes)
{
	uint64_t start_ns = stasis_clock_now_ns();
	uint64_t done = 0;

	while (done < TOTAL_BYTES) {
		struct stasis_digest digest = stasis_digest_of(data, bytes);

		__asm__ volatile("" : : "m"(digest) : "memory");
		done += bytes;
	}
	return (double)done / (double)(stasis_clock_now_ns() - start_ns);
}

int main(void)
{
	static const size_t sizes[] = {256 << 10, 1 << 20, 4 << 20, LARGEST_BYTES};
	CLEANUP(free) uint8_t *data = malloc(LARGEST_BYTES);
	char text[32];

	if (!data)
		return 1;
	memset(data, 0x5a, LARGEST_BYTES);
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
		(void)printf("digest of %s: %.2f GB/s, one thread, %s\n",
			     stasis_format_bytes(sizes[i], text, sizeof(text)),
			     rate_of(data, sizes[i]), stasis_digest_kind_name());
	return 0;
}
