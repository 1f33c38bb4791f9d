#ifndef STASIS_INTERPOSE_STREAMS_H
#define STASIS_INTERPOSE_STREAMS_H

/*
 * The application's streams and contexts that it created, and which streams it is capturing: what the gate has to
 * know to close. A capture counts from the call that begins it to the one that ends it, or to the end of its
 * stream, its context, or the thread whose own default stream it is of. Any thread; no driver call is made here.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "driver/abi.h"

/*
 * A context from its making to its end. Handles come again: a created context may get that of a destroyed one, and a
 * primary context always has the same; the driver's id does not. 0: the driver has none, before CUDA 12.0.
 */
struct stasis_stream_life {
	CUcontext context;
	unsigned long long id;
};

/*
 * A stream as a key. A thread's own default stream has one number for all threads and contexts, so these belong
 * to it; `tid` and `context` are 0 for others.
 */
struct stasis_stream_key {
	CUstream stream;
	CUcontext context;
	pid_t tid;
};

struct stasis_stream_record {
	struct stasis_stream_key key;   /* a context's: its handle in the place of the stream's */
	struct stasis_stream_life life; /* of a green context's stream: that context's */
	CUcontext
		context; /* whose event waits for it; of a green context's: the device's primary one */
	pid_t begun_by; /* a capture's; 0: it is none */
};

/* What is kept. Room is had before the driver is asked: stasis_streams_room() NULL means there is none. */
enum stasis_stream_list {
	STASIS_STREAMS,  /* created by the application */
	STASIS_CAPTURES, /* open */
	STASIS_CONTEXTS, /* created by the application; primary ones are not kept */
	STASIS_STREAM_LIST_COUNT,
};

struct stasis_stream_node;
struct stasis_stream_node *stasis_streams_room(void);
void stasis_streams_drop(struct stasis_stream_node *room);

/* Takes `room`. What stands there under the same key has ended unseen, and goes. */
void stasis_streams_add(enum stasis_stream_list list, struct stasis_stream_node *room,
			const struct stasis_stream_record *record);

/* Takes it out, to be given to stasis_streams_drop() or stasis_streams_put_back(). NULL: it is not there. */
struct stasis_stream_node *stasis_streams_take(enum stasis_stream_list list,
					       const struct stasis_stream_key *key);
/* NULL does nothing. Where another has come under the same key meanwhile, that one stays. */
void stasis_streams_put_back(enum stasis_stream_list list, struct stasis_stream_node *node);
void stasis_streams_remove(enum stasis_stream_list list, const struct stasis_stream_key *key);

/* The context that has ended, its streams and its captures. */
void stasis_streams_remove_life(const struct stasis_stream_life *life);

/* Whether the calling thread has begun a capture that is open. */
bool stasis_streams_thread_captures(void);

uint32_t stasis_streams_count(enum stasis_stream_list list);

/* All of them; the caller frees *ret_records, NULL where there is none. False: there is no memory. */
NODISCARD bool stasis_streams_copy(enum stasis_stream_list list,
				   struct stasis_stream_record **ret_records, uint32_t *ret_count);

#endif
