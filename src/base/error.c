/*
 * See error.h. No allocation, any thread.
 */

#define STASIS_ERROR_C
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

FORMAT(2, 0)
static void text_append(char *text, const char *format, va_list arguments)
{
	size_t used = strlen(text);

	(void)vsnprintf(text + used, STASIS_ERROR_TEXT_BYTES - used, format, arguments);
}

FORMAT(4, 0)
static void error_fill(struct stasis_error *err, enum stasis_status status, int code,
		       const char *format, va_list arguments)
{
	char meaning[128];
	size_t used;

	if (!err || stasis_error_is_set(err))
		return;
	err->status = status;
	err->os_errno = code;
	err->cuda_result = 0;
	err->text[0] = '\0';
	text_append(err->text, format, arguments);
	if (!code)
		return;
	used = strlen(err->text);
	/* The GNU strerror_r returns the text; it is thread-safe where strerror is not. */
	(void)snprintf(err->text + used, sizeof(err->text) - used, ": %s",
		       strerror_r(code, meaning, sizeof(meaning)));
}

int stasis_fail(struct stasis_error *err, enum stasis_status status, const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	va_start(arguments, format);
	error_fill(err, status, 0, format, arguments);
	va_end(arguments);
	errno = saved;
	return -1;
}

int stasis_fail_errno(struct stasis_error *err, enum stasis_status status, const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	va_start(arguments, format);
	error_fill(err, status, saved, format, arguments);
	va_end(arguments);
	errno = saved;
	return -1;
}

int stasis_fail_code(struct stasis_error *err, enum stasis_status status, int code,
		     const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	va_start(arguments, format);
	error_fill(err, status, code, format, arguments);
	va_end(arguments);
	errno = saved;
	return -1;
}

void stasis_error_context(struct stasis_error *err, const char *format, ...)
{
	char old[STASIS_ERROR_TEXT_BYTES];
	va_list arguments;
	size_t used;

	if (!err || !stasis_error_is_set(err))
		return;
	memcpy(old, err->text, sizeof(old));
	err->text[0] = '\0';
	va_start(arguments, format);
	text_append(err->text, format, arguments);
	va_end(arguments);
	used = strlen(err->text);
	(void)snprintf(err->text + used, sizeof(err->text) - used, ": %s", old);
}

void stasis_error_append(struct stasis_error *err, const char *format, ...)
{
	va_list arguments;

	if (!err || !stasis_error_is_set(err))
		return;
	va_start(arguments, format);
	text_append(err->text, format, arguments);
	va_end(arguments);
}

void stasis_error_worsen(struct stasis_error *err, enum stasis_status status)
{
	if (err && stasis_error_is_set(err) && status > err->status)
		err->status = status;
}

void stasis_error_take(struct stasis_error *err, const struct stasis_error *from)
{
	if (err && !stasis_error_is_set(err))
		*err = *from;
}

bool stasis_error_is_set(const struct stasis_error *err)
{
	return err && err->status != STASIS_OK;
}
