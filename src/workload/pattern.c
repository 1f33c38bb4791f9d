/*
 * See pattern.h.
 */

#include "workload/pattern.h"

#include <string.h>

#define WORD_BYTES sizeof(uint64_t)

/* The finalizer of splitmix64: every input bit reaches every output bit. */
static uint64_t word_at(uint64_t seed, uint64_t index)
{
	uint64_t word = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

void stasis_workload_pattern_fill(uint64_t seed, uint64_t offset, void *buffer, size_t bytes)
{
	unsigned char *at = buffer;
	size_t done = 0;

	while (done < bytes) {
		uint64_t position = offset + done;
		uint64_t word = word_at(seed, position / WORD_BYTES);
		size_t skip = (size_t)(position % WORD_BYTES);
		size_t count = WORD_BYTES - skip;

		if (count > bytes - done)
			count = bytes - done;
		memcpy(at + done, (const unsigned char *)&word + skip, count);
		done += count;
	}
}

/* The first difference; the caller knows that there is one. */
static size_t difference_find(const unsigned char *a, const unsigned char *b)
{
	size_t index = 0;

	while (a[index] == b[index])
		index++;
	return index;
}

bool stasis_workload_pattern_check(uint64_t seed, uint64_t offset, const void *buffer, size_t bytes,
				   size_t *ret_index)
{
	const unsigned char *at = buffer;
	unsigned char expected[4096];

	for (size_t done = 0; done < bytes; done += sizeof(expected)) {
		size_t count = bytes - done < sizeof(expected) ? bytes - done : sizeof(expected);

		stasis_workload_pattern_fill(seed, offset + done, expected, count);
		if (memcmp(at + done, expected, count) != 0) {
			*ret_index = done + difference_find(at + done, expected);
			return false;
		}
	}
	return true;
}
