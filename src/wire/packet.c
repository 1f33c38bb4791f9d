/*
 * See packet.h.
 */

#include "wire/packet.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* Aligned as the kernel's headers are. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(STASIS_WIRE_DESCRIPTORS_MAX * sizeof(int))];
};

void stasis_wire_descriptors_close(struct stasis_wire_descriptors *descriptors)
{
	for (uint32_t i = 0; i < descriptors->count; i++)
		cleanup_fd(&descriptors->fds[i]);
	descriptors->count = 0;
}

int stasis_wire_descriptors_take(struct stasis_wire_descriptors *descriptors, uint32_t index)
{
	return index < descriptors->count ? fd_steal(&descriptors->fds[index]) : -1;
}

int stasis_wire_wait(int fd, short events, uint64_t deadline_ns, const char *what,
		     struct stasis_error *err)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	for (;;) {
		int ready = poll(&poll_fd, 1, stasis_deadline_poll_ms(deadline_ns));

		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return stasis_fail_errno(err, STASIS_REFUSED, "%s", what);
		if (ready == 0 || stasis_deadline_passed(deadline_ns))
			return stasis_fail_code(err, STASIS_REFUSED, ETIMEDOUT, "%s", what);
	}
}

/* The message header as sendmsg wants it; descriptors go with the message's first byte. */
static void header_fill(struct msghdr *header, struct iovec *part, union control *control,
			const int *fds, uint32_t fd_count)
{
	struct cmsghdr *rights;

	*header = (struct msghdr){.msg_iov = part, .msg_iovlen = 1};
	if (fd_count == 0)
		return;
	memset(control, 0, sizeof(*control));
	header->msg_control = control->bytes;
	header->msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	rights = CMSG_FIRSTHDR(header);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
	memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
}

static int packet_send(int socket_fd, struct iovec *part, const int *fds, uint32_t fd_count,
		       uint64_t deadline_ns, struct stasis_error *err)
{
	union control control;
	struct msghdr header;

	header_fill(&header, part, &control, fds, fd_count);
	for (;;) {
		ssize_t sent = sendmsg(socket_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent == (ssize_t)part->iov_len)
			return 0;
		if (sent >= 0)
			return stasis_fail(err, STASIS_REFUSED,
					   "send a message: %zd of %zu bytes were taken", sent,
					   part->iov_len);
		if (errno == EAGAIN) {
			if (stasis_wire_wait(socket_fd, POLLOUT, deadline_ns,
					     "wait for the other side to take a message", err) != 0)
				return -1;
		} else if (errno != EINTR) {
			return stasis_fail_errno(err, STASIS_REFUSED, "send a message");
		}
	}
}

int stasis_wire_send_bytes(int socket_fd, const uint8_t *bytes, size_t byte_count,
			   uint64_t deadline_ns, struct stasis_error *err)
{
	/* sendmsg does not write to it, though its structure has no const. */
	struct iovec part = {(void *)(uintptr_t)bytes, byte_count};

	return packet_send(socket_fd, &part, NULL, 0, deadline_ns, err);
}

int stasis_wire_send(int socket_fd, const struct stasis_wire_message *message, const int *fds,
		     uint64_t deadline_ns, struct stasis_error *err)
{
	uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX];
	struct iovec part = {bytes, 0};

	if (stasis_wire_encode(message, bytes, &part.iov_len, err) != 0)
		return -1;
	return packet_send(socket_fd, &part, fds, message->descriptor_count, deadline_ns, err);
}

/* Takes every descriptor that came, before anything is looked at. False: something else came too. */
static bool descriptors_own(struct msghdr *header, struct stasis_wire_descriptors *descriptors)
{
	bool is_right = true;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
		size_t fd_count;

		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS ||
		    at->cmsg_len < CMSG_LEN(0)) {
			is_right = false;
			continue;
		}
		/* They fit: the control buffer has no room for more. */
		fd_count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(descriptors->fds + descriptors->count, CMSG_DATA(at),
		       fd_count * sizeof(int));
		descriptors->count += (uint32_t)fd_count;
	}
	return is_right;
}

/* 0 bytes in *ret_byte_count: closed. */
static int packet_receive(int socket_fd, uint8_t *bytes, size_t *ret_byte_count,
			  struct stasis_wire_descriptors *descriptors, uint64_t deadline_ns,
			  struct stasis_error *err)
{
	struct iovec part = {bytes, STASIS_WIRE_MESSAGE_BYTES_MAX};
	union control control;
	struct msghdr header;
	ssize_t received;

	for (;;) {
		header = (struct msghdr){.msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control.bytes,
					 .msg_controllen = sizeof(control.bytes)};
		received = recvmsg(socket_fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		/* A side that closes with messages unread resets instead of ending. */
		if (received < 0 && errno == ECONNRESET) {
			header.msg_controllen = 0;
			received = 0;
		}
		if (received >= 0)
			break;
		if (errno == EAGAIN) {
			if (stasis_wire_wait(socket_fd, POLLIN, deadline_ns,
					     "wait for a message from the other side", err) != 0)
				return -1;
		} else if (errno != EINTR) {
			return stasis_fail_errno(err, STASIS_REFUSED, "receive a message");
		}
	}
	if (!descriptors_own(&header, descriptors))
		return stasis_fail(err, STASIS_REFUSED,
				   "message refused: it carries more than bytes and descriptors");
	if ((header.msg_flags & MSG_CTRUNC) != 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "message refused: its descriptors did not all arrive; raise the "
				   "limit of open files (ulimit -n) of this process");
	if ((header.msg_flags & MSG_TRUNC) != 0)
		return stasis_fail(err, STASIS_REFUSED, "message refused: more than %d bytes",
				   STASIS_WIRE_MESSAGE_BYTES_MAX);
	*ret_byte_count = (size_t)received;
	return 0;
}

int stasis_wire_receive(int socket_fd, struct stasis_wire_message *ret_message,
			struct stasis_wire_descriptors *ret_descriptors, bool *ret_is_closed,
			uint64_t deadline_ns, struct stasis_error *err)
{
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {0};
	uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX];
	size_t byte_count = 0;

	if (packet_receive(socket_fd, bytes, &byte_count, &descriptors, deadline_ns, err) != 0)
		return -1;
	*ret_is_closed = byte_count == 0;
	if (*ret_is_closed)
		return 0;
	if (stasis_wire_decode(bytes, byte_count, ret_message, err) != 0)
		return -1;
	if (ret_message->descriptor_count != descriptors.count)
		return stasis_fail(err, STASIS_REFUSED,
				   "message refused: it says %u descriptors and carries %u",
				   ret_message->descriptor_count, descriptors.count);
	*ret_descriptors = descriptors;
	descriptors.count = 0;
	return 0;
}
