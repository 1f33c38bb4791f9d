#ifndef STASIS_WIRE_CALL_H
#define STASIS_WIRE_CALL_H

/*
 * Requests and what answers them. The asking side numbers its requests; the answering side keeps the reply
 * to each phase that changes something until the next request of that phase, so that a reply that was
 * lost can be asked for again and nothing is ever done twice. Phases that change nothing are simply done
 * again. One conversation belongs to one thread a side.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "wire/message.h"
#include "wire/packet.h"

/*
 * Sends the request and waits for what answers it; late answers to earlier requests are dropped. An ERROR
 * becomes *err as the other side filled it. The kind of *ret_reply is REPLY, or UNKNOWN if AGAIN was asked
 * of a request that the other side never got. A failure of another kind leaves the outcome unknown: ask
 * again, with the same sequence number and STASIS_WIRE_AGAIN, over this session or a new one. NULL for
 * `ret_descriptors`: a reply with any is refused.
 */
NODISCARD int stasis_wire_call(int socket_fd, const struct stasis_wire_message *request,
			       const int *fds, struct stasis_wire_message *ret_reply,
			       struct stasis_wire_descriptors *ret_descriptors,
			       uint64_t deadline_ns, struct stasis_error *err);

/* An error message that answers `request`. */
void stasis_wire_answer_error(const struct stasis_wire_message *request,
			      const struct stasis_error *error,
			      struct stasis_wire_message *ret_answer);

/* A reply that answers `request`, with an empty body. */
void stasis_wire_answer_begin(const struct stasis_wire_message *request,
			      struct stasis_wire_message *ret_answer);

/* The longest that is kept: an error with the longest text. */
#define STASIS_WIRE_KEPT_BYTES (STASIS_WIRE_HEADER_BYTES + 16 + STASIS_ERROR_TEXT_BYTES)

struct stasis_wire_kept_reply {
	uint32_t sequence;   /* of the last request that was begun; 0: none */
	uint32_t byte_count; /* 0: it was begun and never answered */
	uint8_t bytes[STASIS_WIRE_KEPT_BYTES];
};

/* The answering side's memory of one operation. All zero is empty. */
struct stasis_wire_kept {
	struct stasis_id operation;
	struct stasis_wire_kept_reply replies[STASIS_WIRE_PHASE_COUNT];
};

enum stasis_wire_verdict {
	STASIS_WIRE_DO,         /* a new request: do it, then stasis_wire_kept_add() */
	STASIS_WIRE_SEND_KEPT,  /* it was done: send the reply that is kept */
	STASIS_WIRE_NEVER_CAME, /* its reply is asked for, but it never came: answer UNKNOWN */
};

/* Forgets everything of another operation. */
void stasis_wire_kept_begin(struct stasis_wire_kept *kept, const struct stasis_id *operation);

/*
 * What to do with a request. Refused: one of another operation, one that is older than the last of its
 * phase, one whose doing was begun and never ended.
 */
NODISCARD int stasis_wire_kept_judge(struct stasis_wire_kept *kept,
				     const struct stasis_wire_message *request,
				     enum stasis_wire_verdict *ret_verdict,
				     struct stasis_error *err);

/* Keeps the answer to a request that was judged DO; call it before the answer is sent. */
NODISCARD int stasis_wire_kept_add(struct stasis_wire_kept *kept,
				   const struct stasis_wire_message *answer,
				   struct stasis_error *err);

/* Sends what is kept. */
NODISCARD int stasis_wire_kept_send(const struct stasis_wire_kept *kept, int socket_fd,
				    enum stasis_wire_phase phase, uint64_t deadline_ns,
				    struct stasis_error *err);

#endif
