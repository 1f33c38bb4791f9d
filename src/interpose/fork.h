#ifndef STASIS_INTERPOSE_FORK_H
#define STASIS_INTERPOSE_FORK_H

/*
 * What a forked child must forget. CUDA does not survive fork, but programs fork all the time before
 * they use it.
 */

/* Has the child handler registered, once a process. False: there is no memory for it. */
_Bool stasis_fork_prepare(void);

#endif
