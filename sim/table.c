/* Tables sorted by address; see table.h. */

#include "table.h"

#include <stdlib.h>
#include <string.h>

size_t sim_table_first_behind(const struct sim_table *table, uint64_t address)
{
	size_t low = 0;
	size_t high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sim_span_end(table->items[middle]) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool sim_table_insert(struct sim_table *table, struct sim_span *span)
{
	size_t at = sim_table_first_behind(table, span->start);

	if (table->count == table->capacity) {
		size_t capacity = table->capacity != 0 ? table->capacity * 2 : 32;
		struct sim_span **items =
			realloc(table->items, capacity * sizeof(struct sim_span *));

		if (items == NULL)
			return false;
		table->items = items;
		table->capacity = capacity;
	}
	memmove(&table->items[at + 1], &table->items[at],
		(table->count - at) * sizeof(struct sim_span *));
	table->items[at] = span;
	table->count++;
	return true;
}

void sim_table_remove(struct sim_table *table, const struct sim_span *span)
{
	size_t at = sim_table_first_behind(table, span->start);

	if (at == table->count || table->items[at] != span)
		return;
	table->count--;
	memmove(&table->items[at], &table->items[at + 1],
		(table->count - at) * sizeof(struct sim_span *));
}

void *sim_table_find(const struct sim_table *table, uint64_t address)
{
	size_t at = sim_table_first_behind(table, address);

	if (at == table->count || table->items[at]->start > address)
		return NULL;
	return table->items[at];
}

bool sim_table_overlaps(const struct sim_table *table, uint64_t start, uint64_t bytes)
{
	size_t at = sim_table_first_behind(table, start);

	return at < table->count && table->items[at]->start < start + bytes;
}
