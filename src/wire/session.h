#ifndef STASIS_WIRE_SESSION_H
#define STASIS_WIRE_SESSION_H

/*
 * Sessions between a coordinator and a participant: see control.h. All sockets are SOCK_SEQPACKET pairs,
 * close-on-exec, and blocking or not by the flag of each call alone.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "wire/control.h"
#include "wire/message.h"

/* In the participant: it polls the near end, and the control file names the far end. */
NODISCARD int stasis_wire_door_open(int *ret_near_fd, int *ret_far_fd, struct stasis_error *err);

/*
 * In the coordinator: the control file of a process held by its pidfd, and the far end of its door. Needs the
 * right to ptrace it, as the driver's checkpoint API does. *ret_is_participant: false where it has no
 * control file, nothing else is written then. Allocates; never called in a participant.
 */
NODISCARD int stasis_wire_control_take(pid_t pid, int pidfd, bool *ret_is_participant,
				       struct stasis_wire_control *ret_control, int *ret_door_fd,
				       struct stasis_error *err);

/*
 * In the coordinator: makes a session and hands its other end in. `request` is a SESSION request, whose
 * answer comes over the session. `socket_fd` is what to ask from then on.
 */
NODISCARD int stasis_wire_session_open(int door_fd, const struct stasis_wire_message *request,
				       int *ret_socket_fd, uint64_t deadline_ns,
				       struct stasis_error *err);

/*
 * In the participant, when its near end can be read: the request and the session's socket. What comes in
 * and is no session is an error and has been closed; the door goes on.
 */
NODISCARD int stasis_wire_session_accept(int near_fd, struct stasis_wire_message *ret_request,
					 int *ret_socket_fd, uint64_t deadline_ns,
					 struct stasis_error *err);

#endif
