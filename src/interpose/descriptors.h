#ifndef STASIS_INTERPOSE_DESCRIPTORS_H
#define STASIS_INTERPOSE_DESCRIPTORS_H

/*
 * The descriptors that we hold in somebody else's process. A forked child closes them at once, or it would
 * hold GPU memory and the coordinator's session for as long as it lives. Programs close or replace
 * descriptors by number: one counts as ours only while it is still the same file. Any thread, no locks;
 * errno is kept.
 */

#include <stdbool.h>

/* From now on `fd` is ours; -1 is nothing. False: there is no memory to remember it by; it works all the same. */
bool stasis_descriptors_add(int fd);

/* Whether it still is. */
bool stasis_descriptors_is_ours(int fd);

/* Closes it if it still is; *fd is -1 then. One that was never added is closed, too. */
void stasis_descriptors_close(int *fd);

/* It is given away: nobody's any more; returns fd. */
int stasis_descriptors_remove(int fd);

/* In a forked child, on its only thread: closes what was added before the fork. Async-signal-safe. */
void stasis_descriptors_forked(void);

#endif
