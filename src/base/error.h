#ifndef STASIS_BASE_ERROR_H
#define STASIS_BASE_ERROR_H

/*
 * Errors that carry their cause. The caller owns a struct stasis_error and passes it last; it is of fixed
 * size, so that an error needs no allocation and can travel in a message. It is filled once, where the
 * cause is first known: the first cause wins, and a failing cleanup never replaces it. Every function
 * that fills one returns -1, so that a caller can write `return stasis_fail(err, …)`.
 *
 * An error's text is one clear line: what failed, on which object, why, and what to do.
 * `err` may be NULL where a caller does not want to know.
 */

#include <stdbool.h>
#include <stdint.h>

#include <stasis.h>

#include "base/compiler.h"

#define STASIS_ERROR_TEXT_BYTES 1024

struct stasis_error {
	enum stasis_status status; /* what became of the target; STASIS_OK: no error yet */
	int32_t os_errno;          /* 0: not from the operating system */
	int32_t cuda_result;       /* a CUresult; 0: not from the driver */
	char text[STASIS_ERROR_TEXT_BYTES];
};

#define STASIS_ERROR_INIT                                                                          \
	{                                                                                          \
		.status = STASIS_OK                                                                \
	}

/* Fills an empty error. Keeps errno. */
FORMAT(3, 4)
int stasis_fail(struct stasis_error *err, enum stasis_status status, const char *format, ...);

/* As stasis_fail, with the meaning of the present errno appended: "open 'x': No such file …". */
FORMAT(3, 4)
int stasis_fail_errno(struct stasis_error *err, enum stasis_status status, const char *format, ...);

/* As stasis_fail_errno, with an error number that a call returned (pthread, posix_fallocate). */
FORMAT(4, 5)
int stasis_fail_code(struct stasis_error *err, enum stasis_status status, int code,
		     const char *format, ...);

#if defined(__clang_analyzer__) && !defined(STASIS_ERROR_C)
/* The analyzer sees one file at a time and would follow paths on which these return 0. */
static inline int stasis_fail_always(int result)
{
	(void)result;
	return -1;
}
#define stasis_fail(...) stasis_fail_always(stasis_fail(__VA_ARGS__))
#define stasis_fail_errno(...) stasis_fail_always(stasis_fail_errno(__VA_ARGS__))
#define stasis_fail_code(...) stasis_fail_always(stasis_fail_code(__VA_ARGS__))
#endif

/* Puts context before the text of an error that is already there: "restore image 'x': …". */
FORMAT(2, 3) void stasis_error_context(struct stasis_error *err, const char *format, ...);

/* Appends advice or a target's fate after the text: "…; the target runs as before". */
FORMAT(2, 3) void stasis_error_append(struct stasis_error *err, const char *format, ...);

/* Raises the status where the fate of a target turned out worse than first said; never lowers it. */
void stasis_error_worsen(struct stasis_error *err, enum stasis_status status);

/* Takes over `from` if `err` is still empty; the first cause wins. */
void stasis_error_take(struct stasis_error *err, const struct stasis_error *from);

bool stasis_error_is_set(const struct stasis_error *err);

#endif
