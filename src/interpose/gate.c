/*
 * The gate: marks, waiting, closing. See gate.h for what it promises. Uses atomics, futex and mmap only, but for
 * calls that begin a capture: it is entered from constructors, signal handlers and threads that are about to end.
 *
 * Marks live in blocks that are never freed; a mark is given back when its thread ends.
 */

#include "interpose/gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "interpose/fork.h"
#include "interpose/streams.h"

#define BLOCK_MARKS 127
#define LEVEL_MASK 0xffu

struct block {
	struct block *next;
	struct stasis_gate_mark marks[BLOCK_MARKS];
};

enum preparation { UNPREPARED, PREPARING, PREPARED };

static struct {
	_Atomic(struct block *) blocks;
	_Atomic(struct stasis_gate_mark *) survivor; /* the mark of the thread that forked */
	atomic_int preparation;                      /* an enum preparation */
	atomic_bool has_uncounted;                   /* a thread went without a mark */
	atomic_bool has_key;
	pthread_key_t key; /* its destructor gives a thread's mark back */
} gate;

atomic_uint stasis_gate_word;
_Thread_local struct stasis_gate_mark *stasis_gate_thread_mark
	__attribute__((tls_model("initial-exec")));
/* Stands in where there is no memory for a mark; it is seen by nobody, and closing is refused. */
static _Thread_local struct stasis_gate_mark uncounted_mark
	__attribute__((tls_model("initial-exec")));

static void futex_wait(atomic_uint *word, uint32_t value)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_all(atomic_uint *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void mark_give_back(void *argument)
{
	struct stasis_gate_mark *mark = argument;

	stasis_gate_thread_mark = NULL;
	atomic_store_explicit(&mark->depth, 0, memory_order_release);
	atomic_store_explicit(&mark->tid, 0, memory_order_release);
}

void stasis_gate_prepare(void)
{
	int state = UNPREPARED;

	if (atomic_load_explicit(&gate.preparation, memory_order_acquire) == PREPARED)
		return;
	if (!atomic_compare_exchange_strong(&gate.preparation, &state, PREPARING)) {
		/* Nothing in there waits for a lock of the loader or of ours. */
		while (atomic_load_explicit(&gate.preparation, memory_order_acquire) != PREPARED)
			(void)sched_yield();
		return;
	}
	/* Without the handler a child would wait for threads that it has not got. */
	if (!stasis_fork_prepare())
		atomic_store(&gate.has_uncounted, true);
	atomic_store(&gate.has_key, pthread_key_create(&gate.key, mark_give_back) == 0);
	if ((syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) &
	     MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
		atomic_fetch_or(&stasis_gate_word, STASIS_GATE_FENCED);
	atomic_store_explicit(&gate.preparation, PREPARED, memory_order_release);
}

static struct stasis_gate_mark *block_take(struct block *block, int tid)
{
	for (size_t i = 0; i < BLOCK_MARKS; i++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&block->marks[i].tid, &none, tid))
			return &block->marks[i];
	}
	return NULL;
}

static struct stasis_gate_mark *mark_take(int tid)
{
	struct stasis_gate_mark *mark = NULL;
	struct block *first = atomic_load(&gate.blocks);
	struct block *block;

	for (block = first; block && !mark; block = block->next)
		mark = block_take(block, tid);
	if (mark)
		return mark;
	block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (block == MAP_FAILED)
		return NULL;
	mark = &block->marks[0];
	atomic_store_explicit(&mark->tid, tid, memory_order_relaxed);
	block->next = first;
	while (!atomic_compare_exchange_weak(&gate.blocks, &first, block))
		block->next = first;
	return mark;
}

/* Of all marks only that of the thread which forked counts in the child. */
static void inheritance_adopt(void)
{
	uint32_t word = atomic_load(&stasis_gate_word);
	struct stasis_gate_mark *survivor = atomic_load(&gate.survivor);
	uint32_t fenced = word & STASIS_GATE_FENCED;

	if ((word & LEVEL_MASK) == STASIS_GATE_ADOPTING)
		futex_wait(&stasis_gate_word, word);
	if ((word & LEVEL_MASK) != STASIS_GATE_INHERITED ||
	    !atomic_compare_exchange_strong(&stasis_gate_word, &word,
					    STASIS_GATE_ADOPTING | fenced))
		return;
	for (struct block *block = atomic_load(&gate.blocks); block; block = block->next) {
		for (size_t i = 0; i < BLOCK_MARKS; i++) {
			struct stasis_gate_mark *mark = &block->marks[i];

			if (mark == survivor || atomic_load(&mark->tid) == 0)
				continue;
			atomic_store(&mark->depth, 0);
			atomic_store(&mark->tid, 0);
		}
	}
	stasis_fork_forget();
	/* The thread that forked is the child's first, whose tid is its pid. */
	if (survivor)
		atomic_store(&survivor->tid, getpid());
	atomic_store(&stasis_gate_word, STASIS_GATE_OPEN | fenced);
	futex_wake_all(&stasis_gate_word);
}

static bool is_inherited(void)
{
	return (atomic_load(&stasis_gate_word) & LEVEL_MASK) >= STASIS_GATE_INHERITED;
}

struct stasis_gate_mark *stasis_gate_mark_new(void)
{
	struct stasis_gate_mark *mark;
	int saved_errno = errno;

	stasis_gate_prepare();
	/* Before a mark is taken: adopting gives all others back. */
	while (is_inherited())
		inheritance_adopt();
	mark = mark_take((int)syscall(SYS_gettid));
	if (!mark) {
		atomic_store(&gate.has_uncounted, true);
		mark = &uncounted_mark;
	} else if (atomic_load(&gate.has_key)) {
		/* If it fails, the mark stays taken: idle, it is in nobody's way. */
		(void)pthread_setspecific(gate.key, mark);
	}
	stasis_gate_thread_mark = mark;
	errno = saved_errno;
	return mark;
}

/* A thread whose capture is open is let begin another: held, it could not end the one that is waited for. */
static bool is_held(uint32_t level, uint32_t held_at)
{
	if (level < held_at)
		return false;
	return level != STASIS_GATE_CAPTURES_HELD || !stasis_streams_thread_captures();
}

void stasis_gate_wait(struct stasis_gate_mark *mark, uint32_t held_at)
{
	int saved_errno = errno;

	for (;;) {
		uint32_t word;

		/* In one order with the closing side's store of the word and its loads of the marks. */
		atomic_store(&mark->depth, 1);
		word = atomic_load(&stasis_gate_word);
		if (!is_held(word & LEVEL_MASK, held_at))
			break;
		if ((word & LEVEL_MASK) >= STASIS_GATE_INHERITED) {
			inheritance_adopt();
			continue;
		}
		atomic_store(&mark->depth, 0);
		futex_wait(&stasis_gate_word, word);
	}
	errno = saved_errno;
}

/* After it, a call that did not see the level has been marked, and marks can be read. */
static bool threads_fence(void)
{
	if (atomic_load(&stasis_gate_word) & STASIS_GATE_FENCED)
		return true;
	/* Registering again does nothing. A filter that the program installed may refuse either. */
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
	       syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void mark_count(const struct stasis_gate_mark *mark, enum stasis_gate_level level,
		       struct stasis_gate_busy *busy)
{
	uint32_t entry;

	if (atomic_load(&mark->depth) == 0)
		return;
	entry = atomic_load(&mark->entry);
	if (level != STASIS_GATE_CLOSED && (entry & STASIS_GATE_CAPTURE) == 0)
		return;
	if (busy->count++ == 0) {
		busy->tid = atomic_load(&mark->tid);
		busy->entry = entry & ~STASIS_GATE_CAPTURE;
	}
}

/* Of those that the level holds. */
static struct stasis_gate_busy calls_in_flight(enum stasis_gate_level level)
{
	struct stasis_gate_busy busy = {.count = 0};

	for (struct block *block = atomic_load(&gate.blocks); block; block = block->next) {
		for (size_t i = 0; i < BLOCK_MARKS; i++)
			mark_count(&block->marks[i], level, &busy);
	}
	return busy;
}

static void level_set(uint32_t level)
{
	uint32_t fenced = atomic_load(&stasis_gate_word) & STASIS_GATE_FENCED;

	atomic_store(&stasis_gate_word, level | fenced);
	futex_wake_all(&stasis_gate_word);
}

/* Polls, with pauses that grow from 20 us to 1 ms: leaving must cost a call nothing but a store. */
static bool is_drained_before(enum stasis_gate_level level, uint64_t deadline_ns,
			      struct stasis_gate_busy *ret_busy)
{
	struct timespec pause = {.tv_nsec = 20000};

	for (;;) {
		*ret_busy = calls_in_flight(level);
		if (ret_busy->count == 0)
			return true;
		if (stasis_deadline_passed(deadline_ns))
			return false;
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec *= 2;
	}
}

int stasis_gate_close(enum stasis_gate_level level, uint64_t timeout_ns,
		      struct stasis_gate_busy *ret_busy)
{
	enum stasis_gate_level before;

	*ret_busy = (struct stasis_gate_busy){.count = 0};
	stasis_gate_prepare();
	while (is_inherited())
		inheritance_adopt();
	before = stasis_gate_level();
	level_set(level);
	/* Read behind the fence: a thread without a mark that went in before it has said so. */
	if (!threads_fence() || atomic_load(&gate.has_uncounted)) {
		level_set(before);
		return ENOTSUP;
	}
	if (!is_drained_before(level, stasis_deadline_after_ns(timeout_ns), ret_busy)) {
		level_set(before);
		return ETIMEDOUT;
	}
	return 0;
}

void stasis_gate_open(void)
{
	level_set(STASIS_GATE_OPEN);
}

enum stasis_gate_level stasis_gate_level(void)
{
	return (enum stasis_gate_level)(atomic_load(&stasis_gate_word) & LEVEL_MASK);
}

uint32_t stasis_gate_thread_count(void)
{
	uint32_t count = 0;

	for (struct block *block = atomic_load(&gate.blocks); block; block = block->next) {
		for (size_t i = 0; i < BLOCK_MARKS; i++)
			count += atomic_load(&block->marks[i].tid) != 0;
	}
	return count;
}

void stasis_gate_forked(void)
{
	uint32_t fenced = atomic_load(&stasis_gate_word) & STASIS_GATE_FENCED;

	/* If another thread was preparing, it had come as far as registering the handler that called us. */
	atomic_store(&gate.preparation, PREPARED);
	atomic_store(&gate.survivor, stasis_gate_thread_mark);
	atomic_store(&stasis_gate_word, STASIS_GATE_INHERITED | fenced);
}
