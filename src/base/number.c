/*
 * See number.h.
 */

#include "base/number.h"

#include <stdio.h>
#include <string.h>

struct unit {
	const char *suffix;
	uint64_t factor;
};

bool stasis_add_u64(uint64_t a, uint64_t b, uint64_t *ret_sum)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret_sum = sum;
	return true;
}

bool stasis_multiply_u64(uint64_t a, uint64_t b, uint64_t *ret_product)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret_product = product;
	return true;
}

uint64_t stasis_round_up(uint64_t value, uint64_t step)
{
	uint64_t rest = value % step;

	return rest ? value + (step - rest) : value;
}

uint64_t stasis_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The digits at the start of `text`; *ret_end is behind them. False: none, or more than 64 bits. */
static bool digits_parse(const char *text, uint64_t *ret_value, const char **ret_end)
{
	uint64_t value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (!stasis_multiply_u64(value, 10, &value) ||
		    !stasis_add_u64(value, (uint64_t)(*at - '0'), &value))
			return false;
	}
	if (at == text)
		return false;
	*ret_value = value;
	*ret_end = at;
	return true;
}

static bool scaled_parse(const char *text, const struct unit *units, size_t unit_count,
			 uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *suffix = NULL;

	if (!digits_parse(text, &value, &suffix))
		return false;
	for (size_t i = 0; i < unit_count; i++) {
		if (strcmp(suffix, units[i].suffix) == 0)
			return stasis_multiply_u64(value, units[i].factor, ret_value) &&
			       *ret_value > 0;
	}
	return false;
}

int stasis_parse_u64(const char *what, const char *text, uint64_t *ret_value,
		     struct stasis_error *err)
{
	uint64_t value = 0;
	const char *end = NULL;

	if (!digits_parse(text, &value, &end) || *end)
		return stasis_fail(err, STASIS_USAGE, "%s: '%s' is not a number", what, text);
	*ret_value = value;
	return 0;
}

int stasis_parse_bytes(const char *what, const char *text, uint64_t *ret_bytes,
		       struct stasis_error *err)
{
	static const struct unit units[] = {
		{"", 1},           {"K", STASIS_KIB},        {"M", STASIS_MIB},
		{"G", STASIS_GIB}, {"T", STASIS_GIB * 1024},
	};
	uint64_t value = 0;

	if (!scaled_parse(text, units, ARRAY_COUNT(units), &value))
		return stasis_fail(
			err, STASIS_USAGE,
			"%s: '%s' is not a number of bytes; say for example 67108864, 64M or 2G",
			what, text);
	*ret_bytes = value;
	return 0;
}

int stasis_parse_duration(const char *what, const char *text, uint64_t *ret_ns,
			  struct stasis_error *err)
{
	static const struct unit units[] = {
		{"", UINT64_C(1000000000)},
		{"s", UINT64_C(1000000000)},
		{"ms", UINT64_C(1000000)},
		{"m", UINT64_C(60000000000)},
	};
	uint64_t value = 0;

	if (!scaled_parse(text, units, ARRAY_COUNT(units), &value))
		return stasis_fail(err, STASIS_USAGE,
				   "%s: '%s' is not a duration; say for example 120s, 500ms or 2m",
				   what, text);
	*ret_ns = value;
	return 0;
}

const char *stasis_format_bytes(uint64_t bytes, char *text, size_t text_bytes)
{
	static const struct unit units[] = {
		{"TiB", STASIS_GIB * 1024},
		{"GiB", STASIS_GIB},
		{"MiB", STASIS_MIB},
		{"KiB", STASIS_KIB},
	};

	for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
		if (bytes >= units[i].factor) {
			(void)snprintf(text, text_bytes, "%.1f %s",
				       (double)bytes / (double)units[i].factor, units[i].suffix);
			return text;
		}
	}
	(void)snprintf(text, text_bytes, "%llu bytes", (unsigned long long)bytes);
	return text;
}
