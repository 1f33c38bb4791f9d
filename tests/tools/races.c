/*
 * Pairs of threads under ThreadSanitizer, for tsan_test.sh. usage: races CASE LIBRARY
 *
 *   stack-cache  no race: glibc frees the thread-local data of a thread that has been joined, in another one
 *   heap         a race: a block is freed by one thread and written to by another
 *   word         a race: two threads write to the thread-local data of one of them, which still runs
 *
 * Threads wait for each other by relaxed atomics, which order nothing else.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc keeps 40 MiB of stacks: two of these are more. */
#define STACK_BYTES ((size_t)30 << 20)

static int *(*own_word)(void);
static int *block;
static _Atomic(int *) published;
static atomic_int detached_tid;
static atomic_bool may_end;

static void *word_write(void *unused)
{
	int *word = own_word();

	(void)unused;
	*word = 1;
	return NULL;
}

static void *end_wait(void *unused)
{
	(void)unused;
	atomic_store_explicit(&detached_tid, gettid(), memory_order_relaxed);
	while (!atomic_load_explicit(&may_end, memory_order_relaxed))
		(void)sched_yield();
	return NULL;
}

static void *block_write(void *unused)
{
	(void)unused;
	*block = 1;
	atomic_store_explicit(&may_end, true, memory_order_relaxed);
	return NULL;
}

static void *word_publish(void *unused)
{
	int *word = own_word();

	*word = 1;
	atomic_store_explicit(&published, word, memory_order_relaxed);
	return end_wait(unused);
}

static pthread_t start(void *(*function)(void *), int detach_state)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (pthread_attr_init(&attributes) != 0 ||
	    pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
	    pthread_attr_setdetachstate(&attributes, detach_state) != 0 ||
	    pthread_create(&thread, &attributes, function, NULL) != 0) {
		(void)fputs("races: cannot start a thread\n", stderr);
		exit(1);
	}
	(void)pthread_attr_destroy(&attributes);
	return thread;
}

/* The stack of the joined thread is kept; when the detached one adds its own, the older is given back. */
static void stack_cache(void)
{
	pid_t tid = 0;

	(void)start(end_wait, PTHREAD_CREATE_DETACHED);
	while (!tid) {
		(void)sched_yield();
		tid = atomic_load_explicit(&detached_tid, memory_order_relaxed);
	}
	(void)pthread_join(start(word_write, PTHREAD_CREATE_JOINABLE), NULL);
	atomic_store_explicit(&may_end, true, memory_order_relaxed);
	while (tgkill(getpid(), tid, 0) == 0)
		(void)sched_yield();
}

static void heap(void)
{
	pthread_t thread;

	block = malloc(sizeof(*block));
	if (!block)
		return;
	thread = start(block_write, PTHREAD_CREATE_JOINABLE);
	while (!atomic_load_explicit(&may_end, memory_order_relaxed))
		(void)sched_yield();
	free(block);
	(void)pthread_join(thread, NULL);
}

static void word(void)
{
	pthread_t thread = start(word_publish, PTHREAD_CREATE_JOINABLE);
	int *other = NULL;

	while (!other) {
		(void)sched_yield();
		other = atomic_load_explicit(&published, memory_order_relaxed);
	}
	*other = 2;
	atomic_store_explicit(&may_end, true, memory_order_relaxed);
	(void)pthread_join(thread, NULL);
}

int main(int argument_count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"stack-cache", stack_cache}, {"heap", heap}, {"word", word}};
	void *library = argument_count == 3 ? dlopen(arguments[2], RTLD_NOW) : NULL;

	if (library)
		own_word = (int *(*)(void))dlsym(library, "own_word");
	if (!own_word) {
		(void)fputs("usage: races CASE LIBRARY\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, arguments[1]) == 0) {
			cases[i].run();
			(void)puts("finished");
		}
	}
	return 0;
}
