/*
 * Description: two participants that share memory with each other are taken apart and put together again; a
 * coordinator that dies at any phase leaves them running, or held until the next one undoes it; a want of threads or
 * descriptors costs nothing but a while.
 *
 * usage: group TOPIC
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "check.h"
#include "checkpoint.h"
#include "coordinator.h"
#include "device.h"
#include "members.h"

#define PAIR 2
#define ROUNDS 20
#define CHURNERS 3
#define FORKS 50

/* ---- participants ---- */

static void run_sharing(int fd)
{
	unsigned char seeds[2];
	struct t_vmm own;
	CUdeviceptr imported;
	int ticket;
	int other;

	(void)t_cuda();
	t_receive(fd, seeds, sizeof(seeds));
	own = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	t_fill(own.address, own.bytes, seeds[0]);
	ticket = t_export(own.handle);
	t_send_fd(fd, ticket);
	other = t_receive_fd(fd);
	t_hear(fd, 'g');
	for (int i = 0; i < ROUNDS; i++) {
		CUmemGenericAllocationHandle handle = t_import(other);

		T_OK(cuMemRelease(handle));
	}
	imported = t_map(t_import(other), T_BLOCK_BYTES);
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'v') {
		t_verify(own.address, own.bytes, seeds[0]);
		t_verify(imported, T_BLOCK_BYTES, seeds[1]);
		t_say(fd, 'd');
	}
}

/* Calls cuInit once for each letter. */
static void run_starved(int fd)
{
	struct t_vmm own;

	while (t_hear_any(fd) == 'i') {
		T_OK(cuInit(0));
		t_say(fd, 'd');
	}
	(void)t_cuda();
	own = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	do {
		int ticket = t_export(own.handle);

		t_send_fd(fd, ticket);
		T_SYS(close(ticket));
	} while (t_hear_any(fd) == 'e');
}

static void run_importing(int fd)
{
	CUmemGenericAllocationHandle handle;
	int ticket;

	(void)t_cuda();
	t_say(fd, 'r');
	ticket = t_receive_fd(fd);
	handle = t_import(ticket);
	T_OK(cuMemRelease(handle));
	t_say(fd, 'd');
}

static void *churn(void *argument)
{
	atomic_bool *is_over = argument;

	while (!atomic_load(is_over)) {
		CUmemGenericAllocationHandle handle;
		CUmemAllocationProp prop = t_prop(T_FD_TYPE);
		int ticket;

		T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
		ticket = t_export(handle);
		T_SYS(close(ticket));
		T_OK(cuMemRelease(handle));
	}
	return NULL;
}

/* Forks while threads of its own allocate and share, and a coordinator opens one session after the other. */
static void run_forking(int fd)
{
	static atomic_bool is_over;
	pthread_t threads[CHURNERS];

	(void)t_cuda();
	for (int i = 0; i < CHURNERS; i++)
		T_EQ(pthread_create(&threads[i], NULL, churn, &is_over), 0);
	t_say(fd, 'r');
	for (int i = 0; i < FORKS; i++) {
		int status = 0;
		pid_t child = fork();

		T_SYS(child);
		/* The child's first call would wait for ever if it took over what its parent's threads held. */
		if (child == 0) {
			(void)cuInit(0);
			_exit(0);
		}
		T_SYS(waitpid(child, &status, 0));
		T_EQ(status, 0);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < CHURNERS; i++)
		T_EQ(pthread_join(threads[i], NULL), 0);
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

static const struct t_mode modes[] = {
	{"sharing", run_sharing},
	{"starved", run_starved},
	{"importing", run_importing},
	{"forking", run_forking},
	{NULL, NULL},
};

/* ---- the coordinator ---- */

static struct t_member members[PAIR];
static struct stasis_id capture;

static void pair_start(void)
{
	int tickets[PAIR];

	for (int i = 0; i < PAIR; i++) {
		unsigned char seeds[2] = {(unsigned char)(i + 1), (unsigned char)(PAIR - i)};

		members[i].child = t_participant_start("sharing");
		t_send(members[i].child.fd, seeds, sizeof(seeds));
		tickets[i] = t_receive_fd(members[i].child.fd);
	}
	for (int i = 0; i < PAIR; i++) {
		t_send_fd(members[i].child.fd, tickets[PAIR - 1 - i]);
		T_SYS(close(tickets[PAIR - 1 - i]));
	}
	/* At the same time: each waits for the other's answer while the other waits for its own. */
	for (int i = 0; i < PAIR; i++)
		t_say(members[i].child.fd, 'g');
	for (int i = 0; i < PAIR; i++)
		t_hear(members[i].child.fd, 'r');
}

static void pair_verify(void)
{
	for (int i = 0; i < PAIR; i++)
		t_say(members[i].child.fd, 'v');
	for (int i = 0; i < PAIR; i++)
		t_hear(members[i].child.fd, 'd');
}

static void pair_finish(void)
{
	for (int i = 0; i < PAIR; i++) {
		t_say(members[i].child.fd, 'q');
		t_child_join(&members[i].child);
	}
}

static void sessions_open(const struct stasis_id *of_capture)
{
	t_members_open(members, PAIR, of_capture);
}

static void sessions_close(void)
{
	t_members_close(members, PAIR);
}

/* Loading attaches what was created to the descriptors that are still held. */
static void phase_do(struct t_member *member, enum stasis_wire_phase phase)
{
	if (phase == STASIS_WIRE_SAVE_ALLOCATIONS) {
		t_member_take(member, phase);
		t_member_keep_created(member);
		T_EQ(member->exports.count, 1);
	} else if (phase == STASIS_WIRE_LOAD_ALLOCATIONS) {
		T_DONE(&member->session,
		       t_member_load(member, &member->exports, &member->descriptors));
	} else {
		t_member_do(member, phase);
	}
	if (phase == STASIS_WIRE_ARM)
		capture = member->session.operation;
}

static const enum stasis_wire_phase way[] = {
	STASIS_WIRE_GATE,
	STASIS_WIRE_SAVE_ALLOCATIONS,
	STASIS_WIRE_ARM,
	STASIS_WIRE_PREPARE_MULTICAST,
	STASIS_WIRE_PREPARE_UNICAST,
	STASIS_WIRE_LOAD_ALLOCATIONS,
	STASIS_WIRE_RESTORE_UNICAST,
	STASIS_WIRE_RESTORE_MULTICAST_CREATORS,
	STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS,
	STASIS_WIRE_RESTORE_MULTICAST_DEVICES,
	STASIS_WIRE_RESTORE_MULTICAST_BINDINGS,
	STASIS_WIRE_OPEN,
};

#define DOWN 5 /* so many phases until all is down */

static int control_phase(pid_t pid)
{
	static struct stasis_wire_control control;

	T_TRUE(t_participant_find(pid, &control));
	return control.phase;
}

/* A barrier after each phase. */
static void phases_do(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		for (int j = 0; j < PAIR; j++)
			phase_do(&members[j], way[i]);
	}
}

/* No socket of a peer is left, which a dump of the process could not take along. */
static void no_socket_check(void)
{
	const char *folder = getenv("STASIS_RUNTIME_DIR");
	CLEANUP(dir) DIR *dir = folder ? opendir(folder) : NULL;
	const struct dirent *entry;

	T_TRUE(dir != NULL);
	entry = stasis_dir_next(dir);
	if (entry)
		t_fail("'%s' is left", entry->d_name);
}

static void import_at_the_same_time(void)
{
	pair_start();
	pair_verify();
	pair_finish();
}

static void apart_and_together(void)
{
	pair_start();
	for (int i = 0; i < 3; i++) {
		sessions_open(NULL);
		phases_do(0, DOWN);
		no_socket_check();
		phases_do(DOWN, ARRAY_COUNT(way));
		sessions_close();
		pair_verify();
	}
	pair_finish();
}

static void killed_at_each_phase(void)
{
	pair_start();
	for (size_t at = 0; at < ARRAY_COUNT(way); at++) {
		bool is_armed = at >= 2 && at + 1 < ARRAY_COUNT(way);

		sessions_open(NULL);
		phases_do(0, at + 1);
		sessions_close();
		if (is_armed) {
			sessions_open(&capture);
			phases_do(at + 1, ARRAY_COUNT(way));
			sessions_close();
		}
		pair_verify();
	}
	pair_finish();
}

/*
 * Natively suspended in between: nothing of ours is open that the driver would trip over, and the session and the
 * door live through it.
 */
static void through_a_native_checkpoint(void)
{
	pair_start();
	t_init_only();
	for (int i = 0; i < 3; i++) {
		sessions_open(NULL);
		phases_do(0, DOWN);
		sessions_close();
		for (int j = 0; j < PAIR; j++)
			t_suspend(members[j].child.pid);
		for (int j = 0; j < PAIR; j++)
			T_EQ(t_driver_descriptors(members[j].child.pid), 0);
		/* While it lasts, too. */
		sessions_open(&capture);
		T_EQ(control_phase(members[0].child.pid), STASIS_WIRE_PEERS);
		sessions_close();
		for (int j = 0; j < PAIR; j++)
			t_resume(members[j].child.pid);
		sessions_open(&capture);
		phases_do(DOWN, ARRAY_COUNT(way));
		sessions_close();
		pair_verify();
	}
	pair_finish();
}

static void forks_under_load(void)
{
	struct t_session *session = &members[0].session;
	struct t_child child = t_participant_start("forking");

	t_hear(child.fd, 'r');
	for (int i = 0; i < FORKS; i++) {
		T_DONE(session, t_session_open(session, child.pid, NULL, NULL));
		T_DONE(session, t_session_ask(session, STASIS_WIRE_INSPECT));
		T_DONE(session, t_session_gate(session, STASIS_WIRE_GATE_CAPTURES));
		t_session_close(session);
	}
	t_hear(child.fd, 'd');
	t_say(child.fd, 'q');
	t_child_join(&child);
}

static void starve(const char *variable, const char *number)
{
	static char preload[4096];
	const char *build = getenv("STASIS_BUILD_DIR");

	(void)snprintf(preload, sizeof(preload), "%s/tests/interpose/fake/libstarve.so", build);
	T_SYS(setenv("STASIS_TEST_PRELOAD", preload, 1));
	T_SYS(setenv(variable, number, 1));
}

/* The endpoint cannot start with the first cuInit, and does with a later one. */
static void starts_late(const char *variable)
{
	struct t_child child;

	starve(variable, "1");
	child = t_participant_start("starved");
	t_say(child.fd, 'i');
	t_hear(child.fd, 'd');
	T_TRUE(!t_participant_find(child.pid, NULL));
	do {
		(void)sched_yield();
		t_say(child.fd, 'i');
		t_hear(child.fd, 'd');
	} while (!t_participant_find(child.pid, NULL));
	T_DONE(&members[0].session, t_session_open(&members[0].session, child.pid, NULL, NULL));
	t_session_close(&members[0].session);
	t_say(child.fd, 'q');
	T_SYS(close(t_receive_fd(child.fd)));
	t_say(child.fd, 'q');
	t_child_join(&child);
}

static void no_thread_for_control(void)
{
	starts_late("STASIS_TEST_STARVE_THREADS");
}

static void no_descriptor_for_control(void)
{
	starts_late("STASIS_TEST_STARVE_FILES");
}

static bool has_note(struct t_session *session, const char *text)
{
	const struct stasis_wire_inspect_page *page = &session->reply.inspect_page;

	T_DONE(session, t_session_ask(session, STASIS_WIRE_INSPECT));
	for (uint32_t i = 0; i < page->count; i++) {
		if (page->records[i].type == STASIS_WIRE_NOTE &&
		    strstr(page->records[i].note.text, text))
			return true;
	}
	return false;
}

/* A ticket is given out all the same, INSPECT says so, and the next export puts it right. */
static void no_thread_for_peers(void)
{
	struct t_session *session = &members[0].session;
	struct t_child child;
	struct t_child importer;

	starve("STASIS_TEST_STARVE_THREADS", "2");
	child = t_participant_start("starved");
	t_say(child.fd, 'q');
	T_SYS(close(t_receive_fd(child.fd)));
	T_DONE(session, t_session_open(session, child.pid, NULL, NULL));
	T_TRUE(has_note(session, "stasis-peer"));
	t_say(child.fd, 'e');
	importer = t_participant_start("importing");
	t_hear(importer.fd, 'r');
	t_send_fd(importer.fd, t_receive_fd(child.fd));
	t_hear(importer.fd, 'd');
	T_TRUE(!has_note(session, "stasis-peer"));
	t_session_close(session);
	t_child_join(&importer);
	t_say(child.fd, 'q');
	t_child_join(&child);
}

static const struct t_topic topics[] = {
	{"import_at_the_same_time", import_at_the_same_time},
	{"apart_and_together", apart_and_together},
	{"killed_at_each_phase", killed_at_each_phase},
	{"through_a_native_checkpoint", through_a_native_checkpoint},
	{"forks_under_load", forks_under_load},
	{"no_thread_for_control", no_thread_for_control},
	{"no_descriptor_for_control", no_descriptor_for_control},
	{"no_thread_for_peers", no_thread_for_peers},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
