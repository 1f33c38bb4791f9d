/* The handler that runs in a forked child, and what it leaves to the child's first call; see fork.h. */

#include "interpose/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "interpose/descriptors.h"
#include "interpose/gate.h"

#define FORGETS_MAX 8u

typedef void forget_function(void);

static _Atomic(forget_function *) forgets[FORGETS_MAX];

/*
 * No handler runs in the parent: one that took a lock there would deadlock with a thread that waits for it, or
 * make fork fail.
 */
static void child(void)
{
	stasis_descriptors_forked();
	stasis_gate_forked();
}

_Bool stasis_fork_prepare(void)
{
	return pthread_atfork(NULL, NULL, child) == 0;
}

void stasis_fork_forget_add(void (*forget)(void))
{
	for (size_t i = 0; i < FORGETS_MAX; i++) {
		forget_function *none = NULL;

		if (atomic_compare_exchange_strong(&forgets[i], &none, forget) || none == forget)
			return;
	}
	/* As many places as there are modules, and more: this is our own mistake. */
	__builtin_trap();
}

void stasis_fork_forget(void)
{
	for (size_t i = 0; i < FORGETS_MAX; i++) {
		forget_function *forget = atomic_load(&forgets[i]);

		if (forget)
			forget();
	}
}
