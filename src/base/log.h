#ifndef STASIS_BASE_LOG_H
#define STASIS_BASE_LOG_H

/*
 * Diagnostic messages to standard error: one lower-case line, `module: object: cause`. Libraries log and
 * never print; the level is the command line's to choose (warnings and worse by default).
 */

#include "base/compiler.h"

enum stasis_log_level {
	STASIS_LOG_ERROR,
	STASIS_LOG_WARN, /* something was ignored and the work went on */
	STASIS_LOG_INFO,
	STASIS_LOG_DEBUG,
};

/* Any thread; takes effect at once. */
void stasis_log_set_level(enum stasis_log_level level);

/* Writes one line with a single write(2); keeps errno. */
FORMAT(2, 3) void stasis_log(enum stasis_log_level level, const char *format, ...);

#define stasis_log_error(...) stasis_log(STASIS_LOG_ERROR, __VA_ARGS__)
#define stasis_log_warn(...) stasis_log(STASIS_LOG_WARN, __VA_ARGS__)
#define stasis_log_info(...) stasis_log(STASIS_LOG_INFO, __VA_ARGS__)
#define stasis_log_debug(...) stasis_log(STASIS_LOG_DEBUG, __VA_ARGS__)

#endif
