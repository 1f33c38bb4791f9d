/*
 * Description: digests agree with xxHash's published value, cover where a chunk belongs, and see a
 * single flipped bit; zeros are recognised whatever their length and alignment; pieces and
 * every kind of processor give the same digests.
 */

#include "unit.h"

#include "base/digest.h"
#include "base/digest_wide.h"

static const struct stasis_id extent = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

static void digest_of_nothing_is_the_published_one(void **state)
{
	char text[STASIS_DIGEST_TEXT_BYTES];
	struct stasis_digest digest = stasis_digest_of("", 0);

	(void)state;
	/* XXH3_128bits of no input, seed 0, as xxhsum prints it */
	assert_string_equal(stasis_digest_format(&digest, text),
			    "99aa06d3014798d86001c324468d497f");
}

static void texts_survive(void **state)
{
	char text[STASIS_DIGEST_TEXT_BYTES];
	struct stasis_digest digest = stasis_digest_of("abc", 3);
	struct stasis_digest parsed;

	(void)state;
	assert_true(stasis_digest_parse(stasis_digest_format(&digest, text), &parsed));
	assert_true(stasis_digest_equal(&digest, &parsed));
	text[31] = '\0';
	assert_false(stasis_digest_parse(text, &parsed));
}

static void each_flipped_bit_is_seen(void **state)
{
	uint8_t bytes[257];
	struct stasis_digest whole;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	whole = stasis_digest_chunk(&extent, 3, bytes, sizeof(bytes));
	for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
		struct stasis_digest other;

		bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
		other = stasis_digest_chunk(&extent, 3, bytes, sizeof(bytes));
		bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
		assert_false(stasis_digest_equal(&whole, &other));
	}
}

static void place_is_part_of_a_chunk(void **state)
{
	static const uint8_t zeros[64];
	struct stasis_id other_extent = extent;
	struct stasis_digest here = stasis_digest_chunk(&extent, 7, zeros, sizeof(zeros));
	struct stasis_digest other;

	(void)state;
	other = stasis_digest_chunk(&extent, 7, zeros, sizeof(zeros));
	assert_true(stasis_digest_equal(&here, &other));
	other = stasis_digest_chunk(&extent, 8, zeros, sizeof(zeros));
	assert_false(stasis_digest_equal(&here, &other));
	other = stasis_digest_chunk(&extent, 7, zeros, sizeof(zeros) - 1);
	assert_false(stasis_digest_equal(&here, &other));
	other_extent.bytes[15] ^= 1;
	other = stasis_digest_chunk(&other_extent, 7, zeros, sizeof(zeros));
	assert_false(stasis_digest_equal(&here, &other));
}

static void zeros_are_recognised(void **state)
{
	uint8_t bytes[200] = {0};

	(void)state;
	assert_true(stasis_bytes_are_zero(bytes, 0));
	for (size_t start = 0; start < 9; start++) {
		assert_true(stasis_bytes_are_zero(bytes + start, sizeof(bytes) - start));
		for (size_t at = start; at < sizeof(bytes); at++) {
			bytes[at] = 0x80;
			assert_false(stasis_bytes_are_zero(bytes + start, sizeof(bytes) - start));
			bytes[at] = 0;
		}
	}
}

static void data_fill(uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 167 + i / 251);
}

static void pieces_digest_as_the_whole(void **state)
{
	static uint8_t data[5000];

	(void)state;
	data_fill(data, sizeof(data));
	for (size_t bytes = 0; bytes <= sizeof(data); bytes += 1 + bytes / 7) {
		struct stasis_digest whole = stasis_digest_of(data, bytes);
		struct stasis_digest pieces;
		struct stasis_digest_stream stream;

		stasis_digest_begin(&stream);
		for (size_t at = 0, step = 0; at < bytes; at += step) {
			step = at % 613 + 1 < bytes - at ? at % 613 + 1 : bytes - at;
			stasis_digest_update(&stream, data + at, step);
		}
		pieces = stasis_digest_end(&stream);
		assert_true(stasis_digest_equal(&whole, &pieces));
	}
}

static void kind_compare(const struct stasis_digest_kind *kind)
{
	static uint8_t data[70001];

	data_fill(data, sizeof(data));
	for (size_t bytes = 0; bytes <= sizeof(data); bytes += 1 + bytes / 11) {
		struct stasis_digest expected = stasis_digest_kind_plain.whole(data, bytes);
		struct stasis_digest actual = kind->whole(data, bytes);

		assert_true(stasis_digest_equal(&expected, &actual));
	}
}

static void every_kind_of_processor_digests_alike(void **state)
{
	(void)state;
	kind_compare(&stasis_digest_kind_plain);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		kind_compare(&stasis_digest_kind_avx2);
	if (__builtin_cpu_supports("avx512f"))
		kind_compare(&stasis_digest_kind_avx512);
#endif
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(digest_of_nothing_is_the_published_one),
		cmocka_unit_test(texts_survive),
		cmocka_unit_test(each_flipped_bit_is_seen),
		cmocka_unit_test(place_is_part_of_a_chunk),
		cmocka_unit_test(zeros_are_recognised),
		cmocka_unit_test(pieces_digest_as_the_whole),
		cmocka_unit_test(every_kind_of_processor_digests_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
