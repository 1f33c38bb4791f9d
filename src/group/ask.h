#ifndef STASIS_GROUP_ASK_H
#define STASIS_GROUP_ASK_H

/*
 * What a coordinator asks of one participant, phase by phase; docs/protocol.md says what each means. Every error
 * names the process. One thread at a time a participant.
 *
 * A request that was sent and not answered has an outcome that nobody knows: where the session still stands the
 * answer is asked for once more, and what stays unknown is STASIS_LOST.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "group/kept.h"
#include "group/participant.h"

/* A phase without a body: PREPARE_…, RESTORE_…, OPEN. */
NODISCARD int stasis_ask(struct stasis_participant *participant, enum stasis_wire_phase phase,
			 uint64_t timeout_ns, struct stasis_error *err);

/* Closes the gate by one step; `limit_ns` is what the participant may take. */
NODISCARD int stasis_ask_gate(struct stasis_participant *participant,
			      enum stasis_wire_gate_step step, uint64_t limit_ns,
			      struct stasis_error *err);

/* Who is there, under which incarnation. */
NODISCARD int stasis_ask_peers(struct stasis_participant *participant,
			       const struct stasis_wire_peer *peers, uint32_t count,
			       uint64_t timeout_ns, struct stasis_error *err);

/* From here on the gate stays shut though the session ends. Both paths are absolute. */
NODISCARD int stasis_ask_arm(struct stasis_participant *participant, const char *journal,
			     const char *image, uint64_t timeout_ns, struct stasis_error *err);

/*
 * LOAD_ALLOCATIONS for `count` objects, in pages. With `fds`, which stay the caller's, each is attached to what its
 * descriptor holds; NULL: each is made anew. A count of 0 is a request, too.
 */
NODISCARD int stasis_ask_load(struct stasis_participant *participant,
			      const struct stasis_wire_export *items, const int *fds, size_t count,
			      uint64_t timeout_ns, struct stasis_error *err);

/* All pages of SAVE_ALLOCATIONS or EXPORT_ALLOCATIONS, added to `kept`. */
NODISCARD int stasis_ask_exports(struct stasis_participant *participant,
				 enum stasis_wire_phase phase, uint64_t timeout_ns,
				 struct stasis_kept *kept, struct stasis_error *err);

#endif
