/* See participant.h. */

#include "group/participant.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wire/session.h"

/* Pages of a state that changes between them: how often it is asked for from its beginning. */
#define TRIES_MAX 100
#define RECORDS_MAX (UINT64_C(1) << 24)

static void request_begin(struct stasis_participant *participant, enum stasis_wire_phase phase,
			  struct stasis_wire_message *ret_request)
{
	memset(ret_request, 0, sizeof(*ret_request));
	ret_request->kind = STASIS_WIRE_REQUEST;
	ret_request->phase = phase;
	ret_request->operation = participant->operation;
	ret_request->sequence = ++participant->sequence;
}

static int context_add(const struct stasis_participant *participant, struct stasis_error *err)
{
	stasis_error_context(err, "process %d", (int)participant->process.pid);
	return -1;
}

/* ---- the session ---- */

static int greeting_receive(struct stasis_participant *participant, uint64_t deadline_ns,
			    struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_message *reply = malloc(sizeof(*reply));
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {.count = 0};
	bool is_closed = false;

	if (!reply)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	if (stasis_wire_receive(participant->socket_fd, reply, &descriptors, &is_closed,
				deadline_ns, err) != 0)
		return -1;
	if (is_closed)
		return stasis_fail(err, STASIS_REFUSED, "it closed the session unanswered");
	if (reply->kind == STASIS_WIRE_ERROR) {
		*err = reply->error;
		return -1;
	}
	if (reply->kind != STASIS_WIRE_REPLY || reply->phase != STASIS_WIRE_SESSION)
		return stasis_fail(err, STASIS_REFUSED, "it answered another question");
	participant->greeting = reply->session_reply;
	return 0;
}

/* How it is opened. */
struct opening {
	const struct stasis_id *capture;
	bool is_observer;
};

static int session_open(struct stasis_participant *participant, int door_fd,
			const struct opening *opening, uint64_t deadline_ns,
			struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_message *request = malloc(sizeof(*request));

	if (!request)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	request_begin(participant, STASIS_WIRE_SESSION, request);
	request->descriptor_count = 1;
	request->session_request.coordinator_pid = (uint32_t)getpid();
	request->session_request.is_observer = opening->is_observer;
	if (opening->capture)
		request->session_request.capture = *opening->capture;
	if (stasis_wire_session_open(door_fd, request, &participant->socket_fd, deadline_ns, err) !=
	    0)
		return -1;
	return greeting_receive(participant, deadline_ns, err);
}

static int participant_open(pid_t pid, const struct stasis_id *operation,
			    const struct opening *opening, uint64_t deadline_ns,
			    bool *ret_is_participant, struct stasis_participant *ret_participant,
			    struct stasis_error *err)
{
	CLEANUP(participant) struct stasis_participant participant = STASIS_PARTICIPANT_EMPTY;
	CLEANUP(free) struct stasis_wire_control *control = malloc(sizeof(*control));
	CLEANUP(fd) int door_fd = -1;
	bool is_participant = false;

	if (!control)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	participant.operation = *operation;
	if (stasis_process_open(pid, &participant.process, err) != 0)
		return -1;
	if (stasis_wire_control_take(pid, participant.process.pidfd, &is_participant, control,
				     &door_fd, err) != 0)
		return -1;
	if (is_participant && session_open(&participant, door_fd, opening, deadline_ns, err) != 0)
		return context_add(&participant, err);
	*ret_is_participant = is_participant;
	*ret_participant = participant;
	participant = (struct stasis_participant)STASIS_PARTICIPANT_EMPTY;
	return 0;
}

int stasis_participant_open(pid_t pid, const struct stasis_id *operation,
			    const struct stasis_id *capture, uint64_t deadline_ns,
			    bool *ret_is_participant, struct stasis_participant *ret_participant,
			    struct stasis_error *err)
{
	const struct opening opening = {.capture = capture};

	return participant_open(pid, operation, &opening, deadline_ns, ret_is_participant,
				ret_participant, err);
}

int stasis_participant_observe(pid_t pid, const struct stasis_id *operation, uint64_t deadline_ns,
			       bool *ret_is_participant, struct stasis_participant *ret_participant,
			       struct stasis_error *err)
{
	const struct opening opening = {.is_observer = true};

	return participant_open(pid, operation, &opening, deadline_ns, ret_is_participant,
				ret_participant, err);
}

void stasis_participant_close(struct stasis_participant *participant)
{
	cleanup_fd(&participant->socket_fd);
	stasis_process_close(&participant->process);
}

/* ---- its records ---- */

struct inspection {
	struct stasis_wire_message *request;
	struct stasis_wire_message *reply;
	struct stasis_wire_record *records;
	uint64_t room;
	uint64_t count;
	uint64_t generation;
};

static int records_take(struct inspection *inspection, struct stasis_error *err)
{
	const struct stasis_wire_inspect_page *page = &inspection->reply->inspect_page;

	if (page->total > RECORDS_MAX)
		return stasis_fail(err, STASIS_REFUSED, "it tells of %llu things, at most %llu",
				   (unsigned long long)page->total,
				   (unsigned long long)RECORDS_MAX);
	if (page->total + 1 > inspection->room) {
		struct stasis_wire_record *more = realloc(
			inspection->records, (page->total + 1) * sizeof(inspection->records[0]));

		if (!more)
			return stasis_fail(err, STASIS_REFUSED, "out of memory");
		inspection->records = more;
		inspection->room = page->total + 1;
	}
	if (page->count > 0)
		memcpy(&inspection->records[inspection->count], page->records,
		       page->count * sizeof(page->records[0]));
	inspection->count += page->count;
	return 0;
}

/* True in *ret_has_changed: the state is another one than that of the pages before. */
static int page_ask(struct stasis_participant *participant, struct inspection *inspection,
		    uint64_t deadline_ns, bool *ret_has_changed, struct stasis_error *err)
{
	const struct stasis_wire_inspect_page *page = &inspection->reply->inspect_page;

	request_begin(participant, STASIS_WIRE_INSPECT, inspection->request);
	inspection->request->inspect_request.generation = inspection->generation;
	inspection->request->inspect_request.first = inspection->count;
	if (stasis_wire_call(participant->socket_fd, inspection->request, NULL, inspection->reply,
			     NULL, deadline_ns, err) != 0)
		return -1;
	*ret_has_changed =
		inspection->generation != 0 && page->generation != inspection->generation;
	if (*ret_has_changed)
		return 0;
	if (page->first != inspection->count)
		return stasis_fail(err, STASIS_REFUSED, "it answered another question");
	inspection->generation = page->generation;
	return records_take(inspection, err);
}

static int pages_ask(struct stasis_participant *participant, struct inspection *inspection,
		     uint64_t deadline_ns, struct stasis_error *err)
{
	for (int try = 0; try < TRIES_MAX; try++) {
		bool has_changed = false;

		inspection->count = 0;
		inspection->generation = 0;
		do {
			if (page_ask(participant, inspection, deadline_ns, &has_changed, err) != 0)
				return -1;
		} while (!has_changed && (inspection->reply->flags & STASIS_WIRE_MORE) != 0);
		if (!has_changed)
			return 0;
	}
	return stasis_fail(err, STASIS_REFUSED,
			   "its memory changes faster than it can be told of; try again");
}

int stasis_participant_inspect(struct stasis_participant *participant, uint64_t deadline_ns,
			       struct stasis_wire_record **ret_records, uint32_t *ret_count,
			       struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_message *request = malloc(sizeof(*request));
	CLEANUP(free) struct stasis_wire_message *reply = malloc(sizeof(*reply));
	struct inspection inspection = {.request = request, .reply = reply};

	if (!request || !reply)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	if (pages_ask(participant, &inspection, deadline_ns, err) != 0) {
		free(inspection.records);
		return context_add(participant, err);
	}
	*ret_records = inspection.records;
	*ret_count = (uint32_t)inspection.count;
	return 0;
}
