#ifndef STASIS_BASE_NUMBER_H
#define STASIS_BASE_NUMBER_H

/*
 * Numbers that are checked: sums and products that refuse to wrap, and texts that are refused unless
 * wholly a number in range. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

#define STASIS_KIB (UINT64_C(1) << 10)
#define STASIS_MIB (UINT64_C(1) << 20)
#define STASIS_GIB (UINT64_C(1) << 30)

/* False: the result does not fit, and *ret_sum is unchanged. */
NODISCARD bool stasis_add_u64(uint64_t a, uint64_t b, uint64_t *ret_sum);
NODISCARD bool stasis_multiply_u64(uint64_t a, uint64_t b, uint64_t *ret_product);

/* The least multiple of `step` (not 0) that is not below `value`; the caller knows that it fits. */
uint64_t stasis_round_up(uint64_t value, uint64_t step);
uint64_t stasis_min_u64(uint64_t a, uint64_t b);

/* A plain decimal number, nothing before or after it. */
NODISCARD int stasis_parse_u64(const char *what, const char *text, uint64_t *ret_value,
			       struct stasis_error *err);

/* A number of bytes above 0: digits, then nothing or one of K, M, G, T (powers of 1024). */
NODISCARD int stasis_parse_bytes(const char *what, const char *text, uint64_t *ret_bytes,
				 struct stasis_error *err);

/* A duration above 0: digits, then nothing or s (seconds), ms, m (minutes). */
NODISCARD int stasis_parse_duration(const char *what, const char *text, uint64_t *ret_ns,
				    struct stasis_error *err);

/* "64.0 MiB", "512 bytes"; returns `text`. */
const char *stasis_format_bytes(uint64_t bytes, char *text, size_t text_bytes);

#endif
