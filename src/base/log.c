/*
 * See log.h.
 */

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {
	[STASIS_LOG_ERROR] = "error",
	[STASIS_LOG_WARN] = "warn",
	[STASIS_LOG_INFO] = "info",
	[STASIS_LOG_DEBUG] = "debug",
};

/* Relaxed suffices: the level orders nothing else. */
static _Atomic(int) log_level = STASIS_LOG_WARN;

void stasis_log_set_level(enum stasis_log_level level)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

void stasis_log(enum stasis_log_level level, const char *format, ...)
{
	char line[1280];
	int saved = errno;
	va_list arguments;
	size_t used;

	if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
		return;
	(void)snprintf(line, sizeof(line), "stasis: %s: ", level_names[level]);
	used = strlen(line);
	va_start(arguments, format);
	(void)vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
	va_end(arguments);
	used = strlen(line);
	line[used++] = '\n';
	(void)!write(STDERR_FILENO, line, used);
	errno = saved;
}
