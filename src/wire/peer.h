#ifndef STASIS_WIRE_PEER_H
#define STASIS_WIRE_PEER_H

/*
 * The sockets by which participants fetch descriptors from each other. They lie in a folder of mode 0700
 * and are named PARTICIPANT.INCARNATION, both as 32 hexadecimal digits: a restored participant has a new
 * incarnation, so it never takes the socket of a running original. Both sides check that the other
 * belongs to the same user or to root. No allocation. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/message.h"

/* What sun_path holds, its end included. */
#define STASIS_WIRE_SOCKET_PATH_BYTES 108
#define STASIS_WIRE_SOCKET_NAME_BYTES 66

struct stasis_wire_listener {
	int fd; /* -1: empty */
	dev_t device;
	ino_t inode;
	char path[STASIS_WIRE_SOCKET_PATH_BYTES];
};

#define STASIS_WIRE_LISTENER_EMPTY                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Where the sockets lie: `runtime_dir` (STASIS_RUNTIME_DIR) as it is, else `xdg_runtime_dir`/stasis, else
 * /run/stasis-UID. NULL or empty is not set. Refuses what is not absolute, and a path so long that the
 * sockets' would not fit.
 */
NODISCARD int stasis_wire_directory_choose(const char *runtime_dir, const char *xdg_runtime_dir,
					   char ret_path[STASIS_WIRE_SOCKET_PATH_BYTES],
					   struct stasis_error *err);

/* Makes the folder where it is missing; refuses one that is not ours alone (owner, 0700, no link). */
NODISCARD int stasis_wire_directory_open(const char *path, int *ret_fd, struct stasis_error *err);

/* Takes over the path of a listener that is dead, and nothing else that may lie there. */
NODISCARD int stasis_wire_peer_listen(const char *directory, const struct stasis_id *participant,
				      const struct stasis_id *incarnation,
				      struct stasis_wire_listener *ret_listener,
				      struct stasis_error *err);

/*
 * Removes the path if it is still this listener's, and closes it with all that queues. A forked child calls
 * stasis_wire_peer_forget, which leaves the path alone.
 */
void stasis_wire_peer_close(struct stasis_wire_listener *listener);
void stasis_wire_peer_forget(struct stasis_wire_listener *listener);

/* Removes the path alone, if it is still this listener's: for a process that ends. */
void stasis_wire_peer_remove(const struct stasis_wire_listener *listener);

static inline void cleanup_wire_listener(struct stasis_wire_listener *listener)
{
	stasis_wire_peer_close(listener);
}

/*
 * The next connection of a process of ours. Those of others are closed; where descriptors or memory have run
 * out it tries again every 50 ms. *ret_fd is -1 at the deadline.
 */
NODISCARD int stasis_wire_peer_accept(const struct stasis_wire_listener *listener, int *ret_fd,
				      uint64_t deadline_ns, struct stasis_error *err);

NODISCARD int stasis_wire_peer_connect(const char *directory, const struct stasis_id *participant,
				       const struct stasis_id *incarnation, int *ret_fd,
				       uint64_t deadline_ns, struct stasis_error *err);

/* The incarnation of the one live socket of a participant. None, or several, is refused. */
NODISCARD int stasis_wire_peer_find(const char *directory, const struct stasis_id *participant,
				    struct stasis_id *ret_incarnation, struct stasis_error *err);

/*
 * Removes the sockets that killed participants have left. One is left alone for a minute: its process may have
 * bound it and not come to listen yet. What cannot be removed stays.
 */
void stasis_wire_peer_sweep(const char *directory);

/* Whether this is the name of a socket of ours. */
NODISCARD bool stasis_wire_socket_name_parse(const char *name, struct stasis_id *ret_participant,
					     struct stasis_id *ret_incarnation);

#endif
