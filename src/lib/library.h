#ifndef STASIS_LIB_LIBRARY_H
#define STASIS_LIB_LIBRARY_H

/*
 * What is behind a struct stasis_library, and events for the rest of the library. A sink is where events
 * go: a caller's function, or, in a process of our own, the channel to the supervisor.
 */

#include <stasis.h>

#include "base/compiler.h"
#include "base/error.h"

struct stasis_lib_sink {
	stasis_event_function *function; /* NULL: nobody listens */
	void *argument;
};

struct stasis_library {
	struct stasis_lib_sink sink;
	struct stasis_error err;
};

/* Emits one event; a value longer than 1023 bytes is cut. Keeps errno. */
FORMAT(3, 4)
void stasis_lib_event(const struct stasis_lib_sink *sink, const char *key, const char *format, ...);

/* As above for a member of something numbered: "extent.0.bytes". */
FORMAT(5, 6)
void stasis_lib_event_of(const struct stasis_lib_sink *sink, const char *what, size_t index,
			 const char *member, const char *format, ...);

/* Empties the library's error for a new call. */
struct stasis_error *stasis_lib_begin(struct stasis_library *library);

/*
 * The status of a call that returned `result`, as its error says. A failure without a cause is a bug of
 * ours, and said to be one.
 */
enum stasis_status stasis_lib_end(struct stasis_library *library, int result);

/*
 * Copies a caller's option structure of its own size onto our defaults of `ours_bytes`. Members that we
 * do not know must be zero. `what` is for messages.
 */
NODISCARD int stasis_lib_options_copy(const char *what, const void *theirs, void *ours,
				      size_t ours_bytes, struct stasis_error *err);

#endif
