#ifndef STASIS_INTERPOSE_SERVE_H
#define STASIS_INTERPOSE_SERVE_H

/*
 * One coordinator's session, served: who is let in, what is done for each request, what is kept, and what becomes
 * of the program when the session ends. One thread, the control thread; no thread and no socket is made
 * here.
 *
 * An operation is a coordinator's: its id keys the replies that are kept. From ARM to OPEN it is also the capture
 * that a later session must name, by the same operation or by the session's capture.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "interpose/lifecycle.h"
#include "interpose/phases.h"
#include "wire/call.h"
#include "wire/control.h"
#include "wire/message.h"
#include "wire/packet.h"

/* At once; one more is refused. */
#define STASIS_SERVE_OBSERVERS 8

struct stasis_serve {
	enum stasis_standing standing;
	int session_fd;                           /* -1: none */
	int observer_fds[STASIS_SERVE_OBSERVERS]; /* -1: none */
	uint32_t coordinator_pid;                 /* of the session */
	struct stasis_id capture;                 /* from ARM to OPEN; else zero */
	bool has_peers_page; /* a page of PEERS came, and another is to follow */
	int control_fd;      /* -1: none is written */
	struct stasis_wire_control control;
	struct stasis_wire_kept kept;
	struct stasis_wire_message request;
	struct stasis_wire_message answer;
	struct stasis_wire_descriptors incoming;
	struct stasis_phase_page page; /* its descriptors are open until the answer is sent */
};

/* A session wants in: takes `socket_fd`, and answers over it. `request` is a SESSION request. */
void stasis_serve_session(struct stasis_serve *serve, const struct stasis_wire_message *request,
			  int socket_fd);

/* The session can be read: one request is done and answered, or its end is dealt with. */
void stasis_serve_request(struct stasis_serve *serve);

/* An observer's socket can be read: it is answered, or its end is dealt with. */
void stasis_serve_observer(struct stasis_serve *serve, int *observer_fd);

/* The session is over, whoever ended it: before ARM the gate opens. */
void stasis_serve_end(struct stasis_serve *serve);

/* Writes the control file anew. */
int stasis_serve_publish(struct stasis_serve *serve, struct stasis_error *err);

#endif
