/*
 * See notes.h. A slot is claimed, written, then published; a name that two threads note at the same
 * instant may stand there twice.
 */

#include "interpose/notes.h"

#include <stdatomic.h>
#include <string.h>

#define NAME_BYTES 64

struct note {
	atomic_int is_ready;
	char name[NAME_BYTES];
};

static struct {
	atomic_uint claimed; /* may exceed the table */
	struct note table[STASIS_NOTES_MAX];
} notes;

static int is_noted(const char *name)
{
	uint32_t count = stasis_notes_count();

	for (uint32_t i = 0; i < count; i++) {
		const struct note *note = &notes.table[i];

		if (atomic_load_explicit(&note->is_ready, memory_order_acquire) &&
		    strncmp(note->name, name, NAME_BYTES - 1) == 0)
			return 1;
	}
	return 0;
}

void stasis_notes_add(const char *name)
{
	uint32_t index;
	struct note *note;

	if (!name || is_noted(name))
		return;
	index = atomic_load(&notes.claimed);
	/* The count of those lost stays below what the counter holds. */
	while (index < UINT32_MAX &&
	       !atomic_compare_exchange_weak(&notes.claimed, &index, index + 1))
		;
	if (index >= STASIS_NOTES_MAX)
		return;
	note = &notes.table[index];
	(void)memccpy(note->name, name, '\0', NAME_BYTES - 1);
	atomic_store_explicit(&note->is_ready, 1, memory_order_release);
}

uint32_t stasis_notes_count(void)
{
	uint32_t claimed = atomic_load(&notes.claimed);

	return claimed < STASIS_NOTES_MAX ? claimed : STASIS_NOTES_MAX;
}

uint32_t stasis_notes_lost(void)
{
	return atomic_load(&notes.claimed) - stasis_notes_count();
}

int stasis_notes_get(uint32_t index, char ret_name[64])
{
	if (index >= stasis_notes_count() ||
	    !atomic_load_explicit(&notes.table[index].is_ready, memory_order_acquire))
		return 0;
	(void)memcpy(ret_name, notes.table[index].name, NAME_BYTES);
	return 1;
}
