/* The handler that runs in a forked child; see fork.h. */

#include "interpose/fork.h"

#include <pthread.h>

#include "interpose/gate.h"

/*
 * No handler runs in the parent: one that took a lock there would deadlock with a thread that waits for it, or
 * make fork fail. The child's first call does the work.
 */
static void child(void)
{
	stasis_gate_forked();
}

_Bool stasis_fork_prepare(void)
{
	return pthread_atfork(NULL, NULL, child) == 0;
}
