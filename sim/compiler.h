#ifndef SIM_COMPILER_H
#define SIM_COMPILER_H

/*
 * Compiler attributes, the cleanup of descriptors and a mutex that clang's -Wthread-safety can follow.
 * The simulator shares nothing with the code it tests but the driver's ABI, so it has its own.
 */

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define SIM_API __attribute__((visibility("default")))
#define NODISCARD __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define FORMAT(string_index, first_index) __attribute__((format(printf, string_index, first_index)))
#define CLEANUP(name) __attribute__((cleanup(cleanup_##name)))
#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#ifdef __clang__
#define CAPABILITY(name) __attribute__((capability(name)))
#define GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define CAPABILITY(name)
#define GUARDED_BY(lock)
#define REQUIRES(...)
#define EXCLUDES(...)
#define ACQUIRE(...)
#define RELEASE(...)
#define NO_THREAD_SAFETY_ANALYSIS
#endif

struct CAPABILITY("mutex") sim_mutex {
	pthread_mutex_t native;
};

#define SIM_MUTEX_INITIALIZER                                                                      \
	{                                                                                          \
		.native = PTHREAD_MUTEX_INITIALIZER                                                \
	}

static inline void sim_mutex_lock(struct sim_mutex *mutex) ACQUIRE(mutex) NO_THREAD_SAFETY_ANALYSIS
{
	(void)pthread_mutex_lock(&mutex->native);
}

static inline void sim_mutex_unlock(struct sim_mutex *mutex)
	RELEASE(mutex) NO_THREAD_SAFETY_ANALYSIS
{
	(void)pthread_mutex_unlock(&mutex->native);
}

/* Condition variables: use CLOCK_MONOTONIC ones with timed waits. */
static inline void sim_cond_wait(pthread_cond_t *cond, struct sim_mutex *mutex) REQUIRES(mutex)
{
	(void)pthread_cond_wait(cond, &mutex->native);
}

static inline void cleanup_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

static inline int fd_steal(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
