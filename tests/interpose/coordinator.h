#ifndef TESTS_INTERPOSE_COORDINATOR_H
#define TESTS_INTERPOSE_COORDINATOR_H

/*
 * A coordinator in small, and the participants it speaks to: this very program, run again with the interposer
 * preloaded. The two are joined by a socket over which one-letter messages go (child.h).
 */

#include <stdbool.h>

#include "base/process.h"
#include "child.h"
#include "wire/call.h"
#include "wire/control.h"
#include "wire/message.h"
#include "wire/packet.h"

struct t_mode {
	const char *name;
	void (*run)(int fd);
};

struct t_topic {
	const char *name;
	void (*run)(void);
};

/*
 * All of main: runs the topic that the program was called with, or, where it was started as a participant, its mode;
 * and ends the process. Modes and topics end with a row of NULL.
 */
NORETURN void t_topics_main(int argument_count, char **arguments, const struct t_mode *modes,
			    const struct t_topic *topics);

/* Starts this program again as a participant of that mode. */
struct t_child t_participant_start(const char *mode);

/* In a participant: becomes another one by exec, of that mode, with the same socket. */
NORETURN void t_participant_exec(const char *mode, int fd);

/* Whether the process has a control file; two fail the test. *ret_control may be NULL. */
bool t_participant_find(pid_t pid, struct stasis_wire_control *ret_control);

struct t_session {
	int socket_fd;
	struct stasis_id operation;
	uint32_t sequence;
	struct stasis_error error;
	struct stasis_wire_message request; /* its body is filled before t_session_ask */
	struct stasis_wire_message reply;
	struct stasis_wire_descriptors descriptors;
};

/*
 * Opens a session, whose greeting is then in `reply`. NULL for a new operation, and for no capture. -1: it was
 * refused, with the reason in `error`.
 */
int t_session_open(struct t_session *session, pid_t pid, const struct stasis_id *operation,
		   const struct stasis_id *capture);
void t_session_close(struct t_session *session);

/* Asks for a phase and waits for what answers: 0 a reply, -1 an error or no answer, see `error`. */
int t_session_ask(struct t_session *session, enum stasis_wire_phase phase);

/* Asks again for the answer to the request of that number. */
int t_session_ask_again(struct t_session *session, enum stasis_wire_phase phase, uint32_t sequence);

/* GATE with a limit of 20 s, or with another. */
int t_session_gate(struct t_session *session, enum stasis_wire_gate_step step);
int t_session_gate_within(struct t_session *session, enum stasis_wire_gate_step step,
			  uint64_t limit_ns);

/* Both steps of GATE, and OPEN; both must succeed. The session is opened first, and closed at the end. */
void t_session_shut(struct t_session *session, pid_t pid);
void t_session_let_go(struct t_session *session);

/* Fails the test unless a call has succeeded; the error is told. */
void t_session_check(const struct t_session *session, const char *file, int line, int result);
#define T_DONE(session, call) t_session_check(session, __FILE__, __LINE__, call)

/* Fails the test unless the call was refused with a reason in which `text` stands. */
void t_session_check_refused(const struct t_session *session, const char *file, int line,
			     int result, const char *text);
#define T_REFUSED_WITH(session, call, text)                                                        \
	t_session_check_refused(session, __FILE__, __LINE__, call, text)

#endif
