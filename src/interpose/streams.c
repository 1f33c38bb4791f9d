/* See streams.h. */

#include "interpose/streams.h"

#include <pthread.h>
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
static pthread_key_t
	thread_key GUARDED_BY(lock); /* set in threads that captured their own default stream */
static bool has_thread_key GUARDED_BY(lock);

static void forget(void) NO_THREAD_SAFETY_ANALYSIS
{
	lock = (struct stasis_mutex)STASIS_MUTEX_INITIALIZER;
	memset(slots, 0, sizeof(slots));
	memset(counts, 0, sizeof(counts));
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

static bool is_same(const struct stasis_stream_key *a, const struct stasis_stream_key *b)
{
	return a->stream == b->stream && a->context == b->context && a->tid == b->tid;
}

static struct stasis_stream_node **slot_of(enum stasis_stream_list list,
					   const struct stasis_stream_key *key) REQUIRES(lock)
{
	uint64_t hash = (uint64_t)(uintptr_t)key->stream * UINT64_C(0x9e3779b97f4a7c15);

	return &slots[list][(uint32_t)(hash >> 32) % SLOT_COUNT];
}

static struct stasis_stream_node *take_locked(enum stasis_stream_list list,
					      const struct stasis_stream_key *key) REQUIRES(lock)
{
	struct stasis_stream_node **link = slot_of(list, key);
	struct stasis_stream_node *found;

	while (*link && !is_same(&(*link)->record.key, key))
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = found->next;
		counts[list]--;
	}
	return found;
}

static void put_locked(enum stasis_stream_list list, struct stasis_stream_node *node) REQUIRES(lock)
{
	struct stasis_stream_node **slot = slot_of(list, &node->record.key);

	node->next = *slot;
	*slot = node;
	counts[list]++;
}

/* ---- the end of a thread, a context ---- */

typedef bool matcher(const struct stasis_stream_record *record, const void *wanted);

static struct stasis_stream_node *slot_clear(enum stasis_stream_list list, uint32_t slot,
					     matcher *matches, const void *wanted,
					     struct stasis_stream_node *gone) REQUIRES(lock)
{
	struct stasis_stream_node **link = &slots[list][slot];

	while (*link) {
		struct stasis_stream_node *node = *link;

		if (!matches(&node->record, wanted)) {
			link = &node->next;
			continue;
		}
		*link = node->next;
		node->next = gone;
		gone = node;
		counts[list]--;
	}
	return gone;
}

static void remove_where(matcher *matches, const void *wanted)
{
	struct stasis_stream_node *gone = NULL;

	stasis_mutex_lock(&lock);
	for (int list = 0; list < STASIS_STREAM_LIST_COUNT; list++) {
		for (uint32_t slot = 0; counts[list] > 0 && slot < SLOT_COUNT; slot++)
			gone = slot_clear((enum stasis_stream_list)list, slot, matches, wanted,
					  gone);
	}
	stasis_mutex_unlock(&lock);
	while (gone) {
		struct stasis_stream_node *next = gone->next;

		free(gone);
		gone = next;
	}
}

static bool is_of_life(const struct stasis_stream_record *record, const void *wanted)
{
	const struct stasis_stream_life *life = wanted;

	return record->life.context == life->context && record->life.id == life->id;
}

void stasis_streams_remove_life(const struct stasis_stream_life *life)
{
	remove_where(is_of_life, life);
}

static bool is_of_thread(const struct stasis_stream_record *record, const void *wanted)
{
	return record->key.tid == *(const pid_t *)wanted;
}

/* The driver ends a thread's own default streams with it, and what is captured in them (measured on driver 580). */
static void thread_ended(void *unused)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	(void)unused;
	remove_where(is_of_thread, &tid);
}

/* Has this thread's end seen. Where that cannot be had, its captures must be ended by the program. */
static void thread_watch(void)
{
	pthread_key_t key = 0;
	bool has_key;

	stasis_mutex_lock(&lock);
	if (!has_thread_key)
		has_thread_key = pthread_key_create(&thread_key, thread_ended) == 0;
	has_key = has_thread_key;
	if (has_key)
		key = thread_key;
	stasis_mutex_unlock(&lock);
	if (has_key)
		(void)pthread_setspecific(key, &has_handler);
}

/* ---- one record ---- */

void stasis_streams_add(enum stasis_stream_list list, struct stasis_stream_node *room,
			const struct stasis_stream_record *record)
{
	struct stasis_stream_node *before;

	if (record->key.tid != 0)
		thread_watch();
	room->record = *record;
	stasis_mutex_lock(&lock);
	before = take_locked(list, &record->key);
	put_locked(list, room);
	stasis_mutex_unlock(&lock);
	free(before);
}

struct stasis_stream_node *stasis_streams_take(enum stasis_stream_list list,
					       const struct stasis_stream_key *key)
{
	struct stasis_stream_node *found;

	stasis_mutex_lock(&lock);
	found = take_locked(list, key);
	stasis_mutex_unlock(&lock);
	return found;
}

void stasis_streams_put_back(enum stasis_stream_list list, struct stasis_stream_node *node)
{
	struct stasis_stream_node *newer;

	if (!node)
		return;
	stasis_mutex_lock(&lock);
	newer = take_locked(list, &node->record.key);
	put_locked(list, newer ? newer : node);
	stasis_mutex_unlock(&lock);
	if (newer)
		free(node);
}

void stasis_streams_remove(enum stasis_stream_list list, const struct stasis_stream_key *key)
{
	free(stasis_streams_take(list, key));
}

/* ---- all of a list ---- */

static bool has_begun_locked(pid_t tid) REQUIRES(lock)
{
	for (uint32_t i = 0; counts[STASIS_CAPTURES] > 0 && i < SLOT_COUNT; i++) {
		const struct stasis_stream_node *node = slots[STASIS_CAPTURES][i];

		while (node && node->record.begun_by != tid)
			node = node->next;
		if (node)
			return true;
	}
	return false;
}

bool stasis_streams_thread_captures(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	bool has_begun;

	stasis_mutex_lock(&lock);
	has_begun = has_begun_locked(tid);
	stasis_mutex_unlock(&lock);
	return has_begun;
}

uint32_t stasis_streams_count(enum stasis_stream_list list)
{
	uint32_t count;

	stasis_mutex_lock(&lock);
	count = counts[list];
	stasis_mutex_unlock(&lock);
	return count;
}

/* How many there are; they are copied only if there is room for all. */
static uint32_t copy_into(enum stasis_stream_list list, uint32_t room,
			  struct stasis_stream_record *records)
{
	uint32_t copied = 0;
	uint32_t count;

	stasis_mutex_lock(&lock);
	count = counts[list];
	for (uint32_t i = 0; i < SLOT_COUNT && count <= room && copied < count; i++) {
		for (struct stasis_stream_node *node = slots[list][i]; node; node = node->next)
			records[copied++] = node->record;
	}
	stasis_mutex_unlock(&lock);
	return count;
}

bool stasis_streams_copy(enum stasis_stream_list list, struct stasis_stream_record **ret_records,
			 uint32_t *ret_count)
{
	struct stasis_stream_record *records = NULL;
	uint32_t room = 0;
	uint32_t count;

	/* Without the lock memory is had, and more may come meanwhile. */
	while ((count = copy_into(list, room, records)) > room) {
		free(records);
		room = count + count / 4;
		records = calloc(room, sizeof(*records));
		if (!records)
			return false;
	}
	*ret_records = records;
	*ret_count = count;
	return true;
}
