/*
 * Description: checked sums and products refuse to wrap, and texts that are not wholly a number in
 * range are refused and change nothing.
 */

#include "unit.h"

#include "base/number.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a)

static void sums_refuse_to_wrap(void **state)
{
	uint64_t sum = UNTOUCHED;

	(void)state;
	assert_true(stasis_add_u64(UINT64_MAX - 1, 1, &sum));
	assert_true(sum == UINT64_MAX);
	sum = UNTOUCHED;
	assert_false(stasis_add_u64(UINT64_MAX, 1, &sum));
	assert_true(sum == UNTOUCHED);
}

static void products_refuse_to_wrap(void **state)
{
	uint64_t product = UNTOUCHED;

	(void)state;
	assert_true(stasis_multiply_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &product));
	assert_true(product == UINT64_C(0xffffffff00000000));
	product = UNTOUCHED;
	assert_false(stasis_multiply_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &product));
	assert_true(product == UNTOUCHED);
	assert_true(stasis_multiply_u64(0, UINT64_MAX, &product));
	assert_true(product == 0);
}

static void rounding_keeps_multiples(void **state)
{
	(void)state;
	assert_true(stasis_round_up(0, 512) == 0);
	assert_true(stasis_round_up(1, 512) == 512);
	assert_true(stasis_round_up(512, 512) == 512);
	assert_true(stasis_round_up(513, 512) == 1024);
	assert_true(stasis_round_up(10, 3) == 12);
	assert_true(stasis_min_u64(3, 2) == 2);
	assert_true(stasis_min_u64(2, 3) == 2);
}

static void plain_numbers_are_parsed_whole(void **state)
{
	static const char *const bad[] = {"",    " 1", "1 ",  "-1",   "+1",
					  "0x1", "1K", "1.5", "junk", "18446744073709551616"};
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t value = UNTOUCHED;

	(void)state;
	assert_done(stasis_parse_u64("--n", "18446744073709551615", &value, &err), &err);
	assert_true(value == UINT64_MAX);
	assert_done(stasis_parse_u64("--n", "0", &value, &err), &err);
	assert_true(value == 0);
	value = UNTOUCHED;
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct stasis_error refusal = STASIS_ERROR_INIT;

		assert_refused(stasis_parse_u64("--n", bad[i], &value, &refusal), &refusal,
			       STASIS_USAGE, "--n");
		assert_true(value == UNTOUCHED);
	}
}

struct scaled_case {
	const char *text;
	uint64_t value; /* 0: refused */
};

static void bytes_take_units(void **state)
{
	static const struct scaled_case cases[] = {
		{"1", 1},
		{"4096", 4096},
		{"1K", STASIS_KIB},
		{"64M", 64 * STASIS_MIB},
		{"2G", 2 * STASIS_GIB},
		{"3T", STASIS_GIB * 3072},
		{"16777215T", UINT64_C(16777215) << 40},
		{"16777216T", 0}, /* one step above 64 bits */
		{"0", 0},
		{"0M", 0},
		{"", 0},
		{"M", 0},
		{"64MB", 0},
		{"64m", 0},
		{"64 M", 0},
		{"-64M", 0},
		{"1.5G", 0},
		{"junk", 0},
		{"99999999999999999999", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		uint64_t value = UNTOUCHED;
		int result = stasis_parse_bytes("--bytes", cases[i].text, &value, &err);

		if (cases[i].value) {
			assert_done(result, &err);
			assert_true(value == cases[i].value);
			continue;
		}
		assert_refused(result, &err, STASIS_USAGE, "--bytes");
		assert_non_null(strstr(err.text, cases[i].text));
		assert_true(value == UNTOUCHED);
	}
}

static void durations_take_units(void **state)
{
	static const struct scaled_case cases[] = {
		{"1", UINT64_C(1000000000)},
		{"120s", UINT64_C(120000000000)},
		{"500ms", UINT64_C(500000000)},
		{"2m", UINT64_C(120000000000)},
		{"0", 0},
		{"0s", 0},
		{"2h", 0},
		{"", 0},
		{"s", 0},
		{"18446744074s", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		uint64_t value = UNTOUCHED;
		int result = stasis_parse_duration("--timeout", cases[i].text, &value, &err);

		if (cases[i].value) {
			assert_done(result, &err);
			assert_true(value == cases[i].value);
			continue;
		}
		assert_refused(result, &err, STASIS_USAGE, "--timeout");
		assert_true(value == UNTOUCHED);
	}
}

static void bytes_are_shown_in_units(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(stasis_format_bytes(0, text, sizeof(text)), "0 bytes");
	assert_string_equal(stasis_format_bytes(1023, text, sizeof(text)), "1023 bytes");
	assert_string_equal(stasis_format_bytes(1024, text, sizeof(text)), "1.0 KiB");
	assert_string_equal(stasis_format_bytes(64 * STASIS_MIB, text, sizeof(text)), "64.0 MiB");
	assert_string_equal(stasis_format_bytes(STASIS_GIB * 3 / 2, text, sizeof(text)), "1.5 GiB");
	assert_string_equal(stasis_format_bytes(STASIS_GIB * 2048, text, sizeof(text)), "2.0 TiB");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_refuse_to_wrap),
		cmocka_unit_test(products_refuse_to_wrap),
		cmocka_unit_test(rounding_keeps_multiples),
		cmocka_unit_test(plain_numbers_are_parsed_whole),
		cmocka_unit_test(bytes_take_units),
		cmocka_unit_test(durations_take_units),
		cmocka_unit_test(bytes_are_shown_in_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
