/* See calls.h. Filled once from the table of libcuda; threads that come at once fill in the same. */

#include "interpose/calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "interpose/resolve.h"

static struct stasis_calls calls;
static atomic_bool is_complete;

#define FILL(elf)                                                                                  \
	target = stasis_resolve_driver_entry(STASIS_ENTRY_##elf);                                  \
	has_all = has_all && target;                                                               \
	__atomic_store_n(&calls.elf, (__typeof__(calls.elf))target, __ATOMIC_RELAXED);

const struct stasis_calls *stasis_calls_get(void)
{
	bool has_all = true;
	void *target;

	if (atomic_load_explicit(&is_complete, memory_order_acquire))
		return &calls;
	STASIS_CALLS(FILL)
	if (!has_all)
		return NULL;
	atomic_store_explicit(&is_complete, true, memory_order_release);
	return &calls;
}
