/*
 * Processes that say of their memory what a test wants to hear: `told_group COUNT` starts so many of them, which all
 * hold one object, made by the first; that one also tells of private memory, of memory that it attached again, and of
 * notes of every kind. Their parent prints their pids in one line, and ends them with its input.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "check.h"
#include "wire/call.h"
#include "wire/session.h"

#define MEMBERS_MAX 200
#define FOREVER_NS (600 * STASIS_NS_PER_S)
#define BLOCK (UINT64_C(2) << 20)

static struct stasis_wire_message request;
static struct stasis_wire_message answer;

static struct stasis_id id_of(uint8_t kind, size_t number)
{
	struct stasis_id id = {.bytes = {kind, (uint8_t)number}};

	return id;
}

static struct stasis_wire_record *add(enum stasis_wire_record_type type)
{
	struct stasis_wire_inspect_page *page = &answer.inspect_page;
	struct stasis_wire_record *record = &page->records[page->count++];

	page->total = page->count;
	record->type = type;
	return record;
}

static void allocation_add(uint8_t object, size_t number, uint32_t flags)
{
	add(STASIS_WIRE_ALLOCATION)->allocation = (struct stasis_wire_allocation){
		.object = id_of('o', object),
		.creator = id_of('p', 0),
		.device = id_of('d', 1),
		.bytes = object * BLOCK,
		.role = number == 0 ? STASIS_WIRE_CREATOR : STASIS_WIRE_IMPORTER,
		.flags = flags,
		.location_type = 1,
		.handle_types = 1,
	};
}

static void note_add(enum stasis_wire_note_kind kind, uint64_t count, const char *text)
{
	struct stasis_wire_note *note = &add(STASIS_WIRE_NOTE)->note;

	note->kind = (uint32_t)kind;
	note->count = count;
	(void)snprintf(note->text, sizeof(note->text), "%s", text);
}

/* Objects are of as many blocks as their number says. */
static void records_tell(size_t number)
{
	answer.inspect_page.generation = 1;
	allocation_add(1, number, STASIS_WIRE_IS_SHARED);
	if (number > 0)
		return;
	allocation_add(2, number, 0);
	allocation_add(3, number, 0);
	allocation_add(4, number, STASIS_WIRE_IS_SHARED | STASIS_WIRE_IS_REATTACHED);
	note_add(STASIS_WIRE_NOTE_UNKNOWN_FUNCTION, 1, "cuOne");
	note_add(STASIS_WIRE_NOTE_REMARK, 1, "the first remark");
	note_add(STASIS_WIRE_NOTE_UNKNOWN_FUNCTION, 1, "cuTwo");
	note_add(STASIS_WIRE_NOTE_UNSUPPORTED, 1, "one thing");
	note_add(STASIS_WIRE_NOTE_UNSUPPORTED, 7, "other things");
	note_add(STASIS_WIRE_NOTE_REMARK, 1, "the second remark");
	note_add(STASIS_WIRE_NOTE_FOREIGN_IMPORT, 2, "foreign");
	note_add(STASIS_WIRE_NOTE_FOREIGN_IMPORT, 3, "foreign too");
}

static void answer_fill(size_t number)
{
	stasis_wire_answer_begin(&request, &answer);
	if (request.phase == STASIS_WIRE_INSPECT) {
		records_tell(number);
		return;
	}
	T_EQ(request.phase, STASIS_WIRE_SESSION);
	answer.session_reply.participant = id_of('p', number);
	answer.session_reply.incarnation = id_of('i', number);
	answer.session_reply.pid = (uint32_t)getpid();
	(void)snprintf(answer.session_reply.build, sizeof(answer.session_reply.build), "told");
}

/* From the request that opens a session to its end. */
static void session_serve(int socket_fd, size_t number)
{
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {.count = 0};
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_closed = false;

	while (!is_closed) {
		answer_fill(number);
		if (stasis_wire_send(socket_fd, &answer, NULL, stasis_deadline_after_ns(FOREVER_NS),
				     &err) != 0 ||
		    stasis_wire_receive(socket_fd, &request, &descriptors, &is_closed,
					stasis_deadline_after_ns(FOREVER_NS), &err) != 0)
			t_fail("%s", err.text);
	}
}

NORETURN static void member_run(size_t number)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_wire_control control = {
		.pid = (uint32_t)getpid(),
		.participant = id_of('p', number),
		.incarnation = id_of('i', number),
		.build = "told",
	};
	int control_fd;
	int near_fd;

	if (stasis_wire_door_open(&near_fd, &control.door_fd, &err) != 0 ||
	    stasis_wire_control_create(&control, &control_fd, &err) != 0)
		t_fail("%s", err.text);
	(void)raise(SIGSTOP); /* its parent sees that it can be found */
	for (;;) {
		int socket_fd;

		if (stasis_wire_session_accept(near_fd, &request, &socket_fd,
					       stasis_deadline_after_ns(FOREVER_NS), &err) != 0)
			t_fail("%s", err.text);
		session_serve(socket_fd, number);
		T_SYS(close(socket_fd));
	}
}

/* child.h has room for a few only. */
static pid_t member_start(size_t number)
{
	pid_t parent = getpid();
	pid_t pid = (pid_t)T_SYS(fork());
	int status;

	if (pid == 0) {
		T_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
		if (getppid() != parent)
			_exit(1);
		member_run(number);
	}
	T_EQ(T_SYS(waitpid(pid, &status, WUNTRACED)), pid);
	T_TRUE(WIFSTOPPED(status));
	T_SYS(kill(pid, SIGCONT));
	return pid;
}

int main(int argument_count, char **arguments)
{
	static pid_t members[MEMBERS_MAX];
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t count = 0;

	T_EQ(argument_count, 2);
	T_TRUE(stasis_parse_u64("count", arguments[1], &count, &err) == 0);
	T_TRUE(count <= MEMBERS_MAX);
	for (size_t i = 0; i < count; i++)
		members[i] = member_start(i);
	for (size_t i = 0; i < count; i++)
		(void)printf("%s%d", i > 0 ? " " : "", (int)members[i]);
	(void)printf("\n");
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	for (size_t i = 0; i < count; i++) {
		int status;

		T_SYS(kill(members[i], SIGKILL));
		T_EQ(T_SYS(waitpid(members[i], &status, 0)), members[i]);
		/* Nothing was wrong before. */
		T_TRUE(WIFSIGNALED(status));
	}
	return 0;
}
