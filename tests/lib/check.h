#ifndef TESTS_LIB_CHECK_H
#define TESTS_LIB_CHECK_H

/*
 * How a test program says that something is wrong: one line with file, line, what was expected and what
 * came, then exit status 1. A skip is exit status 77, its reason the last line of output. All of it goes to
 * standard output, which a failing child shares with its parent.
 *
 * T_OK(call)            the driver call must succeed
 * T_IS(call, RESULT)    it must return exactly RESULT
 * T_REFUSED(call)       it must fail; which error is left to the driver
 * T_EQ(got, want)       two numbers or pointers must be equal
 * T_TRUE(condition)     must hold
 * T_SYS(call)           a system call must not return -1; gives its value
 */

#include <errno.h>

#include "base/compiler.h"
#include "driver/abi.h"

#define T_EXIT_SKIPPED 77

#define T_OK(call) t_check_result(__FILE__, __LINE__, #call, (call), CUDA_SUCCESS)
#define T_IS(call, want) t_check_result(__FILE__, __LINE__, #call, (call), (want))
#define T_REFUSED(call) t_check_refused(__FILE__, __LINE__, #call, (call))
#define T_EQ(got, want)                                                                            \
	t_check_equal(__FILE__, __LINE__, #got, (long long)(got), #want, (long long)(want))
#define T_TRUE(condition) t_check_true(__FILE__, __LINE__, #condition, (condition) ? 1 : 0)
#define T_SYS(call) t_check_system(__FILE__, __LINE__, #call, (long)(call))

void t_check_result(const char *file, int line, const char *call, CUresult got, CUresult want);
void t_check_refused(const char *file, int line, const char *call, CUresult got);
void t_check_equal(const char *file, int line, const char *got_text, long long got,
		   const char *want_text, long long want);
void t_check_true(const char *file, int line, const char *text, int holds);
long t_check_system(const char *file, int line, const char *call, long value);

/* Says the reason and ends the process with 1. */
NORETURN FORMAT(1, 2) void t_fail(const char *format, ...);

/* Says the reason and ends the process with 77. */
NORETURN FORMAT(1, 2) void t_skip(const char *format, ...);

/* The driver's name of a result, such as CUDA_ERROR_INVALID_VALUE. Never NULL. */
const char *t_result_name(CUresult result);

#endif
