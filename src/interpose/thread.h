#ifndef STASIS_INTERPOSE_THREAD_H
#define STASIS_INTERPOSE_THREAD_H

/*
 * Threads of ours in somebody else's process: all signals blocked, so that the program's handlers never run
 * there; named; a small stack of fixed size; never waited for.
 */

#include "base/compiler.h"
#include "base/error.h"

/* `name`: at most 15 characters; it is what `function` is called with, and lives for ever. */
NODISCARD int stasis_thread_start(const char *name, void *function(void *),
				  struct stasis_error *err);

#endif
