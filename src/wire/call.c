/*
 * See call.h.
 */

#include "wire/call.h"

#include <string.h>

#include "base/cleanup.h"

static bool is_answer(const struct stasis_wire_message *request,
		      const struct stasis_wire_message *reply)
{
	return reply->kind != STASIS_WIRE_REQUEST && reply->phase == request->phase &&
	       reply->sequence == request->sequence &&
	       stasis_id_equal(&reply->operation, &request->operation);
}

/* An answer that came too late for the request that it answers. */
static bool is_late(const struct stasis_wire_message *request,
		    const struct stasis_wire_message *reply)
{
	return reply->kind != STASIS_WIRE_REQUEST && reply->sequence < request->sequence &&
	       stasis_id_equal(&reply->operation, &request->operation);
}

static int answer_receive(int socket_fd, const struct stasis_wire_message *request,
			  struct stasis_wire_message *reply,
			  struct stasis_wire_descriptors *descriptors, uint64_t deadline_ns,
			  struct stasis_error *err)
{
	for (;;) {
		bool is_closed = false;

		if (stasis_wire_receive(socket_fd, reply, descriptors, &is_closed, deadline_ns,
					err) != 0)
			return -1;
		if (is_closed)
			return stasis_fail(err, STASIS_REFUSED,
					   "the other side closed without an answer");
		if (is_answer(request, reply))
			return 0;
		stasis_wire_descriptors_close(descriptors);
		if (!is_late(request, reply))
			return stasis_fail(err, STASIS_REFUSED,
					   "the other side answered something else: %s number %u",
					   stasis_wire_phase_name((uint32_t)reply->phase),
					   reply->sequence);
	}
}

static int answer_read(const struct stasis_wire_message *request,
		       const struct stasis_wire_message *reply, struct stasis_error *err)
{
	if (reply->kind == STASIS_WIRE_ERROR) {
		stasis_error_take(err, &reply->error);
		return -1;
	}
	if (reply->kind == STASIS_WIRE_UNKNOWN && (request->flags & STASIS_WIRE_AGAIN) == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "the other side does not know what it was asked just now");
	return 0;
}

int stasis_wire_call(int socket_fd, const struct stasis_wire_message *request, const int *fds,
		     struct stasis_wire_message *ret_reply,
		     struct stasis_wire_descriptors *ret_descriptors, uint64_t deadline_ns,
		     struct stasis_error *err)
{
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {0};

	if (stasis_wire_send(socket_fd, request, fds, deadline_ns, err) != 0 ||
	    answer_receive(socket_fd, request, ret_reply, &descriptors, deadline_ns, err) != 0) {
		stasis_error_context(err, "%s", stasis_wire_phase_name((uint32_t)request->phase));
		return -1;
	}
	if (answer_read(request, ret_reply, err) != 0)
		return -1;
	if (descriptors.count > 0 && !ret_descriptors)
		return stasis_fail(err, STASIS_REFUSED, "%s: the answer carries descriptors",
				   stasis_wire_phase_name((uint32_t)request->phase));
	if (ret_descriptors) {
		*ret_descriptors = descriptors;
		descriptors.count = 0;
	}
	return 0;
}

void stasis_wire_answer_begin(const struct stasis_wire_message *request,
			      struct stasis_wire_message *ret_answer)
{
	memset(ret_answer, 0, sizeof(*ret_answer));
	ret_answer->kind = STASIS_WIRE_REPLY;
	ret_answer->phase = request->phase;
	ret_answer->sequence = request->sequence;
	ret_answer->operation = request->operation;
}

void stasis_wire_answer_error(const struct stasis_wire_message *request,
			      const struct stasis_error *error,
			      struct stasis_wire_message *ret_answer)
{
	stasis_wire_answer_begin(request, ret_answer);
	ret_answer->kind = STASIS_WIRE_ERROR;
	ret_answer->error = *error;
}

void stasis_wire_kept_begin(struct stasis_wire_kept *kept, const struct stasis_id *operation)
{
	if (stasis_id_equal(&kept->operation, operation))
		return;
	memset(kept, 0, sizeof(*kept));
	kept->operation = *operation;
}

int stasis_wire_kept_judge(struct stasis_wire_kept *kept, const struct stasis_wire_message *request,
			   enum stasis_wire_verdict *ret_verdict, struct stasis_error *err)
{
	struct stasis_wire_kept_reply *reply = &kept->replies[request->phase];
	const char *name = stasis_wire_phase_name((uint32_t)request->phase);
	bool is_again = (request->flags & STASIS_WIRE_AGAIN) != 0;

	if (request->kind != STASIS_WIRE_REQUEST)
		return stasis_fail(err, STASIS_REFUSED, "%s: an answer came where none was due",
				   name);
	if (!stasis_id_equal(&kept->operation, &request->operation))
		return stasis_fail(err, STASIS_REFUSED,
				   "%s: it belongs to another operation than the one that runs",
				   name);
	if (stasis_wire_phase_is_repeatable(request->phase)) {
		*ret_verdict = STASIS_WIRE_DO;
		return 0;
	}
	if (request->sequence < reply->sequence)
		return stasis_fail(err, STASIS_REFUSED,
				   "%s: request number %u came after number %u; nothing was done",
				   name, request->sequence, reply->sequence);
	if (request->sequence == reply->sequence) {
		if (reply->byte_count == 0)
			return stasis_fail(err, STASIS_LOST,
					   "%s: it was begun and did not end; its outcome is "
					   "unknown",
					   name);
		*ret_verdict = STASIS_WIRE_SEND_KEPT;
		return 0;
	}
	*ret_verdict = is_again ? STASIS_WIRE_NEVER_CAME : STASIS_WIRE_DO;
	if (!is_again) {
		reply->sequence = request->sequence;
		reply->byte_count = 0;
	}
	return 0;
}

int stasis_wire_kept_add(struct stasis_wire_kept *kept, const struct stasis_wire_message *answer,
			 struct stasis_error *err)
{
	struct stasis_wire_kept_reply *reply = &kept->replies[answer->phase];
	uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX];
	size_t byte_count = 0;

	if (stasis_wire_phase_is_repeatable(answer->phase))
		return 0;
	if (answer->sequence != reply->sequence)
		return stasis_fail(err, STASIS_INTERNAL,
				   "%s: an answer to number %u is kept while number %u is done",
				   stasis_wire_phase_name((uint32_t)answer->phase),
				   answer->sequence, reply->sequence);
	if (stasis_wire_encode(answer, bytes, &byte_count, err) != 0)
		return -1;
	if (byte_count > sizeof(reply->bytes))
		return stasis_fail(err, STASIS_INTERNAL, "%s: its answer is too long to be kept",
				   stasis_wire_phase_name((uint32_t)answer->phase));
	memcpy(reply->bytes, bytes, byte_count);
	reply->byte_count = (uint32_t)byte_count;
	return 0;
}

int stasis_wire_kept_send(const struct stasis_wire_kept *kept, int socket_fd,
			  enum stasis_wire_phase phase, uint64_t deadline_ns,
			  struct stasis_error *err)
{
	const struct stasis_wire_kept_reply *reply = &kept->replies[phase];

	return stasis_wire_send_bytes(socket_fd, reply->bytes, reply->byte_count, deadline_ns, err);
}
