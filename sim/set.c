/* Sets of handles; see set.h. */

#include "set.h"

#include <stdlib.h>
#include <string.h>

/* Where 'item' is, or would be put. */
static size_t position(const struct sim_set *set, const void *item)
{
	size_t low = 0;
	size_t high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((const char *)set->items[middle] < (const char *)item)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool sim_set_add(struct sim_set *set, void *item)
{
	size_t at = position(set, item);

	if (set->count == set->capacity) {
		size_t capacity = set->capacity != 0 ? set->capacity * 2 : 16;
		void **items = realloc(set->items, capacity * sizeof(*items));

		if (items == NULL)
			return false;
		set->items = items;
		set->capacity = capacity;
	}
	memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof(*set->items));
	set->items[at] = item;
	set->count++;
	return true;
}

bool sim_set_has(const struct sim_set *set, const void *item)
{
	size_t at = position(set, item);

	return item != NULL && at < set->count && set->items[at] == item;
}

void sim_set_remove(struct sim_set *set, const void *item)
{
	size_t at = position(set, item);

	if (at == set->count || set->items[at] != item)
		return;
	set->count--;
	memmove(&set->items[at], &set->items[at + 1], (set->count - at) * sizeof(*set->items));
}
