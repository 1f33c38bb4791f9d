#ifndef STASIS_WIRE_TICKET_H
#define STASIS_WIRE_TICKET_H

/*
 * Tickets: what an application gets instead of the driver's export descriptor. A sealed memfd of 128
 * bytes that names an object by its creator's identity and its own. It is read with pread, so that
 * neither a mapping nor the holder's file offset is touched, and known by its content and seals, never by
 * its inode, which a restore changes. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"

#define STASIS_WIRE_TICKET_BYTES 128

enum stasis_wire_ticket_kind {
	STASIS_WIRE_TICKET_ALLOCATION = 1,
	STASIS_WIRE_TICKET_MULTICAST = 2,
};

struct stasis_wire_ticket {
	enum stasis_wire_ticket_kind kind;
	struct stasis_id participant; /* the object's creator, whoever exports it */
	struct stasis_id object;
	uint64_t bytes;
	/* Of a multicast object, which the driver tells nothing of; else zero. */
	uint32_t device_count; /* of the whole team */
	uint32_t handle_types;
	uint64_t flags;
};

enum stasis_wire_ticket_verdict {
	STASIS_WIRE_TICKET_FOREIGN, /* no memory file: perhaps a descriptor of the driver's */
	STASIS_WIRE_TICKET_OURS,
};

NODISCARD int stasis_wire_ticket_encode(const struct stasis_wire_ticket *ticket,
					uint8_t bytes[STASIS_WIRE_TICKET_BYTES],
					struct stasis_error *err);
NODISCARD int stasis_wire_ticket_decode(const uint8_t *bytes, size_t byte_count,
					struct stasis_wire_ticket *ret_ticket,
					struct stasis_error *err);

/* Close-on-exec; whoever hands it to an application that expects otherwise clears that. */
NODISCARD int stasis_wire_ticket_create(const struct stasis_wire_ticket *ticket, int *ret_fd,
					struct stasis_error *err);

/*
 * Looks at a descriptor that an application wants to import, and leaves it as it is. What must never
 * reach the driver is an error: no descriptor at all, a regular file that is no ticket, a ticket that is
 * damaged, unsealed or of another version. `ret_ticket` is written for OURS only.
 */
NODISCARD int stasis_wire_ticket_read(int fd, enum stasis_wire_ticket_verdict *ret_verdict,
				      struct stasis_wire_ticket *ret_ticket,
				      struct stasis_error *err);

#endif
