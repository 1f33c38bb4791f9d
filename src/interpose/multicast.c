/*
 * See multicast.h.
 */

#include "interpose/multicast.h"

#include <stdatomic.h>

static atomic_uint created;

void stasis_multicast_add(void)
{
	(void)atomic_fetch_add(&created, 1);
}

uint32_t stasis_multicast_created(void)
{
	return atomic_load(&created);
}
