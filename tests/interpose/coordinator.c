/*
 * See coordinator.h.
 */

#include "coordinator.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "check.h"
#include "wire/session.h"

#define LONG_NS (60 * STASIS_NS_PER_S)

static void participant_main(int argument_count, char **arguments, const struct t_mode *modes)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	uint64_t fd = 0;

	if (argument_count != 4 || strcmp(arguments[1], "participant") != 0)
		return;
	T_TRUE(stasis_parse_u64("descriptor", arguments[3], &fd, &error) == 0);
	for (; modes->name; modes++) {
		if (strcmp(modes->name, arguments[2]) == 0) {
			modes->run((int)fd);
			exit(0);
		}
	}
	t_fail("no mode '%s'", arguments[2]);
}

void t_topics_main(int argument_count, char **arguments, const struct t_mode *modes,
		   const struct t_topic *topics)
{
	participant_main(argument_count, arguments, modes);
	for (; argument_count == 2 && topics->name; topics++) {
		if (strcmp(topics->name, arguments[1]) == 0) {
			topics->run();
			exit(0);
		}
	}
	t_fail("usage: %s TOPIC", arguments[0]);
}

void t_participant_exec(const char *mode, int fd)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", fd);
	T_SYS(fcntl(fd, F_SETFD, 0));
	(void)execl("/proc/self/exe", "participant", "participant", mode, number, NULL);
	t_fail("exec: %d", errno);
}

/* Other objects that the test wants preloaded stand in STASIS_TEST_PRELOAD. */
static void preload_set(void)
{
	const char *build = getenv("STASIS_BUILD_DIR");
	const char *others = getenv("STASIS_TEST_PRELOAD");
	char list[8192];

	T_TRUE(build != NULL);
	(void)snprintf(list, sizeof(list), "%s%s%s/src/interpose/libstasis-interpose.so",
		       others ? others : "", others ? ":" : "", build);
	T_SYS(setenv("LD_PRELOAD", list, 1));
	/* The interposer comes before the sanitizers' runtimes, and needs none of them. */
	T_SYS(setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1));
}

static void participant_run(int fd, void *mode)
{
	preload_set();
	t_participant_exec(mode, fd);
}

/* TMPDIR is too long for the paths of sockets. */
static char runtime_dir[32];

static void runtime_dir_remove(void)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;

	if (stasis_tree_remove(AT_FDCWD, runtime_dir, &ignored) != 0)
		(void)printf("%s\n", ignored.text);
}

static void runtime_dir_make(void)
{
	if (runtime_dir[0] != '\0')
		return;
	(void)snprintf(runtime_dir, sizeof(runtime_dir), "/tmp/stasis-t-XXXXXX");
	T_TRUE(mkdtemp(runtime_dir) != NULL);
	T_SYS(setenv("STASIS_RUNTIME_DIR", runtime_dir, 1));
	T_EQ(atexit(runtime_dir_remove), 0);
}

struct t_child t_participant_start(const char *mode)
{
	runtime_dir_make();
	return t_child_start(participant_run, (void *)(uintptr_t)mode);
}

static bool control_take(pid_t pid, struct stasis_wire_control *control, int *ret_door_fd)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	bool is_participant = false;

	if (stasis_process_open(pid, &process, &error) != 0 ||
	    stasis_wire_control_take(pid, process.pidfd, &is_participant, control, ret_door_fd,
				     &error) != 0)
		t_fail("find the control file of %d: %s", (int)pid, error.text);
	return is_participant;
}

bool t_participant_find(pid_t pid, struct stasis_wire_control *ret_control)
{
	static struct stasis_wire_control control;
	CLEANUP(fd) int door_fd = -1;

	return control_take(pid, ret_control ? ret_control : &control, &door_fd);
}

static void request_begin(struct t_session *session, enum stasis_wire_phase phase)
{
	session->request.kind = STASIS_WIRE_REQUEST;
	session->request.phase = phase;
	session->request.operation = session->operation;
	session->request.sequence = ++session->sequence;
	session->error = (struct stasis_error)STASIS_ERROR_INIT;
}

static void greeting_receive(struct t_session *session)
{
	bool is_closed = false;

	if (stasis_wire_receive(session->socket_fd, &session->reply, &session->descriptors,
				&is_closed, stasis_deadline_after_ns(LONG_NS),
				&session->error) != 0)
		return;
	if (is_closed)
		(void)stasis_fail(&session->error, STASIS_REFUSED, "closed without an answer");
	else if (session->reply.kind == STASIS_WIRE_ERROR)
		session->error = session->reply.error;
}

int t_session_open(struct t_session *session, pid_t pid, const struct stasis_id *operation,
		   const struct stasis_id *capture)
{
	static struct stasis_wire_control control;
	CLEANUP(fd) int door_fd = -1;

	memset(session, 0, sizeof(*session));
	session->socket_fd = -1;
	if (operation)
		session->operation = *operation;
	else
		T_TRUE(stasis_id_random(&session->operation, &session->error) == 0);
	T_TRUE(control_take(pid, &control, &door_fd));
	request_begin(session, STASIS_WIRE_SESSION);
	session->request.descriptor_count = 1;
	session->request.session_request.coordinator_pid = (uint32_t)getpid();
	if (capture)
		session->request.session_request.capture = *capture;
	if (stasis_wire_session_open(door_fd, &session->request, &session->socket_fd,
				     stasis_deadline_after_ns(LONG_NS), &session->error) == 0)
		greeting_receive(session);
	memset(&session->request, 0, sizeof(session->request));
	return stasis_error_is_set(&session->error) ? -1 : 0;
}

void t_session_close(struct t_session *session)
{
	stasis_wire_descriptors_close(&session->descriptors);
	cleanup_fd(&session->socket_fd);
}

static int ask(struct t_session *session)
{
	stasis_wire_descriptors_close(&session->descriptors);
	return stasis_wire_call(session->socket_fd, &session->request, NULL, &session->reply,
				&session->descriptors, stasis_deadline_after_ns(LONG_NS),
				&session->error);
}

int t_session_ask(struct t_session *session, enum stasis_wire_phase phase)
{
	request_begin(session, phase);
	return ask(session);
}

int t_session_ask_again(struct t_session *session, enum stasis_wire_phase phase, uint32_t sequence)
{
	int result;

	request_begin(session, phase);
	session->request.sequence = sequence;
	session->request.flags |= STASIS_WIRE_AGAIN;
	result = ask(session);
	session->request.flags = 0;
	return result;
}

int t_session_gate_within(struct t_session *session, enum stasis_wire_gate_step step,
			  uint64_t limit_ns)
{
	int result;

	session->request.gate_request.limit_ns = limit_ns;
	session->request.gate_request.step = (uint32_t)step;
	result = t_session_ask(session, STASIS_WIRE_GATE);
	memset(&session->request, 0, sizeof(session->request));
	return result;
}

int t_session_gate(struct t_session *session, enum stasis_wire_gate_step step)
{
	return t_session_gate_within(session, step, 20 * STASIS_NS_PER_S);
}

void t_session_shut(struct t_session *session, pid_t pid)
{
	int result;

	/* That the session before has ended it may not have seen yet. */
	while ((result = t_session_open(session, pid, NULL, NULL)) != 0 &&
	       strncmp(session->error.text, "busy", 4) == 0) {
		t_session_close(session);
		(void)sched_yield();
	}
	T_DONE(session, result);
	T_DONE(session, t_session_gate(session, STASIS_WIRE_GATE_CAPTURES));
	T_DONE(session, t_session_gate(session, STASIS_WIRE_GATE_ALL));
}

void t_session_let_go(struct t_session *session)
{
	T_DONE(session, t_session_ask(session, STASIS_WIRE_OPEN));
	t_session_close(session);
}

void t_session_check(const struct t_session *session, const char *file, int line, int result)
{
	if (result != 0)
		t_fail("%s:%d: %s", file, line, session->error.text);
}

void t_session_check_refused(const struct t_session *session, const char *file, int line,
			     int result, const char *text)
{
	if (result == 0)
		t_fail("%s:%d: it was not refused", file, line);
	if (!strstr(session->error.text, text))
		t_fail("%s:%d: expected '%s', got '%s'", file, line, text, session->error.text);
}
