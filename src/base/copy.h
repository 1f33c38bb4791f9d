#ifndef STASIS_BASE_COPY_H
#define STASIS_BASE_COPY_H

/*
 * Copies of large blocks that stream around the cache: the lines that they fill are not fetched from memory
 * before, which saves a third of the traffic, and what lies in the cache stays there. Any thread; the ranges must
 * not overlap, and may have any length and alignment.
 */

#include <stdbool.h>
#include <stddef.h>

/* By the widest registers that this processor has. What it wrote is visible to whoever is told afterwards. */
void stasis_copy_streaming(void *to, const void *from, size_t bytes);

/* What it chooses from; all kinds copy alike. */
struct stasis_copy_kind {
	const char *name; /* "avx512" */
	bool (*is_supported)(void);
	void (*copy)(void *to, const void *from, size_t bytes);
};

/* The best first; the last is supported everywhere. */
const struct stasis_copy_kind *stasis_copy_kinds(size_t *ret_count);

#endif
