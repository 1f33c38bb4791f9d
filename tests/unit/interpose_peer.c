/*
 * Description: participants fetch descriptors from each other at the same time; idle, slow and odd clients hold up
 * nobody, nor does a shortage of descriptors; the socket closes with nothing left of it and comes back under
 * another incarnation; where it cannot be had, INSPECT can tell.
 */

#include "socket_folder.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "fake_phases.h"
#include "interpose/identity.h"
#include "interpose/peer.h"
#include "wire/call.h"
#include "wire/peer.h"

#define LONG_NS (60 * STASIS_NS_PER_S)
#define FETCHERS 4
#define ROUNDS 50

static struct stasis_id object = {{7}};

static uint64_t later(void)
{
	return stasis_deadline_after_ns(LONG_NS);
}

static const struct stasis_id *self(void)
{
	const struct stasis_identity *identity = stasis_identity_get();

	assert_non_null(identity);
	return &identity->participant;
}

static int fetch(const struct stasis_id *participant, uint64_t *ret_bytes, struct stasis_error *err)
{
	struct stat status;
	int fd = -1;
	int result;

	result = stasis_peer_fetch(participant, &object, later(), &fd, ret_bytes, err);
	if (result == 0 && (fstat(fd, &status) != 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0))
		result = stasis_fail(err, STASIS_INTERNAL, "no descriptor came");
	cleanup_fd(&fd);
	return result;
}

static void fetch_from_self(void)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t bytes = 0;

	assert_done(fetch(self(), &bytes, &err), &err);
	assert_int_equal(bytes, 7);
}

/* ---- two participants ---- */

static void *fetch_rounds(void *participant)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		uint64_t bytes = 0;

		if (fetch(participant, &bytes, &err) != 0) {
			print_error("%s\n", err.text);
			return participant;
		}
	}
	return NULL;
}

/* Both are told of each other, then fetch with several threads each; nobody of them is told when to answer. */
NORETURN static void reciprocal_run(int fd)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	pthread_t threads[FETCHERS];
	struct stasis_id other;
	void *failure = NULL;
	void *result;

	if (stasis_peer_ensure(&err) != 0 || send(fd, self(), sizeof(other), 0) < 0 ||
	    recv(fd, &other, sizeof(other), 0) != sizeof(other))
		_exit(1);
	for (int i = 0; i < FETCHERS; i++) {
		if (pthread_create(&threads[i], NULL, fetch_rounds, &other) != 0)
			_exit(2);
	}
	for (int i = 0; i < FETCHERS; i++) {
		(void)pthread_join(threads[i], &result);
		failure = failure ? failure : result;
	}
	/* Until the other one is done, too. */
	if (send(fd, "d", 1, 0) < 0 || recv(fd, &other, 1, 0) != 1)
		_exit(3);
	exit(failure ? 4 : 0);
}

static void two_fetch_from_each_other(void **state)
{
	int ends[2];
	pid_t children[2];

	(void)state;
	fake_phases_reset();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			(void)close(ends[1 - i]);
			reciprocal_run(ends[i]);
		}
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	for (int i = 0; i < 2; i++) {
		int status = 0;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
}

/* A process that ended in order leaves no socket. */
static void nothing_is_left_in_the_folder(void **state)
{
	CLEANUP(dir) DIR *dir = opendir(folder);

	(void)state;
	assert_non_null(dir);
	assert_null(stasis_dir_next(dir));
}

/* ---- one that serves itself ---- */

static void no_socket_without_a_ticket(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_int_equal(stasis_peer_reopen(&err), 0);
	nothing_is_left_in_the_folder(state);
	assert_false(stasis_peer_fault(&err));
}

static void a_folder_that_is_not_ours_alone(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error fault = STASIS_ERROR_INIT;
	uint32_t changes = stasis_peer_changes();

	(void)state;
	assert_int_equal(chmod(folder, 0755), 0);
	assert_refused(stasis_peer_ensure(&err), &err, STASIS_REFUSED, "mode 0755");
	assert_true(stasis_peer_fault(&fault));
	assert_non_null(strstr(fault.text, "mode 0755"));
	assert_true(stasis_peer_changes() > changes);
	changes = stasis_peer_changes();
	assert_int_equal(chmod(folder, 0700), 0);
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_done(stasis_peer_ensure(&err), &err);
	assert_false(stasis_peer_fault(&fault));
	assert_true(stasis_peer_changes() > changes);
	fetch_from_self();
}

static void a_refusal_is_told(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	const struct stasis_id strange = {{0xee}};
	uint64_t bytes = 0;
	int fd = -1;

	(void)state;
	assert_refused(stasis_peer_fetch(self(), &strange, later(), &fd, &bytes, &err), &err,
		       STASIS_REFUSED, "no such object is held here");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_peer_fetch(&strange, &object, later(), &fd, &bytes, &err), &err,
		       STASIS_REFUSED, "0 live sockets");
	assert_int_equal(fd, -1);
}

static int connect_to_self(void)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id incarnation;
	int fd = -1;

	stasis_peer_incarnation(&incarnation);
	assert_done(stasis_wire_peer_connect(folder, self(), &incarnation, &fd, later(), &err),
		    &err);
	return fd;
}

static void idle_and_odd_clients_hold_up_nobody(void **state)
{
	int fds[40];
	char bytes[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		fds[i] = connect_to_self();
	fetch_from_self();
	/* Rubbish ends a connection, and only that one. */
	assert_int_equal(send(fds[0], "rubbish", 7, MSG_NOSIGNAL), 7);
	assert_true(recv(fds[0], bytes, sizeof(bytes), 0) <= 0);
	fetch_from_self();
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++)
		(void)close(fds[i]);
	fetch_from_self();
}

static void other_phases_are_refused(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	static struct stasis_wire_message request;
	static struct stasis_wire_message answer;
	CLEANUP(fd) int fd = connect_to_self();

	(void)state;
	memset(&request, 0, sizeof(request));
	request.kind = STASIS_WIRE_REQUEST;
	request.phase = STASIS_WIRE_OPEN;
	request.sequence = 1;
	assert_refused(stasis_wire_call(fd, &request, NULL, &answer, NULL, later(), &err), &err,
		       STASIS_REFUSED, "FETCH only");
	request.phase = STASIS_WIRE_FETCH;
	request.sequence = 2;
	request.fetch_request.participant = *self();
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_wire_call(fd, &request, NULL, &answer, NULL, later(), &err), &err,
		       STASIS_REFUSED, "not the one that listens here");
}

static void *fetch_once(void *result)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t bytes = 0;

	*(int *)result = fetch(self(), &bytes, &err);
	return NULL;
}

/* A client connects while the process has no descriptor left, and is served when it has again. */
static void a_shortage_of_descriptors_passes(void **state)
{
	struct rlimit before;
	struct rlimit none;
	CLEANUP(fd) int ready = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	static struct stasis_wire_message request;
	static struct stasis_wire_message answer;
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	int idle = connect_to_self();

	(void)state;
	(void)close(idle);
	fetch_from_self();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	(void)close(ready);
	ready = connect_to_self();
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	memset(&request, 0, sizeof(request));
	request.kind = STASIS_WIRE_REQUEST;
	request.phase = STASIS_WIRE_FETCH;
	request.sequence = 1;
	request.fetch_request.participant = *self();
	stasis_peer_incarnation(&request.fetch_request.incarnation);
	request.fetch_request.object = object;
	/* Accepted before or not: it comes to nothing but an error while there is no descriptor, or waits. */
	assert_done(stasis_wire_send(ready, &request, NULL, later(), &err), &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	{
		bool is_closed = false;

		assert_done(stasis_wire_receive(ready, &answer, &descriptors, &is_closed, later(),
						&err),
			    &err);
		assert_false(is_closed);
		assert_true(answer.kind == STASIS_WIRE_REPLY || answer.kind == STASIS_WIRE_ERROR);
	}
	fetch_from_self();
}

static void closing_waits_for_who_is_being_served(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id before;
	struct stasis_id after;
	struct stasis_wire_peers peers = {.count = 1};
	pthread_t thread;
	int result = -1;

	(void)state;
	stasis_peer_incarnation(&before);
	atomic_store(&fake_phases.is_fetch_held, true);
	assert_int_equal(pthread_create(&thread, NULL, fetch_once, &result), 0);
	while (atomic_load(&fake_phases.fetching) == 0)
		(void)sched_yield();
	assert_refused(stasis_peer_close(0, &err), &err, STASIS_REFUSED, "still being made");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_done(stasis_peer_renew(&err), &err);
	stasis_peer_incarnation(&after);
	assert_true(stasis_id_equal(&before, &after));
	atomic_store(&fake_phases.is_fetch_held, false);
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_done(stasis_peer_close(later(), &err), &err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(result, 0);
	nothing_is_left_in_the_folder(state);
	/* No fault: it is closed because it was told to be. */
	assert_false(stasis_peer_fault(&err));
	assert_done(stasis_peer_close(later(), &err), &err);

	assert_done(stasis_peer_renew(&err), &err);
	stasis_peer_incarnation(&after);
	assert_false(stasis_id_equal(&before, &after));
	assert_done(stasis_peer_reopen(&err), &err);
	fetch_from_self();
	/* The table of the coordinator comes before what lies in the folder. */
	peers.peers[0] = (struct stasis_wire_peer){*self(), before};
	assert_done(stasis_peer_table(&peers, true, &err), &err);
	assert_int_equal(fetch_once(&result) == NULL && result == -1, 1);
	peers.peers[0].incarnation = after;
	assert_done(stasis_peer_table(&peers, true, &err), &err);
	fetch_from_self();
}

/* A forked child serves nobody and leaves the parent's socket alone. */
static void a_forked_child_takes_nothing(void **state)
{
	int status = 0;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fetch_from_self();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_fetch_from_each_other),
		cmocka_unit_test(nothing_is_left_in_the_folder),
		cmocka_unit_test(no_socket_without_a_ticket),
		cmocka_unit_test(a_folder_that_is_not_ours_alone),
		cmocka_unit_test(a_refusal_is_told),
		cmocka_unit_test(idle_and_odd_clients_hold_up_nobody),
		cmocka_unit_test(other_phases_are_refused),
		cmocka_unit_test(a_shortage_of_descriptors_passes),
		cmocka_unit_test(closing_waits_for_who_is_being_served),
		cmocka_unit_test(a_forked_child_takes_nothing),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
