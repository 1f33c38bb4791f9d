#ifndef STASIS_BASE_COPY_H
#define STASIS_BASE_COPY_H

/*
 * Copies of large blocks by what a processor has. A streaming copy writes around the cache: the lines that it
 * fills are not fetched from memory before, which saves a third of the traffic, and what else lies in the cache
 * stays there. Any thread; the ranges must not overlap, and may have any length and alignment.
 */

#include <stdbool.h>
#include <stddef.h>

struct stasis_copy_kind {
	const char *name; /* "stream-avx512" */
	bool (*is_supported)(void);
	void (*copy)(void *to, const void *from, size_t bytes);
};

/* All kinds, also those that this processor has not; the first is memcpy. */
const struct stasis_copy_kind *stasis_copy_kinds(size_t *ret_count);

/* NULL: there is no such kind. */
const struct stasis_copy_kind *stasis_copy_kind_find(const char *name);

#endif
