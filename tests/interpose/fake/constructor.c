/*
 * A library whose constructor uses CUDA, with the loader's lock held, while a thread of its own does so
 * too; the thread cannot finish before the constructor has, and the constructor does not wait for it.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "driver/abi.h"

typedef CUresult init_function(unsigned int);

static pthread_t thread;
static bool is_running;
static int result = -1;

static int cuda_use(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	init_function *init = libcuda ? (init_function *)dlsym(libcuda, "cuInit") : NULL;

	return init ? (int)init(0) : -1;
}

static void *run(void *argument)
{
	*(int *)argument = cuda_use();
	return NULL;
}

static int thread_result = -1;

__attribute__((constructor)) static void use(void)
{
	is_running = pthread_create(&thread, NULL, run, &thread_result) == 0;
	if (is_running)
		result = cuda_use();
}

static void thread_end(void)
{
	if (is_running)
		(void)pthread_join(thread, NULL);
	is_running = false;
}

/* A program that does not ask leaves no thread behind. */
__attribute__((destructor)) static void unloaded(void)
{
	thread_end();
}

PUBLIC int constructor_result(void);
PUBLIC int constructor_result(void)
{
	thread_end();
	return result == 0 ? thread_result : result;
}
