#ifndef STASIS_INTERPOSE_PEER_H
#define STASIS_INTERPOSE_PEER_H

/*
 * The participants' service to each other: a thread that answers FETCH with descriptors of objects created here,
 * and the asking side. It is a thread of its own, so that participants which import from each other
 * at the same time both get their answers. It serves while the program runs and while its gate closes, is
 * closed with nothing queued before a native checkpoint, and serves again from LOAD_ALLOCATIONS on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/message.h"

/* How long a peer is waited for: the driver's global lock can delay an export for many seconds. */
#define STASIS_PEER_FETCH_NS (300 * UINT64_C(1000000000))

/*
 * Asks the creator of an object for its descriptor, which is the caller's and close-on-exec. The creator is
 * found by the coordinator's table, else by its one live socket. Blocks until `deadline_ns` at most: call
 * it with no lock held. Any thread.
 */
NODISCARD int stasis_peer_fetch(const struct stasis_id *participant, const struct stasis_id *object,
				uint64_t deadline_ns, int *ret_fd, uint64_t *ret_bytes,
				struct stasis_error *err);

/*
 * Sees to it that peers can reach this process: its thread runs and its socket listens. Called before a ticket is
 * given out; a process that gives none out never has them. Waits for nobody. A failure is tried again by
 * the next call, and until then told by INSPECT.
 */
NODISCARD int stasis_peer_ensure(struct stasis_error *err);

/* The same where a ticket was given out before; else nothing. */
int stasis_peer_reopen(struct stasis_error *err);

/*
 * Closes the socket and whatever waits in its queue, and returns when nothing of it is open any more. Control
 * thread only.
 */
NODISCARD int stasis_peer_close(uint64_t deadline_ns, struct stasis_error *err);

/*
 * The present incarnation, and a new one in its place; while the socket is open, the old one stays, whose name it
 * has. Control thread.
 */
void stasis_peer_incarnation(struct stasis_id *ret_incarnation);
NODISCARD int stasis_peer_renew(struct stasis_error *err);

/* The coordinator's table: a page of it, of which the first replaces the old one. Control thread. */
NODISCARD int stasis_peer_table(const struct stasis_wire_peers *peers, bool is_first,
				struct stasis_error *err);

/*
 * Why peers cannot reach this process though a ticket was given out; false: they can, or need not. The count of
 * changes of that answer, for INSPECT.
 */
bool stasis_peer_fault(struct stasis_error *ret_fault);
uint32_t stasis_peer_changes(void);

#endif
