#ifndef STASIS_WORKLOAD_PATTERN_H
#define STASIS_WORKLOAD_PATTERN_H

/*
 * The bytes with which the round trip's program fills its device memory: every 64-bit word is a mix of its
 * position and a seed, so that the content of any offset can be computed again, nothing repeats, and a
 * word that lies in the wrong place is as wrong as a damaged one. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes at [offset, offset + bytes). */
void stasis_workload_pattern_fill(uint64_t seed, uint64_t offset, void *buffer, size_t bytes);

/* False: the bytes differ, first at *ret_index. */
bool stasis_workload_pattern_check(uint64_t seed, uint64_t offset, const void *buffer, size_t bytes,
				   size_t *ret_index);

#endif
