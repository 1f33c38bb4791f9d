/*
 * The pattern with which the round trip's program fills its memory.
 */

#include "workload/pattern.h"

#include <string.h>

#include "unit.h"

#define SEED UINT64_C(0x0123456789abcdef)

static void pieces_make_the_whole(void **state)
{
	unsigned char whole[1000];
	unsigned char piece[1000];

	(void)state;
	stasis_workload_pattern_fill(SEED, 0, whole, sizeof(whole));
	for (size_t offset = 0; offset < 40; offset++) {
		for (size_t bytes = 0; bytes < 40; bytes++) {
			stasis_workload_pattern_fill(SEED, offset, piece, bytes);
			assert_memory_equal(piece, whole + offset, bytes);
		}
	}
}

static void words_differ_by_place_and_seed(void **state)
{
	uint64_t words[512];
	uint64_t other[512];

	(void)state;
	stasis_workload_pattern_fill(SEED, 0, words, sizeof(words));
	stasis_workload_pattern_fill(SEED + 1, 0, other, sizeof(other));
	for (size_t i = 0; i < 512; i++) {
		assert_true(words[i] != other[i]);
		for (size_t j = 0; j < i; j++)
			assert_true(words[i] != words[j]);
	}
}

static void first_difference_is_found(void **state)
{
	static const size_t places[] = {0, 1, 7, 8, 4095, 4096, 8191, 9000};
	unsigned char bytes[9001];
	size_t index = 0;

	(void)state;
	stasis_workload_pattern_fill(SEED, 3, bytes, sizeof(bytes));
	assert_true(stasis_workload_pattern_check(SEED, 3, bytes, sizeof(bytes), &index));
	assert_false(stasis_workload_pattern_check(SEED, 4, bytes, sizeof(bytes), &index));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		bytes[places[i]] ^= 1;
		bytes[sizeof(bytes) - 1] ^= 2;
		assert_false(stasis_workload_pattern_check(SEED, 3, bytes, sizeof(bytes), &index));
		assert_int_equal(index, places[i]);
		bytes[places[i]] ^= 1;
		bytes[sizeof(bytes) - 1] ^= 2;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(words_differ_by_place_and_seed),
		cmocka_unit_test(first_difference_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
