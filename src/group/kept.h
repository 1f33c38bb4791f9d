#ifndef STASIS_GROUP_KEPT_H
#define STASIS_GROUP_KEPT_H

/*
 * Descriptors of the driver's for shared memory, each kept so that its memory outlives whoever let go of it
 * (driver 580 keeps the memory behind an export for as long as one descriptor of it is open). One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"

struct stasis_kept_item {
	struct stasis_id object;
	uint64_t bytes;
	int fd;
};

/* Empty when zeroed. */
struct stasis_kept {
	struct stasis_kept_item *items;
	size_t count;
	size_t room;
};

/* Takes the descriptor, whatever it returns. One of an object that is there already replaces the older one. */
NODISCARD int stasis_kept_add(struct stasis_kept *kept, const struct stasis_id *object,
			      uint64_t bytes, int fd, struct stasis_error *err);

/* NULL: none of that object. */
const struct stasis_kept_item *stasis_kept_find(const struct stasis_kept *kept,
						const struct stasis_id *object);

/* Takes one out: its descriptor is the caller's. -1: none of that object. */
int stasis_kept_take(struct stasis_kept *kept, const struct stasis_id *object);

/* Closes all: the memory lives no longer than its owners. */
void stasis_kept_close(struct stasis_kept *kept);

static inline void cleanup_kept(struct stasis_kept *kept)
{
	stasis_kept_close(kept);
}

/*
 * Sends duplicates into a socket that nobody reads yet: they stay alive in it, and whoever reads it later takes them
 * with stasis_kept_receive(). Never waits: -1 where the socket has no more room.
 */
NODISCARD int stasis_kept_send(const struct stasis_kept *kept, int socket_fd,
			       struct stasis_error *err);
NODISCARD int stasis_kept_receive(struct stasis_kept *kept, int socket_fd,
				  struct stasis_error *err);

#endif
