/* See ask.h. */

#include "group/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* For the answer to come beside what the participant was allowed to take. */
#define ANSWER_NS (10 * STASIS_NS_PER_S)
#define ENDING_MS 2000

/* A request and its answer: large, and so on the heap. */
struct exchange {
	struct stasis_wire_message request;
	struct stasis_wire_message reply;
	struct stasis_wire_descriptors descriptors;
};

static int exchange_new(struct stasis_participant *participant, enum stasis_wire_phase phase,
			struct exchange **ret_exchange, struct stasis_error *err)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "ask process %d",
					(int)participant->process.pid);
	exchange->request.kind = STASIS_WIRE_REQUEST;
	exchange->request.phase = phase;
	exchange->request.operation = participant->operation;
	*ret_exchange = exchange;
	return 0;
}

static void cleanup_exchange(struct exchange **exchange)
{
	if (*exchange)
		stasis_wire_descriptors_close(&(*exchange)->descriptors);
	free(*exchange);
}

/*
 * A process that ends closes its descriptors first, and has ended a moment later: one whose end of the session is
 * closed is given that moment, so that nobody takes it for alive.
 */
static bool has_ended(const struct stasis_participant *participant)
{
	struct pollfd session = {.fd = participant->socket_fd};
	bool is_closed = poll(&session, 1, 0) == 1 && (session.revents & POLLHUP);

	return stasis_process_ends(&participant->process, is_closed ? ENDING_MS : 0);
}

/* What the error is about, and what it means where the process has ended. */
static int failure_name(const struct stasis_participant *participant, struct stasis_error *err)
{
	if (has_ended(participant)) {
		stasis_error_worsen(err, STASIS_LOST);
		stasis_error_append(err, "; the process has ended");
	}
	stasis_error_context(err, "process %d", (int)participant->process.pid);
	return -1;
}

/*
 * Once. An answer that did not come is asked for once more; the participant does nothing twice. Errors that it
 * answered are its own; anything else leaves the outcome unknown.
 */
static int exchange_run(struct stasis_participant *participant, struct exchange *exchange,
			const int *fds, uint64_t timeout_ns, struct stasis_error *err)
{
	struct stasis_error first = STASIS_ERROR_INIT;
	struct stasis_error second = STASIS_ERROR_INIT;
	struct stasis_wire_descriptors *descriptors = &exchange->descriptors;

	stasis_wire_descriptors_close(descriptors);
	memset(&exchange->reply, 0, sizeof(exchange->reply));
	exchange->request.sequence = ++participant->sequence;
	exchange->request.flags &= ~(uint32_t)STASIS_WIRE_AGAIN;
	if (stasis_wire_call(participant->socket_fd, &exchange->request, fds, &exchange->reply,
			     descriptors, stasis_deadline_after_ns(timeout_ns), &first) == 0)
		return 0;
	stasis_wire_descriptors_close(descriptors);
	if (exchange->reply.kind == STASIS_WIRE_ERROR ||
	    stasis_wire_phase_is_repeatable(exchange->request.phase)) {
		stasis_error_take(err, &first);
		return failure_name(participant, err);
	}
	exchange->request.flags |= STASIS_WIRE_AGAIN;
	if (stasis_wire_call(participant->socket_fd, &exchange->request, fds, &exchange->reply,
			     descriptors, stasis_deadline_after_ns(ANSWER_NS), &second) == 0 &&
	    exchange->reply.kind == STASIS_WIRE_REPLY)
		return 0;
	stasis_wire_descriptors_close(descriptors);
	stasis_error_take(err, exchange->reply.kind == STASIS_WIRE_ERROR ? &second : &first);
	if (exchange->reply.kind != STASIS_WIRE_ERROR &&
	    exchange->reply.kind != STASIS_WIRE_UNKNOWN)
		stasis_error_worsen(err, STASIS_LOST);
	return failure_name(participant, err);
}

int stasis_ask(struct stasis_participant *participant, enum stasis_wire_phase phase,
	       uint64_t timeout_ns, struct stasis_error *err)
{
	CLEANUP(exchange) struct exchange *exchange = NULL;

	if (exchange_new(participant, phase, &exchange, err) != 0)
		return -1;
	return exchange_run(participant, exchange, NULL, timeout_ns, err);
}

int stasis_ask_gate(struct stasis_participant *participant, enum stasis_wire_gate_step step,
		    uint64_t limit_ns, struct stasis_error *err)
{
	CLEANUP(exchange) struct exchange *exchange = NULL;

	if (exchange_new(participant, STASIS_WIRE_GATE, &exchange, err) != 0)
		return -1;
	exchange->request.gate_request.step = (uint32_t)step;
	exchange->request.gate_request.limit_ns = limit_ns;
	return exchange_run(participant, exchange, NULL, limit_ns + ANSWER_NS, err);
}

int stasis_ask_peers(struct stasis_participant *participant, const struct stasis_wire_peer *peers,
		     uint32_t count, uint64_t timeout_ns, struct stasis_error *err)
{
	CLEANUP(exchange) struct exchange *exchange = NULL;

	if (exchange_new(participant, STASIS_WIRE_PEERS, &exchange, err) != 0)
		return -1;
	exchange->request.peers.count = count;
	memcpy(exchange->request.peers.peers, peers, count * sizeof(peers[0]));
	return exchange_run(participant, exchange, NULL, timeout_ns, err);
}

static int path_put(char ret_path[STASIS_WIRE_PATH_BYTES], const char *path,
		    struct stasis_error *err)
{
	if (snprintf(ret_path, STASIS_WIRE_PATH_BYTES, "%s", path) < STASIS_WIRE_PATH_BYTES)
		return 0;
	return stasis_fail(err, STASIS_REFUSED, "the path is longer than %d bytes: %.60s…",
			   STASIS_WIRE_PATH_BYTES - 1, path);
}

int stasis_ask_arm(struct stasis_participant *participant, const char *journal, const char *image,
		   uint64_t timeout_ns, struct stasis_error *err)
{
	CLEANUP(exchange) struct exchange *exchange = NULL;

	if (exchange_new(participant, STASIS_WIRE_ARM, &exchange, err) != 0 ||
	    path_put(exchange->request.arm_request.journal, journal, err) != 0 ||
	    path_put(exchange->request.arm_request.image, image, err) != 0)
		return -1;
	return exchange_run(participant, exchange, NULL, timeout_ns, err);
}

int stasis_ask_load(struct stasis_participant *participant, const struct stasis_wire_export *items,
		    const int *fds, size_t count, uint64_t timeout_ns, struct stasis_error *err)
{
	CLEANUP(exchange) struct exchange *exchange = NULL;
	size_t first = 0;

	if (exchange_new(participant, STASIS_WIRE_LOAD_ALLOCATIONS, &exchange, err) != 0)
		return -1;
	do {
		struct stasis_wire_exports *page = &exchange->request.exports;
		size_t left = count - first;

		page->first = first;
		page->count = left < STASIS_WIRE_DESCRIPTORS_MAX ? (uint32_t)left
								 : STASIS_WIRE_DESCRIPTORS_MAX;
		if (page->count > 0)
			memcpy(page->items, &items[first], page->count * sizeof(items[0]));
		exchange->request.descriptor_count = fds ? page->count : 0;
		exchange->request.flags = left > page->count ? STASIS_WIRE_MORE : 0;
		if (exchange_run(participant, exchange, fds ? &fds[first] : NULL, timeout_ns,
				 err) != 0)
			return -1;
		first += page->count;
	} while (first < count);
	return 0;
}

static int page_keep(struct exchange *exchange, struct stasis_kept *kept, struct stasis_error *err)
{
	const struct stasis_wire_exports *page = &exchange->reply.exports;

	for (uint32_t i = 0; i < page->count; i++) {
		int fd = stasis_wire_descriptors_take(&exchange->descriptors, i);

		if (stasis_kept_add(kept, &page->items[i].object, page->items[i].bytes, fd, err) !=
		    0)
			return -1;
	}
	return 0;
}

int stasis_ask_exports(struct stasis_participant *participant, enum stasis_wire_phase phase,
		       uint64_t timeout_ns, struct stasis_kept *kept, struct stasis_error *err)
{
	CLEANUP(exchange) struct exchange *exchange = NULL;
	uint64_t first = 0;

	if (exchange_new(participant, phase, &exchange, err) != 0)
		return -1;
	do {
		exchange->request.exports.first = first;
		if (exchange_run(participant, exchange, NULL, timeout_ns, err) != 0)
			return -1;
		if (exchange->reply.exports.count == 0 &&
		    (exchange->reply.flags & STASIS_WIRE_MORE) != 0)
			return stasis_fail(err, STASIS_REFUSED,
					   "process %d: it answers with an empty page",
					   (int)participant->process.pid);
		first += exchange->reply.exports.count;
		if (page_keep(exchange, kept, err) != 0)
			return failure_name(participant, err);
	} while ((exchange->reply.flags & STASIS_WIRE_MORE) != 0);
	return 0;
}
