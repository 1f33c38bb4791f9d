#ifndef STASIS_INTERPOSE_MULTICAST_H
#define STASIS_INTERPOSE_MULTICAST_H

/*
 * Multicast objects. They are not captured: INSPECT names a process that has made one. Any thread.
 */

#include <stdint.h>

/* This process has made one. */
void stasis_multicast_add(void);

/* How many objects this process has made; it only grows. */
uint32_t stasis_multicast_created(void);

#endif
