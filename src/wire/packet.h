#ifndef STASIS_WIRE_PACKET_H
#define STASIS_WIRE_PACKET_H

/*
 * Messages and the descriptors that travel with them, over SOCK_SEQPACKET sockets: a message arrives whole
 * with its descriptors or not at all, so there is no partial send after which they could be sent twice.
 * Every wait has a deadline for the whole message, whatever mode the socket is in; no signal is raised
 * where the other side is gone. A socket belongs to one thread at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "wire/message.h"

/* Received ones: they are the holder's. */
struct stasis_wire_descriptors {
	uint32_t count;
	int fds[STASIS_WIRE_DESCRIPTORS_MAX];
};

/* Closes those that are left; -1 in `fds` is one that was taken out. */
void stasis_wire_descriptors_close(struct stasis_wire_descriptors *descriptors);
int stasis_wire_descriptors_take(struct stasis_wire_descriptors *descriptors, uint32_t index);

static inline void cleanup_wire_descriptors(struct stasis_wire_descriptors *descriptors)
{
	stasis_wire_descriptors_close(descriptors);
}

/* `fds` are as many as the message says, and stay the caller's. */
NODISCARD int stasis_wire_send(int socket_fd, const struct stasis_wire_message *message,
			       const int *fds, uint64_t deadline_ns, struct stasis_error *err);

/*
 * True in *ret_is_closed: the other side closed, between messages; nothing else is written then. Whatever
 * is refused has had its descriptors closed. Received descriptors are close-on-exec.
 */
NODISCARD int stasis_wire_receive(int socket_fd, struct stasis_wire_message *ret_message,
				  struct stasis_wire_descriptors *ret_descriptors,
				  bool *ret_is_closed, uint64_t deadline_ns,
				  struct stasis_error *err);

/* The same for bytes that are encoded already: replies that were kept. */
NODISCARD int stasis_wire_send_bytes(int socket_fd, const uint8_t *bytes, size_t byte_count,
				     uint64_t deadline_ns, struct stasis_error *err);

/* Waits for poll events; an error names `what`. */
NODISCARD int stasis_wire_wait(int fd, short events, uint64_t deadline_ns, const char *what,
			       struct stasis_error *err);

#endif
