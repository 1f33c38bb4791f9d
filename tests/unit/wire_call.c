/*
 * Description: a request gets its own answer or an error that says what came instead; answers are kept by
 * operation and phase, sent again when asked for, and nothing is done twice.
 */

#include "unit.h"

#include <sys/socket.h>

#include "base/cleanup.h"
#include "wire/call.h"

#define LONG_NS (20 * STASIS_NS_PER_S)

static const struct stasis_id operation = {{1}};
static const struct stasis_id other_operation = {{2}};
static struct stasis_wire_message request;
static struct stasis_wire_message answer;
static struct stasis_wire_message reply;
static struct stasis_wire_kept kept;

static void request_begin(enum stasis_wire_phase phase, uint32_t sequence)
{
	memset(&request, 0, sizeof(request));
	request.kind = STASIS_WIRE_REQUEST;
	request.phase = phase;
	request.sequence = sequence;
	request.operation = operation;
}

struct line {
	int near_fd;
	int far_fd;
};

static struct line line_open(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	return (struct line){fds[0], fds[1]};
}

static void cleanup_line(struct line *line)
{
	cleanup_fd(&line->near_fd);
	cleanup_fd(&line->far_fd);
}

static void answer_send(int fd, const int *fds)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_wire_send(fd, &answer, fds, stasis_deadline_after_ns(LONG_NS), &err),
		    &err);
}

/* Asks over a line on which the answers wait already. */
static int ask(const struct line *line, struct stasis_wire_descriptors *descriptors,
	       struct stasis_error *err)
{
	return stasis_wire_call(line->near_fd, &request, NULL, &reply, descriptors,
				stasis_deadline_after_ns(LONG_NS), err);
}

static void late_answers_are_dropped(void **state)
{
	CLEANUP(line) struct line line = line_open();
	CLEANUP(fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	request_begin(STASIS_WIRE_SAVE_ALLOCATIONS, 3);
	stasis_wire_answer_begin(&request, &answer);
	answer.exports.count = 1;
	answer.exports.items[0].bytes = 5;
	answer.descriptor_count = 1;
	answer.sequence = 2;
	answer_send(line.far_fd, &null);
	answer.sequence = 3;
	answer.exports.items[0].bytes = 6;
	answer_send(line.far_fd, &null);
	assert_done(ask(&line, &descriptors, &err), &err);
	assert_int_equal(reply.kind, STASIS_WIRE_REPLY);
	assert_int_equal(reply.exports.items[0].bytes, 6);
	assert_int_equal(descriptors.count, 1);
}

static void answer_refused(const char *text)
{
	CLEANUP(line) struct line line = line_open();
	struct stasis_error err = STASIS_ERROR_INIT;

	answer_send(line.far_fd, NULL);
	assert_refused(ask(&line, NULL, &err), &err, STASIS_REFUSED, text);
}

static void other_answers_are_refused(void **state)
{
	(void)state;
	request_begin(STASIS_WIRE_OPEN, 3);
	stasis_wire_answer_begin(&request, &answer);
	answer.sequence = 4;
	answer_refused("OPEN: the other side answered something else: OPEN number 4");
	answer.sequence = 3;
	answer.operation = other_operation;
	answer_refused("something else");
	stasis_wire_answer_begin(&request, &answer);
	answer.kind = STASIS_WIRE_UNKNOWN;
	answer_refused("does not know");
	answer = request;
	answer_refused("something else");
}

static void descriptors_that_nobody_wants_are_refused(void **state)
{
	CLEANUP(line) struct line line = line_open();
	CLEANUP(fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	request_begin(STASIS_WIRE_FETCH, 1);
	stasis_wire_answer_begin(&request, &answer);
	answer.fetch_reply.bytes = 1;
	answer.descriptor_count = 1;
	answer_send(line.far_fd, &null);
	assert_refused(ask(&line, NULL, &err), &err, STASIS_REFUSED, "carries descriptors");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_int_equal(shutdown(line.far_fd, SHUT_WR), 0);
	assert_refused(ask(&line, NULL, &err), &err, STASIS_REFUSED,
		       "FETCH: the other side closed without an answer");
}

static void errors_come_as_they_were(void **state)
{
	static const struct stasis_error cause = {STASIS_LOST, 5, 999, "cuMemUnmap failed"};
	CLEANUP(line) struct line line = line_open();
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	request_begin(STASIS_WIRE_PREPARE_UNICAST, 1);
	stasis_wire_answer_error(&request, &cause, &answer);
	answer_send(line.far_fd, NULL);
	assert_refused(ask(&line, NULL, &err), &err, STASIS_LOST, "cuMemUnmap failed");
	assert_int_equal(err.os_errno, 5);
	assert_int_equal(err.cuda_result, 999);
}

static void judged(enum stasis_wire_verdict wanted)
{
	enum stasis_wire_verdict verdict = (enum stasis_wire_verdict)77;
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_wire_kept_judge(&kept, &request, &verdict, &err), &err);
	assert_int_equal(verdict, wanted);
}

static void judged_wrong(enum stasis_status status, const char *text)
{
	enum stasis_wire_verdict verdict = (enum stasis_wire_verdict)77;
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_refused(stasis_wire_kept_judge(&kept, &request, &verdict, &err), &err, status, text);
	assert_int_equal(verdict, 77);
}

static void keep(uint64_t bytes)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	stasis_wire_answer_begin(&request, &answer);
	answer.done.bytes = bytes;
	assert_done(stasis_wire_kept_add(&kept, &answer, &err), &err);
}

static void lost_replies_are_asked_for_again(void **state)
{
	CLEANUP(line) struct line line = line_open();
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	memset(&kept, 0, sizeof(kept));
	stasis_wire_kept_begin(&kept, &operation);
	request_begin(STASIS_WIRE_ARM, 1);
	request.flags = STASIS_WIRE_AGAIN;
	judged(STASIS_WIRE_NEVER_CAME);
	request.flags = 0;
	judged(STASIS_WIRE_DO);
	judged_wrong(STASIS_LOST, "begun and did not end");
	keep(4711);
	judged(STASIS_WIRE_SEND_KEPT);
	/* The same answer over a new session; the operation goes on. */
	stasis_wire_kept_begin(&kept, &operation);
	request_begin(STASIS_WIRE_PREPARE_UNICAST, 1);
	request.flags = STASIS_WIRE_AGAIN;
	judged(STASIS_WIRE_NEVER_CAME);
	stasis_wire_answer_begin(&request, &answer);
	answer.kind = STASIS_WIRE_UNKNOWN;
	answer_send(line.far_fd, NULL);
	assert_done(ask(&line, NULL, &err), &err);
	assert_int_equal(reply.kind, STASIS_WIRE_UNKNOWN);
	request.flags = 0;
	judged(STASIS_WIRE_DO);
	keep(4712);
	request.flags = STASIS_WIRE_AGAIN;
	judged(STASIS_WIRE_SEND_KEPT);
	assert_done(
		stasis_wire_kept_send(&kept, line.far_fd, request.phase, STASIS_NO_DEADLINE, &err),
		&err);
	assert_done(ask(&line, NULL, &err), &err);
	assert_int_equal(reply.kind, STASIS_WIRE_REPLY);
	assert_int_equal(reply.done.bytes, 4712);
}

static void nothing_is_done_twice(void **state)
{
	static const struct stasis_error cause = {STASIS_REFUSED, 0, 0, "busy"};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	memset(&kept, 0, sizeof(kept));
	stasis_wire_kept_begin(&kept, &operation);
	request_begin(STASIS_WIRE_GATE, 5);
	judged(STASIS_WIRE_DO);
	stasis_wire_answer_error(&request, &cause, &answer);
	memset(answer.error.text, 'x', sizeof(answer.error.text)); /* the longest is kept, too */
	assert_done(stasis_wire_kept_add(&kept, &answer, &err), &err);
	judged(STASIS_WIRE_SEND_KEPT);
	request.sequence = 4;
	judged_wrong(STASIS_REFUSED, "number 4 came after number 5");
	request.sequence = 6;
	judged(STASIS_WIRE_DO);
	answer.sequence = 5;
	assert_refused(stasis_wire_kept_add(&kept, &answer, &err), &err, STASIS_INTERNAL,
		       "number 6 is done");
	request.operation = other_operation;
	judged_wrong(STASIS_REFUSED, "another operation");
	stasis_wire_kept_begin(&kept, &other_operation);
	request.sequence = 1;
	judged(STASIS_WIRE_DO);
	request.kind = STASIS_WIRE_REPLY;
	judged_wrong(STASIS_REFUSED, "none was due");
	/* What changes nothing is done as often as it is asked. */
	request_begin(STASIS_WIRE_INSPECT, 1);
	request.operation = other_operation;
	judged(STASIS_WIRE_DO);
	judged(STASIS_WIRE_DO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_answers_are_dropped),
		cmocka_unit_test(other_answers_are_refused),
		cmocka_unit_test(descriptors_that_nobody_wants_are_refused),
		cmocka_unit_test(errors_come_as_they_were),
		cmocka_unit_test(lost_replies_are_asked_for_again),
		cmocka_unit_test(nothing_is_done_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
