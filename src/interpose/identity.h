#ifndef STASIS_INTERPOSE_IDENTITY_H
#define STASIS_INTERPOSE_IDENTITY_H

/*
 * Who this process is. A participant is random, made at first use and again in a forked child, and stays the
 * same over every suspend and restore: tickets name it. An incarnation names the process's peer
 * socket; a restored process takes a new one. Any thread, no locks.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"

struct stasis_identity {
	struct stasis_id participant;
};

/* NULL: no random number can be had (a filter of the program's own), and this process takes no part. */
const struct stasis_identity *stasis_identity_get(void);

/* The build of this library: its GNU build id in hexadecimal digits; at most 64 bytes, never empty. */
const char *stasis_identity_build(void);

#endif
