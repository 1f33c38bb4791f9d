#ifndef STASIS_INTERPOSE_FORK_H
#define STASIS_INTERPOSE_FORK_H

/*
 * What a forked child must forget. CUDA does not survive fork, but programs fork all the time before
 * they use it, and after it to exec. The child closes our descriptors at once (descriptors.h) and
 * forgets the rest with its first call into the driver: until then it may hold locks of threads that it has
 * not got, and malloc may not be called.
 */

/* Has the child handler registered, once a process. False: there is no memory for it. */
_Bool stasis_fork_prepare(void);

/*
 * Adds what a child calls before its first call goes on: on one thread, while every other one is held at the
 * gate. It starts its module afresh without touching any lock as it was left. Each function once.
 */
void stasis_fork_forget_add(void (*forget)(void));

/* Called by the gate in the child, see above. */
void stasis_fork_forget(void);

#endif
