#ifndef STASIS_INTERPOSE_GATE_H
#define STASIS_INTERPOSE_GATE_H

/*
 * The gate that every call of the application passes on its way into the driver. Open, it costs a test and
 * two stores to a mark of the thread's own; the side that closes it pays, with membarrier. A call is
 * held at our door, outside the driver, and goes on when the gate opens: it never fails. Calls that a
 * call makes in turn (from a second interposer, or a callback on its thread) always pass, since
 * the one outside is waited for.
 *
 * It closes in two steps: CAPTURES_HELD holds what begins a stream capture, but for threads that have one open and
 * would not come to end it; CLOSED holds everything.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

enum stasis_gate_level {
	STASIS_GATE_OPEN,
	STASIS_GATE_CAPTURES_HELD,
	STASIS_GATE_CLOSED,
	STASIS_GATE_INHERITED, /* in a forked child: the first call to come puts things in order */
	STASIS_GATE_ADOPTING,  /* which is being done */
};

/* Set beside a level where there is no membarrier: then each call makes a fence of its own. */
#define STASIS_GATE_FENCED 0x100u

/* Set beside an entry that CAPTURES_HELD holds. */
#define STASIS_GATE_CAPTURE 0x80000000u

/* A thread's calls in flight. Written by its thread, read by whoever closes. */
struct stasis_gate_mark {
	_Alignas(64) atomic_uint depth;
	atomic_uint
		entry; /* of the outermost call, and STASIS_GATE_CAPTURE if that begins a capture */
	atomic_int tid; /* 0: free */
};

struct stasis_gate_busy {
	pid_t tid;      /* 0: none; only `count` is known */
	uint32_t entry; /* an enum stasis_entry */
	uint32_t count; /* of threads with calls in flight */
};

extern atomic_uint stasis_gate_word;
extern _Thread_local struct stasis_gate_mark *stasis_gate_thread_mark
	__attribute__((tls_model("initial-exec")));

struct stasis_gate_mark *stasis_gate_mark_new(void);
void stasis_gate_wait(struct stasis_gate_mark *mark, uint32_t held_at);

/* Holds the caller while the gate's level is `held_at` or above. Every enter is followed by its leave. */
static inline struct stasis_gate_mark *stasis_gate_enter(uint32_t entry, uint32_t held_at)
{
	struct stasis_gate_mark *mark = stasis_gate_thread_mark;
	uint32_t depth;

	if (__builtin_expect(!mark, 0))
		mark = stasis_gate_mark_new();
	depth = atomic_load_explicit(&mark->depth, memory_order_relaxed);
	if (depth == 0)
		atomic_store_explicit(
			&mark->entry,
			entry | (held_at < STASIS_GATE_CLOSED ? STASIS_GATE_CAPTURE : 0),
			memory_order_relaxed);
	atomic_store_explicit(&mark->depth, depth + 1, memory_order_relaxed);
	/* Who closes writes the word, then has every thread fenced (membarrier), then reads the marks. */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(
		    atomic_load_explicit(&stasis_gate_word, memory_order_acquire) >= held_at, 0) &&
	    depth == 0)
		stasis_gate_wait(mark, held_at);
	return mark;
}

static inline void stasis_gate_leave(struct stasis_gate_mark *mark)
{
	uint32_t depth = atomic_load_explicit(&mark->depth, memory_order_relaxed);

	atomic_store_explicit(&mark->depth, depth - 1, memory_order_release);
}

/* Registers what a forked child needs; any number of times, from any thread. */
void stasis_gate_prepare(void);

/*
 * Sets the level to CAPTURES_HELD or CLOSED and waits until no call that it holds is in flight. One
 * thread at a time may do so, and none with a call of its own in flight. Returns 0, or an errno, after
 * which the level is what it was: ETIMEDOUT (*ret_busy says who was in the driver), ENOTSUP (a
 * thread could not be given a mark, or membarrier is refused, so that nobody can tell what is in flight).
 */
NODISCARD int stasis_gate_close(enum stasis_gate_level level, uint64_t timeout_ns,
				struct stasis_gate_busy *ret_busy);
void stasis_gate_open(void);
enum stasis_gate_level stasis_gate_level(void);

/* How many threads have a mark; for tests and reports. */
uint32_t stasis_gate_thread_count(void);

/* Called in a forked child, on its only thread; see fork.c. */
void stasis_gate_forked(void);

#endif
