/* See calls.h. Filled once from the table of libcuda; threads that come at once fill in the same. */

#include "interpose/calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "interpose/resolve.h"

/* All members are pointers to functions. */
union table {
	struct stasis_calls calls;
	void *entries[sizeof(struct stasis_calls) / sizeof(void *)];
};

#define NEEDED(elf)                                                                                \
	{STASIS_ENTRY_##elf, offsetof(struct stasis_calls, elf) / sizeof(void *), false},
#define OPTIONAL(elf)                                                                              \
	{STASIS_ENTRY_##elf, offsetof(struct stasis_calls, elf) / sizeof(void *), true},
static const struct {
	enum stasis_entry entry;
	size_t index;
	bool is_optional;
} members[] = {STASIS_CALLS(NEEDED) STASIS_CALLS_OPTIONAL(OPTIONAL)};

static union table table;
static atomic_bool is_complete;

const struct stasis_calls *stasis_calls_get(void)
{
	bool has_all = true;

	if (atomic_load_explicit(&is_complete, memory_order_acquire))
		return &table.calls;
	for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
		void *target = stasis_resolve_driver_entry(members[i].entry);

		has_all = has_all && (target || members[i].is_optional);
		__atomic_store_n(&table.entries[members[i].index], target, __ATOMIC_RELAXED);
	}
	if (!has_all)
		return NULL;
	atomic_store_explicit(&is_complete, true, memory_order_release);
	return &table.calls;
}
