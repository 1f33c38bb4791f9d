/*
 * What fails in a process that is short of threads or descriptors, for calls of the interposer alone: the calls to
 * pthread_create and memfd_create whose numbers STASIS_TEST_STARVE_THREADS and STASIS_TEST_STARVE_FILES give, as
 * one digit from 1 on.
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static atomic_int thread_calls;
static atomic_int file_calls;

static bool is_interposer(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libstasis-interpose") != NULL;
}

static bool is_to_fail(const void *caller, const char *variable, atomic_int *calls)
{
	const char *number = getenv(variable);

	return number && is_interposer(caller) && atomic_fetch_add(calls, 1) + 1 == *number - '0';
}

PUBLIC int thread_create(pthread_t *thread, const pthread_attr_t *attributes,
			 void *(*function)(void *), void *argument) __asm__("pthread_create");
PUBLIC int thread_create(pthread_t *thread, const pthread_attr_t *attributes,
			 void *(*function)(void *), void *argument)
{
	__typeof__(pthread_create) *real =
		(__typeof__(pthread_create) *)dlsym(RTLD_NEXT, "pthread_create");

	if (is_to_fail(__builtin_return_address(0), "STASIS_TEST_STARVE_THREADS", &thread_calls))
		return EAGAIN;
	return real(thread, attributes, function, argument);
}

PUBLIC int memfd_create(const char *name, unsigned int flags);
PUBLIC int memfd_create(const char *name, unsigned int flags)
{
	__typeof__(memfd_create) *real =
		(__typeof__(memfd_create) *)dlsym(RTLD_NEXT, "memfd_create");

	if (is_to_fail(__builtin_return_address(0), "STASIS_TEST_STARVE_FILES", &file_calls)) {
		errno = EMFILE;
		return -1;
	}
	return real(name, flags);
}
