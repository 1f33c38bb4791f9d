/*
 * Description: a session's requests are done once, in order, and answered; a coordinator that dies leaves the
 * program running before ARM and held after it; what was answered can be asked for over the next session;
 * descriptors go where they belong.
 */

#include "socket_folder.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "fake_phases.h"
#include "interpose/notes.h"
#include "interpose/peer.h"
#include "interpose/serve.h"

static struct stasis_serve serve;
static struct stasis_wire_message request;
static struct stasis_wire_message reply;
static struct stasis_wire_descriptors received;
static struct stasis_id operation;
static struct stasis_id none;
static uint32_t sequence;
static int socket_fd = -1; /* the coordinator's */

static uint64_t soon(void)
{
	return stasis_deadline_after_ns(5 * STASIS_NS_PER_S);
}

static int begin(void **state)
{
	(void)state;
	fake_phases_reset();
	memset(&serve, 0, sizeof(serve));
	serve.session_fd = -1;
	serve.control_fd = -1;
	serve.control.pid = 1;
	strcpy(serve.control.build, "b1");
	operation = (struct stasis_id){{1}};
	sequence = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	stasis_wire_descriptors_close(&received);
	cleanup_fd(&socket_fd);
	if (serve.session_fd >= 0)
		stasis_serve_end(&serve);
	return 0;
}

static size_t fd_count(void)
{
	CLEANUP(dir) DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (stasis_dir_next(dir))
		count++;
	return count;
}

static void reply_receive(int fd)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_closed = false;

	stasis_wire_descriptors_close(&received);
	assert_done(stasis_wire_receive(fd, &reply, &received, &is_closed, soon(), &err), &err);
	assert_false(is_closed);
}

/* The kind of the answer. */
static int session_open(const struct stasis_id *capture)
{
	int ends[2];
	int kind;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	memset(&request, 0, sizeof(request));
	request.kind = STASIS_WIRE_REQUEST;
	request.phase = STASIS_WIRE_SESSION;
	request.operation = operation;
	request.sequence = ++sequence;
	request.descriptor_count = 1;
	request.session_request.coordinator_pid = 77;
	request.session_request.capture = *capture;
	stasis_serve_session(&serve, &request, ends[1]);
	reply_receive(ends[0]);
	kind = (int)reply.kind;
	memset(&request, 0, sizeof(request));
	if (kind == STASIS_WIRE_REPLY && socket_fd < 0)
		socket_fd = ends[0];
	else
		(void)close(ends[0]);
	return kind;
}

static void session_break(void)
{
	cleanup_fd(&socket_fd);
	stasis_serve_request(&serve);
	assert_int_equal(serve.session_fd, -1);
}

static void request_send(enum stasis_wire_phase phase, const int *fds)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	request.kind = STASIS_WIRE_REQUEST;
	request.phase = phase;
	request.operation = operation;
	if ((request.flags & STASIS_WIRE_AGAIN) == 0)
		request.sequence = ++sequence;
	assert_done(stasis_wire_send(socket_fd, &request, fds, soon(), &err), &err);
	stasis_serve_request(&serve);
}

/* The kind of the answer. */
static int ask(enum stasis_wire_phase phase)
{
	request_send(phase, NULL);
	reply_receive(socket_fd);
	return (int)reply.kind;
}

static int gate(uint32_t step)
{
	request.gate_request = (struct stasis_wire_gate_request){.limit_ns = 1, .step = step};
	return ask(STASIS_WIRE_GATE);
}

static int arm(void)
{
	strcpy(request.arm_request.journal, "/journal");
	strcpy(request.arm_request.image, "/image");
	return ask(STASIS_WIRE_ARM);
}

static int load(const int *fds, uint32_t count)
{
	memset(&request, 0, sizeof(request));
	request.exports.count = count;
	request.descriptor_count = fds ? count : 0;
	for (uint32_t i = 0; i < count; i++) {
		request.exports.items[i].object.bytes[0] = (uint8_t)(i + 1);
		request.exports.items[i].bytes = 1;
	}
	request_send(STASIS_WIRE_LOAD_ALLOCATIONS, fds);
	memset(&request, 0, sizeof(request));
	reply_receive(socket_fd);
	return (int)reply.kind;
}

/* On through the capture and the rebuild until one stands there. */
static void walk_to(enum stasis_standing standing)
{
	static const enum stasis_wire_phase plain[] = {
		[STASIS_STANDING_UNICAST_UP] = STASIS_WIRE_PREPARE_MULTICAST,
		[STASIS_STANDING_DOWN] = STASIS_WIRE_PREPARE_UNICAST,
		[STASIS_STANDING_MULTICAST_CREATED] = STASIS_WIRE_RESTORE_MULTICAST_CREATORS,
		[STASIS_STANDING_MULTICAST_IMPORTED] = STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS,
		[STASIS_STANDING_MULTICAST_JOINED] = STASIS_WIRE_RESTORE_MULTICAST_DEVICES,
	};

	for (int to = STASIS_STANDING_CAPTURES_HELD; to <= (int)standing; to++) {
		int kind = STASIS_WIRE_REPLY;

		if (to == STASIS_STANDING_CAPTURES_HELD)
			kind = gate(STASIS_WIRE_GATE_CAPTURES);
		else if (to == STASIS_STANDING_GATED)
			kind = gate(STASIS_WIRE_GATE_ALL);
		else if (to == STASIS_STANDING_ARMED)
			kind = arm();
		else if (to == STASIS_STANDING_LOADED)
			kind = load(NULL, 1);
		else if (to == STASIS_STANDING_MULTICAST_CREATED)
			kind = ask(STASIS_WIRE_RESTORE_UNICAST);
		assert_int_equal(kind, STASIS_WIRE_REPLY);
		if (plain[to > STASIS_STANDING_MULTICAST_JOINED ? 0 : to] != 0)
			assert_int_equal(ask(plain[to]), STASIS_WIRE_REPLY);
		assert_int_equal(serve.standing, to);
	}
}

static void a_capture_and_a_rebuild(void **state)
{
	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	assert_int_equal(reply.session_reply.reached_phase, 0);
	walk_to(STASIS_STANDING_MULTICAST_JOINED);
	assert_string_equal(serve.control.journal, "/journal");
	assert_int_equal(ask(STASIS_WIRE_RESTORE_MULTICAST_BINDINGS), STASIS_WIRE_REPLY);
	assert_int_equal(ask(STASIS_WIRE_OPEN), STASIS_WIRE_REPLY);
	assert_int_equal(serve.standing, STASIS_STANDING_RUNNING);
	assert_string_equal(serve.control.journal, "");
	for (int i = STASIS_WIRE_PREPARE_MULTICAST; i <= STASIS_WIRE_OPEN; i++) {
		if (i != STASIS_WIRE_EXPORT_ALLOCATIONS)
			assert_int_equal(fake_phases.calls[i], 1);
	}
}

/* At every standing: before ARM the program goes on, from ARM on it waits for whoever knows the capture. */
static void a_coordinator_dies_anywhere(void **state)
{
	for (int at = STASIS_STANDING_RUNNING; at < STASIS_STANDING_COUNT; at++) {
		bool is_armed = at >= STASIS_STANDING_ARMED;
		struct stasis_id capture;

		(void)begin(state);
		capture = operation;
		assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
		walk_to((enum stasis_standing)at);
		session_break();
		assert_int_equal(fake_phases.calls[STASIS_WIRE_OPEN],
				 at == STASIS_STANDING_CAPTURES_HELD ||
					 at == STASIS_STANDING_GATED);
		assert_int_equal(serve.standing, is_armed ? at : STASIS_STANDING_RUNNING);
		/* A stranger. */
		operation = (struct stasis_id){{2}};
		assert_int_equal(session_open(&none),
				 is_armed ? STASIS_WIRE_ERROR : STASIS_WIRE_REPLY);
		if (!is_armed) {
			session_break();
			continue;
		}
		assert_non_null(strstr(reply.error.text, "another one's"));
		/* Whoever knows the capture. */
		assert_int_equal(session_open(&capture), STASIS_WIRE_REPLY);
		assert_int_equal(reply.session_reply.reached_phase,
				 stasis_lifecycle_phase((enum stasis_standing)at));
		session_break();
		/* And again, though the operation is another one by now. */
		operation = (struct stasis_id){{3}};
		assert_int_equal(session_open(&capture), STASIS_WIRE_REPLY);
		session_break();
		/* The last operation itself. */
		assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
		session_break();
	}
}

static void nothing_is_done_twice(void **state)
{
	uint32_t arm_sequence;

	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	walk_to(STASIS_STANDING_ARMED);
	fake_phases.failing = STASIS_WIRE_PREPARE_MULTICAST;
	request_send(STASIS_WIRE_PREPARE_MULTICAST, NULL);
	arm_sequence = request.sequence;
	session_break();
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	request.flags = STASIS_WIRE_AGAIN;
	request.sequence = arm_sequence;
	assert_int_equal(ask(STASIS_WIRE_PREPARE_MULTICAST), STASIS_WIRE_ERROR);
	assert_non_null(strstr(reply.error.text, "played failure"));
	assert_int_equal(fake_phases.calls[STASIS_WIRE_PREPARE_MULTICAST], 1);
	/* One that never came. */
	assert_int_equal(ask(STASIS_WIRE_PREPARE_UNICAST), STASIS_WIRE_UNKNOWN);
	assert_int_equal(fake_phases.calls[STASIS_WIRE_PREPARE_UNICAST], 0);
	/* Without asking again: the same number is the same request. */
	request.sequence = arm_sequence;
	request.flags = STASIS_WIRE_AGAIN;
	assert_int_equal(ask(STASIS_WIRE_PREPARE_MULTICAST), STASIS_WIRE_ERROR);
	assert_int_equal(fake_phases.calls[STASIS_WIRE_PREPARE_MULTICAST], 1);
	request.flags = 0;
}

static void an_answer_to_open_survives_its_session(void **state)
{
	uint32_t open_sequence;

	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	walk_to(STASIS_STANDING_ARMED);
	request_send(STASIS_WIRE_OPEN, NULL);
	open_sequence = request.sequence;
	session_break();
	assert_int_equal(session_open(&operation), STASIS_WIRE_REPLY);
	request.flags = STASIS_WIRE_AGAIN;
	request.sequence = open_sequence;
	assert_int_equal(ask(STASIS_WIRE_OPEN), STASIS_WIRE_REPLY);
	assert_int_equal(fake_phases.calls[STASIS_WIRE_OPEN], 1);
	request.flags = 0;
}

static void a_second_one_is_busy(void **state)
{
	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	operation = (struct stasis_id){{2}};
	assert_int_equal(session_open(&none), STASIS_WIRE_ERROR);
	assert_string_equal(reply.error.text, "busy: coordinator pid 77, operation "
					      "01000000000000000000000000000000");
	operation = (struct stasis_id){{0}};
	session_break();
	assert_int_equal(session_open(&none), STASIS_WIRE_ERROR);
	assert_non_null(strstr(reply.error.text, "id of its operation"));
	operation = (struct stasis_id){{2}};
	assert_int_equal(session_open(&operation), STASIS_WIRE_ERROR);
	assert_non_null(strstr(reply.error.text, "no capture"));
}

static void what_fails_can_be_undone(void **state)
{
	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	walk_to(STASIS_STANDING_UNICAST_UP);
	fake_phases.failing = STASIS_WIRE_PREPARE_UNICAST;
	assert_int_equal(ask(STASIS_WIRE_PREPARE_UNICAST), STASIS_WIRE_ERROR);
	fake_phases.failing = 0;
	assert_int_equal(ask(STASIS_WIRE_OPEN), STASIS_WIRE_ERROR);
	assert_int_equal(load(NULL, 0), STASIS_WIRE_REPLY);
	assert_int_equal(ask(STASIS_WIRE_RESTORE_UNICAST), STASIS_WIRE_REPLY);
	assert_int_equal(fake_phases.calls[STASIS_WIRE_OPEN], 0);
}

/* Its coordinator gone, too, while peers can still reach it. */
static void what_fails_can_be_undone_by_the_next(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id before;
	struct stasis_id capture = operation;

	(void)state;
	assert_done(stasis_peer_ensure(&err), &err);
	stasis_peer_incarnation(&before);
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	walk_to(STASIS_STANDING_UNICAST_UP);
	fake_phases.failing = STASIS_WIRE_PREPARE_UNICAST;
	assert_int_equal(ask(STASIS_WIRE_PREPARE_UNICAST), STASIS_WIRE_ERROR);
	fake_phases.failing = 0;
	session_break();
	operation = (struct stasis_id){{2}};
	assert_int_equal(session_open(&capture), STASIS_WIRE_REPLY);
	assert_true(stasis_id_equal(&reply.session_reply.incarnation, &before));
	/* Given up whole, its socket is closed, and it has another incarnation from the next session on. */
	assert_int_equal(ask(STASIS_WIRE_PREPARE_UNICAST), STASIS_WIRE_REPLY);
	session_break();
	assert_int_equal(session_open(&capture), STASIS_WIRE_REPLY);
	assert_false(stasis_id_equal(&reply.session_reply.incarnation, &before));
	assert_int_equal(load(NULL, 0), STASIS_WIRE_REPLY);
	assert_int_equal(ask(STASIS_WIRE_RESTORE_UNICAST), STASIS_WIRE_REPLY);
	assert_done(stasis_peer_close(soon(), &err), &err);
}

static void descriptors_are_taken_or_closed(void **state)
{
	size_t before;
	int fds[3];

	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	walk_to(STASIS_STANDING_DOWN);
	for (int i = 0; i < 3; i++)
		fds[i] = memfd_create("held", MFD_CLOEXEC);
	before = fd_count();
	/* The second time for imports, whose creators have let go of them; nothing is created then. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(load(fds, 3), STASIS_WIRE_REPLY);
		assert_true(fake_phases.kept_fd >= 0);
		assert_int_equal(fd_count(), before + 1);
		(void)close(fake_phases.kept_fd);
		assert_int_equal(load(NULL, 0), STASIS_WIRE_ERROR);
	}
	assert_int_equal(ask(STASIS_WIRE_RESTORE_UNICAST), STASIS_WIRE_REPLY);
	/* Where the phase is illegal, all of them are closed. */
	assert_int_equal(load(fds, 3), STASIS_WIRE_ERROR);
	assert_int_equal(fd_count(), before);
	for (int i = 0; i < 3; i++)
		(void)close(fds[i]);
}

static void pages_of_allocations(void **state)
{
	size_t before;

	(void)state;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	walk_to(STASIS_STANDING_GATED);
	fake_phases.page_total = STASIS_WIRE_DESCRIPTORS_MAX + 2;
	before = fd_count();
	assert_int_equal(ask(STASIS_WIRE_SAVE_ALLOCATIONS), STASIS_WIRE_REPLY);
	assert_int_equal(received.count, STASIS_WIRE_DESCRIPTORS_MAX);
	assert_int_equal(reply.flags, STASIS_WIRE_MORE);
	assert_int_equal(fd_count(), before + STASIS_WIRE_DESCRIPTORS_MAX);
	request.exports.first = STASIS_WIRE_DESCRIPTORS_MAX;
	assert_int_equal(ask(STASIS_WIRE_SAVE_ALLOCATIONS), STASIS_WIRE_REPLY);
	assert_int_equal(received.count, 2);
	assert_int_equal(reply.flags, 0);
	stasis_wire_descriptors_close(&received);
	fake_phases.failing = STASIS_WIRE_SAVE_ALLOCATIONS;
	assert_int_equal(ask(STASIS_WIRE_SAVE_ALLOCATIONS), STASIS_WIRE_ERROR);
	assert_int_equal(fd_count(), before);
}

static void pages_of_records(void **state)
{
	uint64_t generation;

	(void)state;
	stasis_notes_add("cuUnheardOf");
	stasis_notes_add("second libcuda");
	fake_phases.record_total = STASIS_WIRE_RECORDS_MAX + 1;
	assert_int_equal(session_open(&none), STASIS_WIRE_REPLY);
	assert_int_equal(ask(STASIS_WIRE_INSPECT), STASIS_WIRE_REPLY);
	assert_int_equal(reply.inspect_page.count, STASIS_WIRE_RECORDS_MAX);
	assert_int_equal(reply.inspect_page.total, STASIS_WIRE_RECORDS_MAX + 3);
	assert_int_equal(reply.flags, STASIS_WIRE_MORE);
	generation = reply.inspect_page.generation;
	request.inspect_request.generation = generation;
	request.inspect_request.first = STASIS_WIRE_RECORDS_MAX;
	assert_int_equal(ask(STASIS_WIRE_INSPECT), STASIS_WIRE_REPLY);
	assert_int_equal(reply.inspect_page.count, 3);
	assert_int_equal(reply.flags, 0);
	assert_true(reply.inspect_page.generation == generation);
	assert_int_equal(reply.inspect_page.records[0].handle.handle, STASIS_WIRE_RECORDS_MAX + 1);
	assert_string_equal(reply.inspect_page.records[1].note.text, "cuUnheardOf");
	assert_int_equal(reply.inspect_page.records[2].note.kind, STASIS_WIRE_NOTE_UNSUPPORTED);
	/* It shrinks under the reader. */
	fake_phases.record_total = 0;
	fake_phases.generation++;
	assert_int_equal(ask(STASIS_WIRE_INSPECT), STASIS_WIRE_REPLY);
	assert_int_equal(reply.inspect_page.count, 0);
	assert_true(reply.inspect_page.generation > generation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_capture_and_a_rebuild, begin, end),
		cmocka_unit_test_setup_teardown(a_coordinator_dies_anywhere, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_done_twice, begin, end),
		cmocka_unit_test_setup_teardown(an_answer_to_open_survives_its_session, begin, end),
		cmocka_unit_test_setup_teardown(a_second_one_is_busy, begin, end),
		cmocka_unit_test_setup_teardown(what_fails_can_be_undone, begin, end),
		cmocka_unit_test_setup_teardown(descriptors_are_taken_or_closed, begin, end),
		cmocka_unit_test_setup_teardown(pages_of_allocations, begin, end),
		cmocka_unit_test_setup_teardown(pages_of_records, begin, end),
		/* Last: from it on peers can reach this process. */
		cmocka_unit_test_setup_teardown(what_fails_can_be_undone_by_the_next, begin, end),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
