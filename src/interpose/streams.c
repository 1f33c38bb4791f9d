/* See streams.h. */

#include "interpose/streams.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.h"
#include "interpose/fork.h"

#define SLOT_COUNT 1024u

struct stasis_stream_node {
	struct stasis_stream_node *next;
	struct stasis_stream_record record;
};

static struct stasis_mutex lock = STASIS_MUTEX_INITIALIZER;
static struct stasis_stream_node *slots[STASIS_STREAM_LIST_COUNT][SLOT_COUNT] GUARDED_BY(lock);
static uint32_t counts[STASIS_STREAM_LIST_COUNT] GUARDED_BY(lock);
static atomic_bool has_handler;

static void forget(void) NO_THREAD_SAFETY_ANALYSIS
{
	lock = (struct stasis_mutex)STASIS_MUTEX_INITIALIZER;
	memset(slots, 0, sizeof(slots));
	memset(counts, 0, sizeof(counts));
}

struct stasis_stream_key stasis_stream_key(CUstream stream, bool is_per_thread)
{
	struct stasis_stream_key key = {.stream = stream};

	if (is_per_thread && !stream)
		key.stream = CU_STREAM_PER_THREAD;
	if (key.stream == CU_STREAM_PER_THREAD)
		key.tid = (pid_t)syscall(SYS_gettid);
	return key;
}

struct stasis_stream_node *stasis_streams_room(void)
{
	if (!atomic_exchange(&has_handler, true))
		stasis_fork_forget_add(forget);
	return calloc(1, sizeof(struct stasis_stream_node));
}

void stasis_streams_drop(struct stasis_stream_node *room)
{
	free(room);
}

static uint32_t slot_of(const struct stasis_stream_key *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)key->stream * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(hash >> 32) % SLOT_COUNT;
}

void stasis_streams_add(enum stasis_stream_list list, struct stasis_stream_node *room,
			const struct stasis_stream_record *record)
{
	struct stasis_stream_node **slot;

	room->record = *record;
	stasis_mutex_lock(&lock);
	slot = &slots[list][slot_of(&record->key)];
	room->next = *slot;
	*slot = room;
	counts[list]++;
	stasis_mutex_unlock(&lock);
}

static bool is_same(const struct stasis_stream_key *a, const struct stasis_stream_key *b)
{
	return a->stream == b->stream && a->tid == b->tid;
}

void stasis_streams_remove(enum stasis_stream_list list, const struct stasis_stream_key *key)
{
	struct stasis_stream_node *found;
	struct stasis_stream_node **link;

	stasis_mutex_lock(&lock);
	link = &slots[list][slot_of(key)];
	while (*link && !is_same(&(*link)->record.key, key))
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = found->next;
		counts[list]--;
	}
	stasis_mutex_unlock(&lock);
	free(found);
}

static struct stasis_stream_node *slot_clear(struct stasis_stream_node **link, CUcontext context,
					     uint32_t *count, struct stasis_stream_node *gone)
{
	while (*link) {
		struct stasis_stream_node *node = *link;

		if (node->record.context != context) {
			link = &node->next;
			continue;
		}
		*link = node->next;
		node->next = gone;
		gone = node;
		--*count;
	}
	return gone;
}

void stasis_streams_remove_context(CUcontext context)
{
	struct stasis_stream_node *gone = NULL;

	stasis_mutex_lock(&lock);
	for (int list = 0; list < STASIS_STREAM_LIST_COUNT; list++) {
		for (uint32_t i = 0; i < SLOT_COUNT; i++)
			gone = slot_clear(&slots[list][i], context, &counts[list], gone);
	}
	stasis_mutex_unlock(&lock);
	while (gone) {
		struct stasis_stream_node *next = gone->next;

		free(gone);
		gone = next;
	}
}

uint32_t stasis_streams_copy(enum stasis_stream_list list, uint32_t max,
			     struct stasis_stream_record *ret_records)
{
	uint32_t copied = 0;
	uint32_t count;

	stasis_mutex_lock(&lock);
	count = counts[list];
	for (uint32_t i = 0; i < SLOT_COUNT && copied < max && copied < count; i++) {
		for (struct stasis_stream_node *node = slots[list][i]; node && copied < max;
		     node = node->next)
			ret_records[copied++] = node->record;
	}
	stasis_mutex_unlock(&lock);
	return count;
}
