/*
 * See session.h.
 */

#include "wire/session.h"

#include <sys/socket.h>

#include "base/cleanup.h"
#include "wire/packet.h"

static int pair_open(int fds[2], struct stasis_error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a pair of sockets");
	return 0;
}

int stasis_wire_door_open(int *ret_near_fd, int *ret_far_fd, struct stasis_error *err)
{
	int fds[2];

	if (pair_open(fds, err) != 0)
		return -1;
	*ret_near_fd = fds[0];
	*ret_far_fd = fds[1];
	return 0;
}

int stasis_wire_session_open(int door_fd, const struct stasis_wire_message *request,
			     int *ret_socket_fd, uint64_t deadline_ns, struct stasis_error *err)
{
	CLEANUP(fd) int ours = -1;
	CLEANUP(fd) int theirs = -1;
	int fds[2];

	if (request->kind != STASIS_WIRE_REQUEST || request->phase != STASIS_WIRE_SESSION)
		return stasis_fail(err, STASIS_INTERNAL,
				   "a session is opened by a SESSION request");
	if (pair_open(fds, err) != 0)
		return -1;
	ours = fds[0];
	theirs = fds[1];
	if (stasis_wire_send(door_fd, request, &theirs, deadline_ns, err) != 0) {
		stasis_error_context(err, "open a session");
		return -1;
	}
	*ret_socket_fd = fd_steal(&ours);
	return 0;
}

static bool option_is(int fd, int option, int wanted)
{
	int value = -1;
	socklen_t value_bytes = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &value_bytes) == 0 && value == wanted;
}

int stasis_wire_session_accept(int near_fd, struct stasis_wire_message *ret_request,
			       int *ret_socket_fd, uint64_t deadline_ns, struct stasis_error *err)
{
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {0};
	bool is_closed = false;

	if (stasis_wire_receive(near_fd, ret_request, &descriptors, &is_closed, deadline_ns, err) !=
	    0) {
		stasis_error_context(err, "accept a session");
		return -1;
	}
	if (is_closed)
		return stasis_fail(err, STASIS_INTERNAL, "accept a session: the door is closed");
	if (ret_request->kind != STASIS_WIRE_REQUEST || ret_request->phase != STASIS_WIRE_SESSION)
		return stasis_fail(err, STASIS_REFUSED,
				   "accept a session: something else came through the door");
	if (!option_is(descriptors.fds[0], SO_DOMAIN, AF_UNIX) ||
	    !option_is(descriptors.fds[0], SO_TYPE, SOCK_SEQPACKET))
		return stasis_fail(err, STASIS_REFUSED,
				   "accept a session: its descriptor is no socket of that kind");
	*ret_socket_fd = stasis_wire_descriptors_take(&descriptors, 0);
	return 0;
}
