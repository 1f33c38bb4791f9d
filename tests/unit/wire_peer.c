/*
 * Description: peers meet at sockets in a folder that is ours alone; a dead socket's path is taken over and
 * nothing else that may lie there, a path that is too long is refused before anything is made, and a
 * listener outlives a shortage of descriptors.
 */

#include "socket_folder.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "wire/peer.h"

#define SOON_NS (20 * STASIS_NS_PER_MS)
#define LONG_NS (20 * STASIS_NS_PER_S)
#define DIRECTORY_LENGTH_MAX 41

static const struct stasis_id alice = {{0xa1}};
static const struct stasis_id bob = {{0xb0}};
static const struct stasis_id first = {{1}};
static const struct stasis_id second = {{2}};
static void listen_at(const struct stasis_id *participant, const struct stasis_id *incarnation,
		      struct stasis_wire_listener *listener)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_wire_peer_listen(folder, participant, incarnation, listener, &err),
		    &err);
}

static void listen_refused(const char *text)
{
	struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_refused(stasis_wire_peer_listen(folder, &alice, &first, &listener, &err), &err,
		       STASIS_REFUSED, text);
	assert_int_equal(listener.fd, -1);
}

static int connect_to(const struct stasis_id *incarnation, int *fd, struct stasis_error *err)
{
	return stasis_wire_peer_connect(folder, &alice, incarnation, fd,
					stasis_deadline_after_ns(SOON_NS), err);
}

/* Whom the path of alice's first incarnation belongs to now. */
static mode_t path_mode(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 ? status.st_mode : 0;
}

static void peers_meet(void **state)
{
	CLEANUP(wire_listener) struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int near_fd = -1;
	CLEANUP(fd) int far_fd = -1;
	mode_t old = umask(0);
	char letter = 0;

	(void)state;
	listen_at(&alice, &first, &listener);
	(void)umask(old);
	assert_int_equal(path_mode(listener.path), S_IFSOCK | 0600);
	assert_done(connect_to(&first, &near_fd, &err), &err);
	assert_done(stasis_wire_peer_accept(&listener, &far_fd, stasis_deadline_after_ns(LONG_NS),
					    &err),
		    &err);
	assert_true(far_fd >= 0);
	assert_int_equal(fcntl(far_fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(send(near_fd, "x", 1, 0), 1);
	assert_int_equal(recv(far_fd, &letter, 1, 0), 1);
	cleanup_fd(&far_fd);
	assert_done(stasis_wire_peer_accept(&listener, &far_fd, stasis_deadline_after_ns(SOON_NS),
					    &err),
		    &err);
	assert_int_equal(far_fd, -1);
	assert_refused(connect_to(&second, &far_fd, &err), &err, STASIS_REFUSED, "connect to");
	assert_int_equal(err.os_errno, ENOENT);
}

static void dead_paths_are_taken_over(void **state)
{
	CLEANUP(wire_listener) struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener later = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener dead = STASIS_WIRE_LISTENER_EMPTY;

	(void)state;
	listen_at(&alice, &first, &dead);
	stasis_wire_peer_forget(&dead);
	assert_int_equal(path_mode(dead.path), S_IFSOCK | 0600);
	listen_at(&alice, &first, &listener);
	assert_string_equal(listener.path, dead.path);
	stasis_wire_peer_close(&listener);
	assert_int_equal(path_mode(listener.path), 0);
	/* A listener whose path was taken from it removes nothing of the one that has it now. */
	listen_at(&alice, &first, &listener);
	assert_int_equal(unlink(listener.path), 0);
	listen_at(&alice, &first, &later);
	stasis_wire_peer_close(&listener);
	assert_int_equal(path_mode(later.path), S_IFSOCK | 0600);
	stasis_wire_peer_close(&later);
	assert_int_equal(path_mode(listener.path), 0);
	stasis_wire_peer_close(&listener);
}

static void other_things_stay(void **state)
{
	struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener dead = STASIS_WIRE_LISTENER_EMPTY;
	char other[64];

	(void)state;
	listen_at(&alice, &first, &listener);
	listen_refused("another process does");
	assert_int_equal(path_mode(listener.path), S_IFSOCK | 0600);
	stasis_wire_peer_close(&listener);
	unit_file_make(AT_FDCWD, listener.path, "mine");
	listen_refused("no socket of ours");
	assert_int_equal(path_mode(listener.path), S_IFREG | 0600);
	assert_int_equal(unlink(listener.path), 0);
	/* A link to a dead socket is not followed. */
	listen_at(&alice, &second, &dead);
	stasis_wire_peer_forget(&dead);
	assert_int_equal(symlink(dead.path, listener.path), 0);
	listen_refused("no socket of ours");
	assert_true(S_ISLNK(path_mode(listener.path)));
	assert_int_equal(unlink(listener.path), 0);
	assert_int_equal(unlink(dead.path), 0);
	(void)snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(path_mode(other), 0);
}

/* As if it had been bound so many seconds ago. */
static void age_set(const char *path, long seconds)
{
	struct timespec times[2];

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
	times[0].tv_sec -= seconds;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void what_the_killed_left_is_swept(void **state)
{
	CLEANUP(wire_listener) struct stasis_wire_listener live = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener dead = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener fresh = STASIS_WIRE_LISTENER_EMPTY;
	char other[64];

	(void)state;
	listen_at(&alice, &first, &live);
	listen_at(&alice, &second, &dead);
	listen_at(&bob, &first, &fresh);
	stasis_wire_peer_forget(&dead);
	stasis_wire_peer_forget(&fresh);
	(void)snprintf(other, sizeof(other), "%s/other", folder);
	unit_file_make(AT_FDCWD, other, "mine");
	age_set(live.path, 100);
	age_set(dead.path, 100);
	age_set(other, 100);
	stasis_wire_peer_sweep(folder);
	assert_int_equal(path_mode(dead.path), 0);
	assert_int_equal(path_mode(live.path), S_IFSOCK | 0600);
	/* It may be about to listen. */
	assert_int_equal(path_mode(fresh.path), S_IFSOCK | 0600);
	assert_int_equal(path_mode(other), S_IFREG | 0600);
	assert_int_equal(unlink(other), 0);
	stasis_wire_peer_sweep("/nowhere/at/all");
}

static void full_queues_are_alive(void **state)
{
	CLEANUP(wire_listener) struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	int fds[256];
	size_t count = 0;

	(void)state;
	listen_at(&alice, &first, &listener);
	while (count < ARRAY_COUNT(fds) && connect_to(&first, &fds[count], &err) == 0)
		count++;
	assert_in_range(count, 1, ARRAY_COUNT(fds) - 1);
	assert_refused(-1, &err, STASIS_REFUSED, "wait for a place in the queue");
	listen_refused("another process does");
	while (count > 0)
		(void)close(fds[--count]);
}

static void shortage_is_outlived(void **state)
{
	CLEANUP(wire_listener) struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int near_fd = -1;
	CLEANUP(fd) int far_fd = -1;
	struct rlimit old;
	struct rlimit low;

	(void)state;
	listen_at(&alice, &first, &listener);
	assert_done(connect_to(&first, &near_fd, &err), &err);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)near_fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_done(stasis_wire_peer_accept(&listener, &far_fd, stasis_deadline_after_ns(SOON_NS),
					    &err),
		    &err);
	assert_int_equal(far_fd, -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_done(stasis_wire_peer_accept(&listener, &far_fd, stasis_deadline_after_ns(LONG_NS),
					    &err),
		    &err);
	assert_true(far_fd >= 0);
}

/* In the child, as a user who is nobody to us. */
static void stranger_connect(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_storage storage = {.ss_family = AF_UNIX};
	char letter;

	memcpy((char *)&storage + 2, path, strlen(path) + 1);
	if (setresuid(65534, 65534, 65534) != 0 ||
	    connect(fd, (const struct sockaddr *)&storage, 2 + 108) != 0)
		_exit(1);
	/* Waits until it is turned away. */
	_exit(recv(fd, &letter, 1, 0) == 0 ? 0 : 2);
}

static void strangers_are_turned_away(void **state)
{
	CLEANUP(wire_listener) struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	int status = -1;
	int fd = -7;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	listen_at(&alice, &first, &listener);
	/* Doors that we would never open. */
	assert_int_equal(chmod(folder, 0711), 0);
	assert_int_equal(chmod(listener.path, 0666), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		stranger_connect(listener.path);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		assert_done(stasis_wire_peer_accept(&listener, &fd,
						    stasis_deadline_after_ns(SOON_NS), &err),
			    &err);
		assert_int_equal(fd, -1);
	}
	assert_int_equal(status, 0);
}

static void one_incarnation_is_found(void **state)
{
	struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener later = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_wire_listener other = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id found = {{0}};
	char plain[64];

	(void)state;
	(void)snprintf(plain, sizeof(plain), "%s/journal", folder);
	unit_file_make(AT_FDCWD, plain, "x");
	assert_refused(stasis_wire_peer_find(folder, &alice, &found, &err), &err, STASIS_REFUSED,
		       ": 0 live sockets");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	listen_at(&alice, &first, &listener);
	listen_at(&bob, &second, &other);
	assert_done(stasis_wire_peer_find(folder, &alice, &found, &err), &err);
	assert_true(stasis_id_equal(&found, &first));
	listen_at(&alice, &second, &later);
	assert_refused(stasis_wire_peer_find(folder, &alice, &found, &err), &err, STASIS_REFUSED,
		       ": 2 live sockets");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	stasis_wire_peer_forget(&listener);
	assert_done(stasis_wire_peer_find(folder, &alice, &found, &err), &err);
	assert_true(stasis_id_equal(&found, &second));
	stasis_wire_peer_close(&later);
	stasis_wire_peer_close(&other);
}

static void directory_chosen(const char *runtime, const char *xdg, const char *wanted)
{
	char path[STASIS_WIRE_SOCKET_PATH_BYTES];
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_wire_directory_choose(runtime, xdg, path, &err), &err);
	assert_string_equal(path, wanted);
}

static void directory_unfit(const char *runtime, const char *xdg, const char *text)
{
	char path[STASIS_WIRE_SOCKET_PATH_BYTES] = "unchanged";
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_refused(stasis_wire_directory_choose(runtime, xdg, path, &err), &err, STASIS_USAGE,
		       text);
	assert_string_equal(path, "unchanged");
}

static void long_paths_are_refused_first(void **state)
{
	struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	char path[5000];
	int fd = -7;

	(void)state;
	directory_chosen("/a", "/b", "/a");
	directory_chosen("", "/b", "/b/stasis");
	(void)snprintf(path, sizeof(path), "/run/stasis-%u", (unsigned int)geteuid());
	directory_chosen(NULL, NULL, path);
	directory_unfit("run", NULL, "not absolute");
	memset(path, 'd', sizeof(path));
	path[0] = '/';
	path[DIRECTORY_LENGTH_MAX] = '\0';
	directory_chosen(path, NULL, path);
	path[DIRECTORY_LENGTH_MAX] = 'd';
	path[DIRECTORY_LENGTH_MAX + 1] = '\0';
	directory_unfit(path, NULL, "leave room for 41");
	assert_refused(stasis_wire_directory_open(path, &fd, &err), &err, STASIS_USAGE, "room for");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_wire_peer_listen(path, &alice, &first, &listener, &err), &err,
		       STASIS_USAGE, "room for");
	assert_int_equal(path_mode(path), 0);
	path[DIRECTORY_LENGTH_MAX + 1] = 'd';
	path[sizeof(path) - 1] = '\0';
	directory_unfit(path, NULL, "4999 bytes");
}

static void directory_refused(const char *path, const char *text)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	int fd = -7;

	assert_refused(stasis_wire_directory_open(path, &fd, &err), &err, STASIS_REFUSED, text);
	assert_int_equal(fd, -7);
}

static void folders_are_ours_alone(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int fd = -1;
	char path[40];
	mode_t old;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/d", folder);
	old = umask(0777);
	assert_done(stasis_wire_directory_open(path, &fd, &err), &err);
	(void)umask(old);
	assert_int_equal(path_mode(path), S_IFDIR | 0700);
	assert_int_equal(chmod(path, 0750), 0);
	directory_refused(path, "mode 0750");
	assert_int_equal(chmod(path, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		directory_refused(path, "owner 65534");
	}
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink(folder, path), 0);
	directory_refused(path, "open runtime folder");
	assert_int_equal(unlink(path), 0);
	unit_file_make(AT_FDCWD, path, "x");
	directory_refused(path, "open runtime folder");
	directory_refused("/proc/nowhere", "make runtime folder");
}

static void only_our_names_are_read(void **state)
{
	static const char right[] =
		"a1000000000000000000000000000000.01000000000000000000000000000000";
	struct stasis_id participant;
	struct stasis_id incarnation;
	char wrong[80];

	(void)state;
	assert_true(stasis_wire_socket_name_parse(right, &participant, &incarnation));
	assert_true(stasis_id_equal(&participant, &alice));
	assert_true(stasis_id_equal(&incarnation, &first));
	for (size_t i = 0; i < sizeof(right) - 1; i++) {
		memcpy(wrong, right, sizeof(right));
		wrong[i] = 'X';
		assert_false(stasis_wire_socket_name_parse(wrong, &participant, &incarnation));
		wrong[i] = '\0';
		assert_false(stasis_wire_socket_name_parse(wrong, &participant, &incarnation));
	}
	(void)snprintf(wrong, sizeof(wrong), "%s0", right);
	assert_false(stasis_wire_socket_name_parse(wrong, &participant, &incarnation));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(peers_meet),
		IN_FOLDER(dead_paths_are_taken_over),
		IN_FOLDER(other_things_stay),
		IN_FOLDER(what_the_killed_left_is_swept),
		IN_FOLDER(full_queues_are_alive),
		IN_FOLDER(shortage_is_outlived),
		IN_FOLDER(strangers_are_turned_away),
		IN_FOLDER(one_incarnation_is_found),
		cmocka_unit_test(long_paths_are_refused_first),
		IN_FOLDER(folders_are_ours_alone),
		cmocka_unit_test(only_our_names_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
