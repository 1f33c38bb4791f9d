#ifndef STASIS_INTERPOSE_LIVES_H
#define STASIS_INTERPOSE_LIVES_H

/*
 * Whether the contexts of the records in streams.h are still there. A stream of a context that has ended must not be
 * asked anything: the driver crashes (measured on driver 580). A context may be asked for its id at any time, which
 * waits for nobody. Any thread.
 */

#include "interpose/calls.h"
#include "interpose/streams.h"

/* The life that a context is in; its id is 0 where it is in none, or the driver tells no ids. NULL is in none. */
struct stasis_stream_life stasis_life_of(const struct stasis_calls *calls, CUcontext context);

/* False also where the driver cannot tell. */
bool stasis_life_has_ended(const struct stasis_calls *calls, const struct stasis_stream_life *life);

/* Removes all records of lives that have ended. False: there is no memory to look through them. */
bool stasis_lives_prune(const struct stasis_calls *calls);

#endif
