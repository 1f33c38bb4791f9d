/*
 * Description: a process becomes a participant with its first successful cuInit, however and wherever from it is
 * called; it serves one coordinator at a time, and comes to no harm by any that dies or sends rubbish.
 *
 * usage: endpoint TOPIC
 */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "check.h"
#include "coordinator.h"
#include "device.h"
#include "driver/abi.h"
#include "gate.h"
#include "wire/session.h"

#define THREADS 16

static struct t_session session;
static struct t_session second;
static struct stasis_wire_control control;

/* ---- participants ---- */

/* Initialises when told, then allocates whenever it is told so. */
static void run_plain(int fd)
{
	t_say(fd, 's');
	t_hear(fd, 'i');
	(void)t_cuda();
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'a') {
		CUdeviceptr address = t_alloc(T_BLOCK_BYTES);

		T_OK(cuMemFree_v2(address));
		t_say(fd, 'd');
	}
}

static void *init_call(void *barrier)
{
	(void)pthread_barrier_wait(barrier);
	T_OK(cuInit(0));
	return NULL;
}

static void run_concurrent(int fd)
{
	pthread_barrier_t barrier;
	pthread_t threads[THREADS];

	T_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++)
		T_EQ(pthread_create(&threads[i], NULL, init_call, &barrier), 0);
	for (int i = 0; i < THREADS; i++)
		T_EQ(pthread_join(threads[i], NULL), 0);
	run_plain(fd);
}

/* cuInit by the address that cuGetProcAddress gives. */
static void run_by_address(int fd)
{
	CUresult (*init)(unsigned int) = t_entry("cuInit", 2000);

	t_say(fd, 's');
	t_hear(fd, 'i');
	T_OK(init(0));
	t_say(fd, 'r');
	(void)t_hear_any(fd);
}

/* The simulator is told to fail the first cuInit of a process of this name. */
static void run_failing(int fd)
{
	T_REFUSED(cuInit(0));
	run_plain(fd);
}

/* Forks before it uses CUDA; both use it then. */
static void run_fork_before(int fd)
{
	pid_t child = fork();

	T_SYS(child);
	if (child == 0) {
		(void)t_cuda();
		t_send(fd, &(pid_t){getpid()}, sizeof(pid_t));
		pause();
	}
	t_hear(fd, 'i');
	(void)t_cuda();
	t_say(fd, 'r');
	(void)t_hear_any(fd);
	T_SYS(kill(child, SIGKILL));
	T_SYS(waitpid(child, NULL, 0));
}

/* Forks afterwards, while a session is open: the child holds nothing of it. */
static void run_fork_after(int fd)
{
	pid_t child;

	(void)t_cuda();
	t_say(fd, 'r');
	t_hear(fd, 'f');
	child = fork();
	T_SYS(child);
	if (child == 0) {
		t_send(fd, &(pid_t){getpid()}, sizeof(pid_t));
		pause();
	}
	(void)t_hear_any(fd);
	T_SYS(kill(child, SIGKILL));
	T_SYS(waitpid(child, NULL, 0));
}

/* A tracked call is enough, for a program whose cuInit we did not see; this one has made none. */
static void run_unseen(int fd)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	CUmemGenericAllocationHandle handle;

	t_say(fd, 'r');
	t_hear(fd, 'a');
	T_REFUSED(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

/* A child's child, where neither its parent nor its grandparent had its CUDA from the other. */
static void run_fork_nested(int fd)
{
	pid_t child;

	(void)t_cuda();
	child = fork();
	T_SYS(child);
	if (child == 0) {
		child = fork();
		T_SYS(child);
		if (child == 0) {
			t_send(fd, &(pid_t){getpid()}, sizeof(pid_t));
			pause();
		}
		pause();
	}
	t_say(fd, 'r');
	(void)t_hear_any(fd);
	T_SYS(kill(child, SIGKILL));
	T_SYS(waitpid(child, NULL, 0));
}

static void run_exec(int fd)
{
	(void)t_cuda();
	t_say(fd, 'r');
	t_hear(fd, 'x');
	t_participant_exec("plain", fd);
}

static const struct t_mode modes[] = {
	{"plain", run_plain},
	{"concurrent", run_concurrent},
	{"by_address", run_by_address},
	{"failing", run_failing},
	{"fork_before", run_fork_before},
	{"fork_after", run_fork_after},
	{"fork_nested", run_fork_nested},
	{"unseen", run_unseen},
	{"exec", run_exec},
	{NULL, NULL},
};

/* ---- topics ---- */

static struct t_child started(const char *mode)
{
	struct t_child child = t_participant_start(mode);

	t_hear(child.fd, 's');
	t_say(child.fd, 'i');
	t_hear(child.fd, 'r');
	return child;
}

static void allocate(const struct t_child *child)
{
	t_say(child->fd, 'a');
	t_hear(child->fd, 'd');
}

static void finish(struct t_child *child)
{
	t_say(child->fd, 'q');
	t_child_join(child);
}

/* No participant when it starts, one when it has initialised. */
static struct t_child becomes_participant(const char *mode)
{
	struct t_child child = t_participant_start(mode);

	t_hear(child.fd, 's');
	T_TRUE(!t_participant_find(child.pid, NULL));
	t_say(child.fd, 'i');
	t_hear(child.fd, 'r');
	T_TRUE(t_participant_find(child.pid, &control));
	return child;
}

static void starts_with_init(void)
{
	struct t_child child = becomes_participant("plain");

	T_EQ(control.pid, child.pid);
	T_EQ(control.phase, 0);
	T_EQ(strlen(control.build), 40);
	finish(&child);
}

static void init_by_address(void)
{
	struct t_child child = becomes_participant("by_address");

	finish(&child);
}

static void init_many_at_once(void)
{
	struct t_child child = started("concurrent");

	T_TRUE(t_participant_find(child.pid, NULL));
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	t_session_close(&session);
	finish(&child);
}

static void init_that_fails(void)
{
	struct t_child child;

	T_SYS(setenv("STASIS_SIM_FAULT", "cuInit:1=UNKNOWN", 1));
	child = becomes_participant("failing");
	finish(&child);
}

static void answers(void)
{
	struct t_child child = started("plain");
	struct stasis_wire_session_reply *greeting = &session.reply.session_reply;

	T_TRUE(t_participant_find(child.pid, &control));
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_EQ(greeting->pid, child.pid);
	T_EQ(greeting->reached_phase, 0);
	T_TRUE(stasis_id_equal(&greeting->participant, &control.participant));
	T_TRUE(strcmp(greeting->build, control.build) == 0);
	session.request.peers.count = 1;
	session.request.peers.peers[0].participant = greeting->participant;
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_PEERS));
	memset(&session.request, 0, sizeof(session.request));
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_INSPECT));
	T_TRUE(session.reply.inspect_page.generation > 0);
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_ALL));
	t_say(child.fd, 'a');
	T_TRUE(t_participant_find(child.pid, &control));
	T_EQ(control.phase, STASIS_WIRE_GATE);
	T_TRUE(stasis_id_equal(&control.operation, &session.operation));
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_OPEN));
	t_hear(child.fd, 'd');
	t_session_close(&session);
	finish(&child);
}

static void one_session_at_a_time(void)
{
	struct t_child child = started("plain");
	char pid[32];

	(void)snprintf(pid, sizeof(pid), "busy: coordinator pid %d", (int)getpid());
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_REFUSED_WITH(&second, t_session_open(&second, child.pid, NULL, NULL), pid);
	t_session_close(&second);
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_INSPECT));
	t_session_close(&session);
	/* The end of the first is seen before the door. */
	T_DONE(&second, t_session_open(&second, child.pid, NULL, NULL));
	t_session_close(&second);
	finish(&child);
}

/* The coordinator is gone while everything is held. */
static void opens_when_abandoned(void)
{
	struct t_child child = started("plain");

	for (int step = STASIS_WIRE_GATE_CAPTURES; step <= STASIS_WIRE_GATE_ALL; step++) {
		T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
		T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
		if (step == STASIS_WIRE_GATE_ALL)
			T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_ALL));
		t_session_close(&session);
		allocate(&child);
	}
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_EQ(session.reply.session_reply.reached_phase, 0);
	t_session_close(&session);
	finish(&child);
}

static void refuses_wrong_order(void)
{
	struct t_child child = started("plain");

	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_REFUSED_WITH(&session, t_session_ask(&session, STASIS_WIRE_PREPARE_UNICAST),
		       "nothing was done");
	T_REFUSED_WITH(&session, t_session_gate(&session, STASIS_WIRE_GATE_ALL), "running");
	T_REFUSED_WITH(&session, t_session_ask(&session, STASIS_WIRE_RESTORE_UNICAST), "running");
	T_REFUSED_WITH(&session, t_session_ask(&session, STASIS_WIRE_FETCH),
		       "no phase of a session");
	allocate(&child);
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_OPEN));
	t_session_close(&session);
	finish(&child);
}

static void rubbish_at_the_door(const struct t_child *child)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	CLEANUP(fd) int door_fd = -1;
	bool is_participant = false;

	T_TRUE(stasis_process_open(child->pid, &process, &error) == 0);
	T_TRUE(stasis_wire_control_take(child->pid, process.pidfd, &is_participant, &control,
					&door_fd, &error) == 0);
	T_SYS(send(door_fd, "rubbish", 7, MSG_NOSIGNAL));
	T_SYS(send(door_fd, "", 0, MSG_NOSIGNAL));
}

static void survives_rubbish(void)
{
	struct t_child child = started("plain");
	char letter;

	rubbish_at_the_door(&child);
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_ALL));
	T_SYS(send(session.socket_fd, "rubbish", 7, MSG_NOSIGNAL));
	T_TRUE(recv(session.socket_fd, &letter, 1, 0) <= 0);
	t_session_close(&session);
	allocate(&child);
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	t_session_close(&session);
	finish(&child);
}

static void fork_before(void)
{
	struct t_child child = t_participant_start("fork_before");
	struct stasis_id forked;
	pid_t pid = 0;

	t_receive(child.fd, &pid, sizeof(pid));
	T_TRUE(t_participant_find(pid, &control));
	T_EQ(control.pid, pid);
	forked = control.participant;
	t_say(child.fd, 'i');
	t_hear(child.fd, 'r');
	T_TRUE(t_participant_find(child.pid, &control));
	T_TRUE(!stasis_id_equal(&forked, &control.participant));
	T_DONE(&session, t_session_open(&session, pid, NULL, NULL));
	t_session_close(&session);
	finish(&child);
}

static void fork_after(void)
{
	struct t_child child = t_participant_start("fork_after");
	pid_t pid = 0;
	char letter;

	t_hear(child.fd, 'r');
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	t_say(child.fd, 'f');
	t_receive(child.fd, &pid, sizeof(pid));
	T_TRUE(!t_participant_find(pid, NULL));
	/* Had the child the session's end, its parent's would go unseen. */
	T_SYS(kill(child.pid, SIGKILL));
	T_TRUE(recv(session.socket_fd, &letter, 1, 0) <= 0);
	t_session_close(&session);
	T_SYS(kill(pid, SIGKILL));
}

static void exec_begins_anew(void)
{
	struct t_child child = t_participant_start("exec");
	struct stasis_id before;
	char letter;

	t_hear(child.fd, 'r');
	T_TRUE(t_participant_find(child.pid, &control));
	before = control.participant;
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	t_say(child.fd, 'x');
	t_hear(child.fd, 's');
	T_TRUE(!t_participant_find(child.pid, NULL));
	T_TRUE(recv(session.socket_fd, &letter, 1, 0) <= 0);
	t_session_close(&session);
	t_say(child.fd, 'i');
	t_hear(child.fd, 'r');
	T_TRUE(t_participant_find(child.pid, &control));
	T_TRUE(!stasis_id_equal(&before, &control.participant));
	finish(&child);
}

static void fork_nested(void)
{
	struct t_child child = t_participant_start("fork_nested");
	pid_t grandchild = 0;
	char letter = 0;

	/* Either may come first. */
	for (int i = 0; i < 2; i++) {
		unsigned char bytes[sizeof(pid_t)];
		ssize_t size = T_SYS(recv(child.fd, bytes, sizeof(bytes), 0));

		if (size == 1)
			letter = (char)bytes[0];
		else
			memcpy(&grandchild, bytes, sizeof(grandchild));
	}
	T_EQ(letter, 'r');
	T_TRUE(!t_participant_find(grandchild, NULL));
	T_TRUE(t_participant_find(child.pid, NULL));
	T_SYS(kill(grandchild, SIGKILL));
	finish(&child);
}

static void starts_with_a_tracked_call(void)
{
	struct t_child child = t_participant_start("unseen");

	t_hear(child.fd, 'r');
	T_TRUE(!t_participant_find(child.pid, NULL));
	allocate(&child);
	T_TRUE(t_participant_find(child.pid, NULL));
	finish(&child);
}

/* A library's constructor and a thread that it starts use CUDA before main does. */
static void starts_in_a_constructor(void)
{
	const char *build = getenv("STASIS_BUILD_DIR");
	char path[4096];
	struct t_child child;

	(void)snprintf(path, sizeof(path), "%s/tests/interpose/fake/libconstructor.so", build);
	T_SYS(setenv("STASIS_TEST_PRELOAD", path, 1));
	child = t_participant_start("plain");
	t_hear(child.fd, 's');
	/* The library's thread may be the one that makes it, and nobody waits for that. */
	while (!t_participant_find(child.pid, NULL))
		(void)sched_yield();
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_INSPECT));
	t_session_close(&session);
	t_say(child.fd, 'i');
	t_hear(child.fd, 'r');
	allocate(&child);
	finish(&child);
}

/* The mask of the process's thread of that name, as hexadecimal digits; false: it has none. */
static bool mask_find(int tasks_fd, const char *tid, const char *wanted, char ret_mask[32])
{
	char path[512];
	char line[256];
	char name[32] = "";
	CLEANUP(file) FILE *file = NULL;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/status", tid);
	fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
	file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!file)
		t_fail("open %s: %d", path, errno);
	while (fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "Name: %31s", name);
		(void)sscanf(line, "SigBlk: %31s", ret_mask);
	}
	return strcmp(name, wanted) == 0;
}

/* Our thread has its name, and blocks every signal that can be blocked. */
static void threads_block_signals(void)
{
	struct t_child child = started("plain");
	CLEANUP(dir) DIR *dir = NULL;
	char path[64];
	size_t found = 0;

	/* It has begun when it answers. */
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	t_session_close(&session);
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)child.pid);
	dir = opendir(path);
	T_TRUE(dir != NULL);
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		char mask[32] = "";

		if (!mask_find(dirfd(dir), entry->d_name, "stasis-control", mask))
			continue;
		found++;
		/* All but SIGKILL (9), SIGSTOP (19) and the two that glibc needs (32, 33). */
		T_TRUE(strcmp(mask, "fffffffe7ffbfeff") == 0);
	}
	T_EQ(found, 1);
	finish(&child);
}

static const struct t_topic topics[] = {
	{"starts_with_init", starts_with_init},
	{"init_by_address", init_by_address},
	{"init_many_at_once", init_many_at_once},
	{"init_that_fails", init_that_fails},
	{"answers", answers},
	{"one_session_at_a_time", one_session_at_a_time},
	{"opens_when_abandoned", opens_when_abandoned},
	{"refuses_wrong_order", refuses_wrong_order},
	{"survives_rubbish", survives_rubbish},
	{"fork_before", fork_before},
	{"fork_after", fork_after},
	{"fork_nested", fork_nested},
	{"exec_begins_anew", exec_begins_anew},
	{"starts_with_a_tracked_call", starts_with_a_tracked_call},
	{"starts_in_a_constructor", starts_in_a_constructor},
	{"threads_block_signals", threads_block_signals},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
