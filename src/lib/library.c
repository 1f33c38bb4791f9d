/*
 * See library.h and stasis.h.
 */

#include "lib/library.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_BYTES 1024

struct stasis_library *stasis_library_new(void)
{
	return calloc(1, sizeof(struct stasis_library));
}

void stasis_library_free(struct stasis_library *library)
{
	free(library);
}

void stasis_library_set_events(struct stasis_library *library, stasis_event_function *function,
			       void *argument)
{
	library->sink = (struct stasis_lib_sink){.function = function, .argument = argument};
}

const char *stasis_library_error(const struct stasis_library *library)
{
	return library->err.text;
}

int stasis_library_error_errno(const struct stasis_library *library)
{
	return library->err.os_errno;
}

int stasis_library_error_cuda(const struct stasis_library *library)
{
	return library->err.cuda_result;
}

const char *stasis_version(void)
{
	return STASIS_VERSION;
}

FORMAT(3, 0)
static void event_emit(const struct stasis_lib_sink *sink, const char *key, const char *format,
		       va_list arguments)
{
	char value[EVENT_BYTES];
	int saved = errno;

	if (sink->function) {
		(void)vsnprintf(value, sizeof(value), format, arguments);
		sink->function(key, value, sink->argument);
	}
	errno = saved;
}

void stasis_lib_event(const struct stasis_lib_sink *sink, const char *key, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	event_emit(sink, key, format, arguments);
	va_end(arguments);
}

void stasis_lib_event_of(const struct stasis_lib_sink *sink, const char *what, size_t index,
			 const char *member, const char *format, ...)
{
	char key[64];
	va_list arguments;

	(void)snprintf(key, sizeof(key), "%s.%zu.%s", what, index, member);
	va_start(arguments, format);
	event_emit(sink, key, format, arguments);
	va_end(arguments);
}

struct stasis_error *stasis_lib_begin(struct stasis_library *library)
{
	library->err = (struct stasis_error)STASIS_ERROR_INIT;
	return &library->err;
}

enum stasis_status stasis_lib_end(struct stasis_library *library, int result)
{
	if (result == 0) {
		library->err = (struct stasis_error)STASIS_ERROR_INIT;
		return STASIS_OK;
	}
	if (!stasis_error_is_set(&library->err))
		(void)stasis_fail(&library->err, STASIS_INTERNAL,
				  "the call failed without saying why; this is a bug of stasis");
	return library->err.status;
}

int stasis_lib_options_copy(const char *what, const void *theirs, void *ours, size_t ours_bytes,
			    struct stasis_error *err)
{
	const unsigned char *bytes = theirs;
	size_t theirs_bytes;

	if (!theirs)
		return stasis_fail(err, STASIS_USAGE, "%s: the options are NULL", what);
	memcpy(&theirs_bytes, theirs, sizeof(theirs_bytes));
	if (theirs_bytes < sizeof(theirs_bytes))
		return stasis_fail(err, STASIS_USAGE, "%s: the options' size %zu is too small",
				   what, theirs_bytes);
	for (size_t i = ours_bytes; i < theirs_bytes; i++) {
		if (bytes[i])
			return stasis_fail(err, STASIS_USAGE,
					   "%s: an option is set that this library does not know",
					   what);
	}
	memcpy(ours, theirs, theirs_bytes < ours_bytes ? theirs_bytes : ours_bytes);
	return 0;
}
