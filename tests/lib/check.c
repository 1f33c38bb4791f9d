/*
 * Reports of the test programs. A process that reports ends at once with _exit, so that no exit handler of
 * the driver runs in a state that the test has just called wrong.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

NORETURN static void end_with(const char *line, int status)
{
	(void)fprintf(stdout, "%s\n", line);
	(void)fflush(stdout);
	_exit(status);
}

void t_fail(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	end_with(line, 1);
}

void t_skip(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	end_with(line, T_EXIT_SKIPPED);
}

const char *t_result_name(CUresult result)
{
	const char *name = NULL;

	if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
		return "a result without a name";
	return name;
}

void t_check_result(const char *file, int line, const char *call, CUresult got, CUresult want)
{
	if (got == want)
		return;
	t_fail("%s:%d: %s: expected %s (%d), got %s (%d)", file, line, call, t_result_name(want),
	       (int)want, t_result_name(got), (int)got);
}

void t_check_refused(const char *file, int line, const char *call, CUresult got)
{
	if (got == CUDA_SUCCESS)
		t_fail("%s:%d: %s: expected an error, got CUDA_SUCCESS", file, line, call);
}

void t_check_equal(const char *file, int line, const char *got_text, long long got,
		   const char *want_text, long long want)
{
	if (got == want)
		return;
	t_fail("%s:%d: %s: expected %s = %lld (0x%llx), got %lld (0x%llx)", file, line, got_text,
	       want_text, want, (unsigned long long)want, got, (unsigned long long)got);
}

void t_check_true(const char *file, int line, const char *text, int holds)
{
	if (!holds)
		t_fail("%s:%d: expected %s", file, line, text);
}

long t_check_system(const char *file, int line, const char *call, long value)
{
	char reason[128];

	if (value != -1)
		return value;
	t_fail("%s:%d: %s: %s", file, line, call, strerror_r(errno, reason, sizeof(reason)));
}
