#ifndef STASIS_BASE_MUTEX_H
#define STASIS_BASE_MUTEX_H

/*
 * A pthread mutex as a capability, so that clang checks which data it guards. Locking and unlocking
 * cannot fail for a mutex of the default kind that is used rightly.
 */

#include <pthread.h>

#include "base/compiler.h"

struct CAPABILITY("mutex") stasis_mutex {
	pthread_mutex_t native;
};

#define STASIS_MUTEX_INITIALIZER                                                                   \
	{                                                                                          \
		.native = PTHREAD_MUTEX_INITIALIZER                                                \
	}

static inline void stasis_mutex_lock(struct stasis_mutex *mutex)
	ACQUIRE(mutex) NO_THREAD_SAFETY_ANALYSIS
{
	(void)pthread_mutex_lock(&mutex->native);
}

static inline void stasis_mutex_unlock(struct stasis_mutex *mutex)
	RELEASE(mutex) NO_THREAD_SAFETY_ANALYSIS
{
	(void)pthread_mutex_unlock(&mutex->native);
}

#endif
