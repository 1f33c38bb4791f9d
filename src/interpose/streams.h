#ifndef STASIS_INTERPOSE_STREAMS_H
#define STASIS_INTERPOSE_STREAMS_H

/*
 * The application's streams and contexts that it created, and which streams it is capturing: what the gate has to
 * know to close. A capture counts from the call that begins it to the one that ends it, or to the end of its
 * stream or context. Any thread; no driver call is made here.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/abi.h"

/*
 * A stream as a key. A thread's own default stream has one number for all threads, so the thread belongs to it;
 * `tid` is 0 for others.
 */
struct stasis_stream_key {
	CUstream stream;
	pid_t tid;
};

/* `is_per_thread`: of a call in the per-thread form, in which 0 names the thread's own default stream. */
struct stasis_stream_key stasis_stream_key(CUstream stream, bool is_per_thread);

struct stasis_stream_record {
	struct stasis_stream_key key;
	CUcontext context; /* that was current when it was made, or captured */
	pid_t begun_by;    /* a capture's; 0: it is a stream */
};

/* What is kept. Room is had before the driver is asked: stasis_streams_room() false means there is none. */
enum stasis_stream_list {
	STASIS_STREAMS,  /* created by the application */
	STASIS_CAPTURES, /* open */
	STASIS_CONTEXTS, /* created by the application; primary ones are not kept */
	STASIS_STREAM_LIST_COUNT,
};

struct stasis_stream_node;
struct stasis_stream_node *stasis_streams_room(void);
void stasis_streams_drop(struct stasis_stream_node *room);
/* Takes `room`. */
void stasis_streams_add(enum stasis_stream_list list, struct stasis_stream_node *room,
			const struct stasis_stream_record *record);
void stasis_streams_remove(enum stasis_stream_list list, const struct stasis_stream_key *key);
/* With all of its streams and captures. */
void stasis_streams_remove_context(CUcontext context);

/* Up to `max` of them; returns how many there are. */
uint32_t stasis_streams_copy(enum stasis_stream_list list, uint32_t max,
			     struct stasis_stream_record *ret_records);

#endif
