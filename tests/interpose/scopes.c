/*
 * Description: whose entries are replaced and whose are not: scopes, other libraries and namespaces,
 * constructors, threads, forked children, and a second interposer before or behind.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "loader.h"

#define THREADS 8

typedef void *lookup_function(const char *name);

static void *libcuda_open(void)
{
	return loader_open("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* Lookups without a handle see the scope of their caller, as if nobody were between. */
static void pseudo_handles(void)
{
	void *plugin = loader_open("libplugin.so", RTLD_NOW | RTLD_LOCAL);
	lookup_function *next = (lookup_function *)loader_find(plugin, "plugin_next");
	lookup_function *any = (lookup_function *)loader_find(plugin, "plugin_default");
	void *exported = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");

	T_TRUE(loader_is_ours(exported));
	T_EQ(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), exported);
	/* Behind the plugin in its own scope comes libcuda itself; before it, the program's. */
	T_TRUE(!loader_is_ours(next("cuMemAlloc_v2")));
	T_TRUE(next("cuMemAlloc_v2"));
	T_EQ(any("cuMemAlloc_v2"), exported);
	T_TRUE(any("plugin_alloc"));
	T_TRUE(!dlsym(RTLD_DEFAULT, "plugin_alloc"));
	T_TRUE(!next("plugin_alloc"));
}

/* A library that is linked with libcuda and opened RTLD_LOCAL: its calls come by name. */
static void by_name_from_local_library(void)
{
	void *plugin = loader_open("libplugin.so", RTLD_NOW | RTLD_LOCAL);
	int (*alloc)(void) = (int (*)(void))loader_find(plugin, "plugin_alloc");

	T_EQ(alloc(), 1);
	loader_called(libcuda_open(), "cuMemAlloc_v2", 77);
}

/* The program's own handle finds the exported wrapper, which stays. */
static void own_handle(void)
{
	void *program = dlopen(NULL, RTLD_NOW);

	T_EQ(loader_find(program, "cuMemAlloc_v2"), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
}

static void outlives_close(void)
{
	void *libcuda = libcuda_open();
	void *alloc = loader_find(libcuda, "cuMemAlloc_v2");

	T_EQ(dlclose(libcuda), 0);
	libcuda = libcuda_open();
	T_EQ(loader_find(libcuda, "cuMemAlloc_v2"), alloc);
	loader_allocate(libcuda, alloc);
}

static void lookalikes(void)
{
	void *fake = loader_open("libcuda.so.fake", RTLD_NOW | RTLD_LOCAL);
	void *alloc = loader_find(fake, "cuMemAlloc_v2");

	T_TRUE(!loader_is_ours(alloc));
	loader_allocate(fake, alloc);
}

/* The second one works, unwatched. */
static void two_drivers(void)
{
	void *first = libcuda_open();
	char path[4096];
	void *second;

	T_TRUE(loader_is_ours(loader_find(first, "cuMemAlloc_v2")));
	(void)snprintf(path, sizeof(path), "%s/libcuda.so.1", getenv("STASIS_TEST_COPY"));
	second = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	T_TRUE(second && second != first);
	T_TRUE(!loader_is_ours(loader_find(second, "cuMemAlloc_v2")));
	loader_allocate(second, loader_find(second, "cuMemAlloc_v2"));
	loader_allocate(first, loader_find(first, "cuMemAlloc_v2"));
}

static void other_namespace(void)
{
	char path[4096];
	void *apart;

	(void)snprintf(path, sizeof(path), "%s/libcuda.so.1", getenv("STASIS_TEST_FAKE"));
	apart = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	if (!apart)
		t_skip("dlmopen: %s", dlerror());
	T_TRUE(!loader_is_ours(loader_find(apart, "cuMemAlloc_v2")));
	/* Nor does it keep the program's own from being known. */
	T_TRUE(loader_is_ours(loader_find(libcuda_open(), "cuMemAlloc_v2")));
	T_TRUE(!loader_is_ours(loader_find(apart, "cuMemAlloc_v2")));
}

static void constructors(void)
{
	void *library = loader_open("libconstructor.so", RTLD_NOW | RTLD_LOCAL);
	int (*result)(void) = (int (*)(void))loader_find(library, "constructor_result");

	T_EQ(result(), 0);
}

static pthread_barrier_t barrier;

static void *first_use(void *argument)
{
	void *libcuda;
	void *alloc;

	(void)argument;
	(void)pthread_barrier_wait(&barrier);
	libcuda = libcuda_open();
	alloc = loader_find(libcuda, "cuMemAlloc_v2");
	T_TRUE(loader_is_ours(alloc));
	loader_allocate(libcuda, alloc);
	return alloc;
}

static void many_threads_at_once(void)
{
	pthread_t threads[THREADS];
	void *first = NULL;

	T_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++)
		T_EQ(pthread_create(&threads[i], NULL, first_use, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		void *found;

		T_EQ(pthread_join(threads[i], &found), 0);
		if (first)
			T_EQ(found, first);
		first = found;
	}
}

/* An old program asks for the dlsym of an old glibc. */
extern void *old_dlsym(void *handle, const char *name);
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5");

static void old_binary(void)
{
	T_TRUE(loader_is_ours(old_dlsym(libcuda_open(), "cuMemAlloc_v2")));
}

static void child_uses(void *alloc)
{
	pid_t pid = fork();
	int status;

	T_SYS(pid);
	if (pid == 0) {
		void *libcuda = libcuda_open();

		if (!alloc)
			alloc = loader_find(libcuda, "cuMemAlloc_v2");
		loader_allocate(libcuda, alloc);
		_exit(0);
	}
	T_EQ(waitpid(pid, &status, 0), pid);
	T_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fork_before_use(void)
{
	child_uses(NULL);
	loader_allocate(libcuda_open(), loader_find(libcuda_open(), "cuMemAlloc_v2"));
}

static void fork_after_use(void)
{
	void *libcuda = libcuda_open();
	void *alloc = loader_find(libcuda, "cuMemAlloc_v2");

	loader_allocate(libcuda, alloc);
	child_uses(alloc);
	child_uses(NULL);
	loader_allocate(libcuda, alloc);
}

static void exec_keeps_it(void)
{
	pid_t pid = fork();
	int status;

	T_SYS(pid);
	if (pid == 0) {
		(void)execl("/proc/self/exe", "scopes", "own_handle", (char *)NULL);
		_exit(1);
	}
	T_EQ(waitpid(pid, &status, 0), pid);
	T_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* With SECOND: another tool's interposer sees each call by name once, and nothing goes in circles. */
static void second_interposer(void)
{
	int (*count)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "second_count");
	void *libcuda = loader_open("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	void *by_name = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");

	T_TRUE(count);
	loader_allocate(libcuda, by_name);
	T_EQ(count(), 1);
	loader_allocate(libcuda, loader_find(libcuda, "cuMemAlloc_v2"));
	T_EQ(count(), 1);
}

static const struct t_behaviour behaviours[] = {
	{"pseudo_handles", T_DOCUMENTED, "RTLD_NEXT and RTLD_DEFAULT see the caller's scope",
	 pseudo_handles},
	{"by_name_from_local_library", T_DOCUMENTED,
	 "a local library's calls by name reach the driver", by_name_from_local_library},
	{"own_handle", T_DOCUMENTED, "the program's own handle gives the exported wrapper",
	 own_handle},
	{"outlives_close", T_DOCUMENTED, "a wrapper outlives the library's handle", outlives_close},
	{"lookalikes", T_DOCUMENTED, "a library that is called much like libcuda is left alone",
	 lookalikes},
	{"two_drivers", T_DOCUMENTED, "a second copy of libcuda is left alone", two_drivers},
	{"other_namespace", T_DOCUMENTED, "libcuda in another namespace is left alone",
	 other_namespace},
	{"constructors", T_DOCUMENTED, "a constructor and its thread use CUDA", constructors},
	{"many_threads_at_once", T_DOCUMENTED, "the first use by many threads at once",
	 many_threads_at_once},
	{"old_binary", T_DOCUMENTED, "a program bound to dlsym@GLIBC_2.2.5 meets ours", old_binary},
	{"fork_before_use", T_DOCUMENTED, "a child forked before the first use", fork_before_use},
	{"fork_after_use", T_DOCUMENTED, "a child forked after it", fork_after_use},
	{"exec_keeps_it", T_DOCUMENTED, "a program that executes another", exec_keeps_it},
	{"second_interposer", T_DOCUMENTED, "another interposer sees calls by name, once",
	 second_interposer},
};

T_BEHAVIOURS_MAIN(behaviours)
