#ifndef STASIS_INTERPOSE_PEER_SERVE_H
#define STASIS_INTERPOSE_PEER_SERVE_H

/*
 * For peer.c only: the peers' service while its socket is open. One thread for all of them: an exchange is one
 * message each way and messages come whole, so that nobody waits for a slow one.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/peer.h"

/*
 * Serves until the socket is shut down, by stasis_peer_close() or whoever else; everything of it but the socket is
 * closed then. *err says what broke, if it is not empty.
 */
void stasis_peer_serve(const struct stasis_wire_listener *listener,
		       const struct stasis_id *participant, const struct stasis_id *incarnation,
		       struct stasis_error *err);

#endif
