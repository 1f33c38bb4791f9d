/*
 * See thread.h.
 */

#include "interpose/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/* The driver runs on it, and glibc puts the program's thread-local variables there. */
#define STACK_BYTES (UINT64_C(1) << 20)

static int detached_start(const char *name, void *function(void *), size_t stack_bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int code = pthread_attr_init(&attributes);

	if (code != 0)
		return code;
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (stack_bytes > 0)
		(void)pthread_attr_setstacksize(&attributes, stack_bytes);
	code = pthread_create(&thread, &attributes, function, (void *)(uintptr_t)name);
	(void)pthread_attr_destroy(&attributes);
	return code;
}

int stasis_thread_start(const char *name, void *function(void *), struct stasis_error *err)
{
	sigset_t all;
	sigset_t before;
	int code;

	/* A thread starts with the mask of who makes it. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	code = detached_start(name, function, STACK_BYTES);
	/* The program has more thread-local variables than that. */
	if (code == EINVAL)
		code = detached_start(name, function, 0);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code != 0)
		return stasis_fail_code(err, STASIS_REFUSED, code, "start the thread %s", name);
	return 0;
}
