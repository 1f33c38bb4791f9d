/*
 * Description: a coordinator finds a participant's door without any path, hands a session in, and both
 * speak over it; what is no participant, no door or no session is told apart.
 */

#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/process.h"
#include "wire/packet.h"
#include "wire/session.h"

#define LONG_NS (20 * STASIS_NS_PER_S)

static struct stasis_wire_message request;
static struct stasis_wire_message message;

static void request_begin(void)
{
	memset(&request, 0, sizeof(request));
	request.kind = STASIS_WIRE_REQUEST;
	request.phase = STASIS_WIRE_SESSION;
	request.sequence = 1;
	request.descriptor_count = 1;
	request.session_request.coordinator_pid = (uint32_t)getpid();
}

static uint64_t later(void)
{
	return stasis_deadline_after_ns(LONG_NS);
}

/* In the child: a participant that answers one session and then waits for its end. */
static void session_serve(int near_fd)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_wire_descriptors descriptors = {0};
	bool is_closed = false;
	int fd = -1;

	if (stasis_wire_session_accept(near_fd, &message, &fd, later(), &err) != 0)
		_exit(2);
	message.kind = STASIS_WIRE_REPLY;
	message.descriptor_count = 0;
	memset(&message.session_reply, 0, sizeof(message.session_reply));
	message.session_reply.pid = (uint32_t)getpid();
	if (stasis_wire_send(fd, &message, NULL, later(), &err) != 0)
		_exit(3);
	if (stasis_wire_receive(fd, &message, &descriptors, &is_closed, later(), &err) != 0 ||
	    !is_closed)
		_exit(4);
	_exit(0);
}

/* `door_shift` makes the control file name another descriptor than the door. */
static pid_t participant_start(int control_count, int door_shift)
{
	static struct stasis_wire_control control = {.build = "b1"};
	struct stasis_error err = STASIS_ERROR_INIT;
	char letter = 0;
	int ready[2];
	int near_fd = -1;
	int far_fd = -1;
	int control_fd = -1;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (stasis_wire_door_open(&near_fd, &far_fd, &err) != 0)
			_exit(1);
		control.pid = (uint32_t)getpid();
		control.door_fd = door_shift ? ready[1] : far_fd;
		for (int i = 0; i < control_count; i++) {
			if (stasis_wire_control_create(&control, &control_fd, &err) != 0)
				_exit(1);
		}
		(void)!write(ready[1], "r", 1);
		session_serve(near_fd);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &letter, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void participant_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void sessions_are_handed_in(void **state)
{
	static struct stasis_wire_control control;
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_wire_descriptors descriptors = {0};
	CLEANUP(fd) int door = -1;
	CLEANUP(fd) int session = -1;
	bool is_participant = false;
	bool is_closed = true;
	int status = -1;
	pid_t pid = participant_start(1, 0);

	(void)state;
	assert_done(stasis_process_open(pid, &process, &err), &err);
	assert_done(stasis_wire_control_take(pid, process.pidfd, &is_participant, &control, &door,
					     &err),
		    &err);
	assert_true(is_participant);
	assert_int_equal(control.pid, pid);
	assert_string_equal(control.build, "b1");
	request_begin();
	assert_done(stasis_wire_session_open(door, &request, &session, later(), &err), &err);
	assert_done(stasis_wire_receive(session, &message, &descriptors, &is_closed, later(), &err),
		    &err);
	assert_false(is_closed);
	assert_int_equal(message.kind, STASIS_WIRE_REPLY);
	assert_int_equal(message.session_reply.pid, pid);
	cleanup_fd(&session);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void take_refused(pid_t pid, const char *text)
{
	static struct stasis_wire_control control;
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_participant = false;
	int door = -7;

	assert_done(stasis_process_open(pid, &process, &err), &err);
	assert_refused(stasis_wire_control_take(pid, process.pidfd, &is_participant, &control,
						&door, &err),
		       &err, STASIS_REFUSED, text);
	assert_int_equal(door, -7);
	participant_kill(pid);
}

static void others_are_told_apart(void **state)
{
	static struct stasis_wire_control control;
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_participant = true;
	int door = -7;
	pid_t pid = participant_start(0, 0);

	(void)state;
	assert_done(stasis_process_open(pid, &process, &err), &err);
	assert_done(stasis_wire_control_take(pid, process.pidfd, &is_participant, &control, &door,
					     &err),
		    &err);
	assert_false(is_participant);
	participant_kill(pid);
	take_refused(participant_start(2, 0), "two control files");
	take_refused(participant_start(1, 1), "not the door");
}

static void only_sessions_come_through_the_door(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int near_fd = -1;
	CLEANUP(fd) int far_fd = -1;
	CLEANUP(fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CLEANUP(fd) int stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int session = -7;

	(void)state;
	assert_done(stasis_wire_door_open(&near_fd, &far_fd, &err), &err);
	request_begin();
	assert_done(stasis_wire_send(far_fd, &request, &null, later(), &err), &err);
	assert_refused(stasis_wire_session_accept(near_fd, &message, &session, later(), &err), &err,
		       STASIS_REFUSED, "no socket of that kind");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_done(stasis_wire_send(far_fd, &request, &stream, later(), &err), &err);
	assert_refused(stasis_wire_session_accept(near_fd, &message, &session, later(), &err), &err,
		       STASIS_REFUSED, "no socket of that kind");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	request.phase = STASIS_WIRE_OPEN;
	request.descriptor_count = 0;
	assert_done(stasis_wire_send(far_fd, &request, NULL, later(), &err), &err);
	assert_refused(stasis_wire_session_accept(near_fd, &message, &session, later(), &err), &err,
		       STASIS_REFUSED, "something else came");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_wire_session_open(far_fd, &request, &session, later(), &err), &err,
		       STASIS_INTERNAL, "SESSION request");
	/* The door goes on. */
	err = (struct stasis_error)STASIS_ERROR_INIT;
	request_begin();
	assert_done(stasis_wire_session_open(far_fd, &request, &session, later(), &err), &err);
	(void)close(session);
	assert_done(stasis_wire_session_accept(near_fd, &message, &session, later(), &err), &err);
	assert_int_equal(fcntl(session, F_GETFD), FD_CLOEXEC);
	(void)close(session);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_are_handed_in),
		cmocka_unit_test(others_are_told_apart),
		cmocka_unit_test(only_sessions_come_through_the_door),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
