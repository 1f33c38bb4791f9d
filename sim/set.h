#ifndef SIM_SET_H
#define SIM_SET_H

/*
 * A set of pointers, sorted by address: how handles that an application passes are told from garbage.
 */

#include <stdbool.h>
#include <stddef.h>

struct sim_set {
	void **items;
	size_t count;
	size_t capacity;
};

bool sim_set_add(struct sim_set *set, void *item); /* false: no memory */
void sim_set_remove(struct sim_set *set, const void *item);
bool sim_set_has(const struct sim_set *set, const void *item);

#endif
