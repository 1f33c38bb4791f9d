#ifndef STASIS_WIRE_PATH_H
#define STASIS_WIRE_PATH_H

/*
 * For src/wire only: what the path of a peer's socket is made of, and whether somebody listens at one.
 */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "wire/peer.h"

/* DIRECTORY/PARTICIPANT.INCARNATION; refuses what is longer than an address takes. */
NODISCARD int stasis_wire_socket_address(const char *directory, const struct stasis_id *participant,
					 const struct stasis_id *incarnation,
					 struct sockaddr_un *ret_address, struct stasis_error *err);

/* A new socket, not blocking, close-on-exec. */
NODISCARD int stasis_wire_socket_new(int *ret_fd, struct stasis_error *err);

/* Whether a connect to it is refused at once: the process that listened there is gone. */
NODISCARD int stasis_wire_socket_is_dead(const struct sockaddr_un *address, bool *ret_is_dead,
					 struct stasis_error *err);

/* Removes what lies there if it is a socket of ours, dead, and still the same then; all else is an error. */
NODISCARD int stasis_wire_socket_remove_dead(const struct sockaddr_un *address,
					     struct stasis_error *err);

/* Whether the process at the other end belongs to us or to root. */
bool stasis_wire_socket_is_ours(int fd);

#endif
