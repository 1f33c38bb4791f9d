#ifndef SIM_TABLE_H
#define SIM_TABLE_H

/*
 * Tables of things that occupy addresses: sorted by start, never overlapping. Such a thing has a
 * struct sim_span as its first member and is found by any address inside.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_span {
	uint64_t start;
	uint64_t bytes;
};

struct sim_table {
	struct sim_span **items;
	size_t count;
	size_t capacity;
};

static inline uint64_t sim_span_end(const struct sim_span *span)
{
	return span->start + span->bytes;
}

bool sim_table_insert(struct sim_table *table, struct sim_span *span); /* false: no memory */
void sim_table_remove(struct sim_table *table, const struct sim_span *span);
/* The one that holds the address, or NULL. */
void *sim_table_find(const struct sim_table *table, uint64_t address);
/* Index of the first one that ends behind the address; count if there is none. */
size_t sim_table_first_behind(const struct sim_table *table, uint64_t address);
bool sim_table_overlaps(const struct sim_table *table, uint64_t start, uint64_t bytes);

#endif
