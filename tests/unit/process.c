/*
 * Description: a process is held by pid, start time and pidfd; pid 0, our own pid, a thread id, a dead
 * pid and a zombie are each refused with their own line.
 */

#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/process.h"

/* A child that waits until it is killed, or until we are gone. */
static pid_t child_start(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void child_end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void living_process_is_held(void **state)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	char name[STASIS_PROCESS_NAME_BYTES];
	uint64_t start_ticks = 0;
	pid_t pid = child_start();

	(void)state;
	assert_done(stasis_process_open(pid, &process, &err), &err);
	assert_int_equal(process.pid, pid);
	stasis_process_name(getpid(), name);
	assert_true(strlen(name) > 0 && !strchr(name, '\n'));
	assert_true(stasis_process_start_ticks(pid, &start_ticks));
	assert_true(start_ticks == process.start_ticks);
	assert_true(stasis_process_is_alive(&process));
	child_end(pid);
	assert_false(stasis_process_is_alive(&process));
	assert_false(stasis_process_start_ticks(pid, &start_ticks));
	stasis_process_name(pid, name);
	assert_string_equal(name, "");
}

/* The last thread of a process, for a moment. */
static void *last_thread(void *argument)
{
	(void)argument;
	(void)usleep(200000);
	_exit(0);
}

/* Ends its main thread once it is told, and its last a moment later. */
static pid_t ending_child_start(int *ret_tell_fd)
{
	int ends[2];
	pthread_t thread;
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		if (pthread_create(&thread, NULL, last_thread, NULL) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	(void)close(ends[0]);
	*ret_tell_fd = ends[1];
	return pid;
}

static char state_of(pid_t pid)
{
	char path[64];
	char line[256] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	(void)fclose(file);
	return strrchr(line, ')')[2];
}

static void ending_process_is_not_alive(void **state)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	int tell_fd;
	pid_t pid = ending_child_start(&tell_fd);

	(void)state;
	assert_int_equal(stasis_process_open(pid, &process, NULL), 0);
	assert_true(stasis_process_is_alive(&process));
	(void)close(tell_fd);
	while (state_of(pid) != 'Z')
		(void)usleep(1000);
	assert_false(stasis_process_is_alive(&process));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void numbers_that_are_no_process_are_refused(void **state)
{
	struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error zero = STASIS_ERROR_INIT;
	struct stasis_error negative = STASIS_ERROR_INIT;
	struct stasis_error own = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_process_open(0, &process, &zero), &zero, STASIS_REFUSED,
		       "not a process id");
	assert_refused(stasis_process_open(-7, &process, &negative), &negative, STASIS_REFUSED,
		       "not a process id");
	assert_refused(stasis_process_open(getpid(), &process, &own), &own, STASIS_REFUSED,
		       "itself");
	assert_int_equal(process.pidfd, -1);
}

static void dead_process_is_refused(void **state)
{
	struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	pid_t pid = child_start();

	(void)state;
	child_end(pid);
	assert_refused(stasis_process_open(pid, &process, &err), &err, STASIS_REFUSED,
		       "No such process");
	assert_int_equal(process.pidfd, -1);
}

static void zombie_is_refused(void **state)
{
	struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	siginfo_t info;
	pid_t pid = child_start();

	(void)state;
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* waits for the end and leaves the zombie */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_refused(stasis_process_open(pid, &process, &err), &err, STASIS_REFUSED, "has ended");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct idler {
	int ready[2];
	int end[2];
};

static void *idle(void *argument)
{
	struct idler *idler = argument;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	assert_int_equal(write(idler->ready[1], &tid, sizeof(tid)), sizeof(tid));
	(void)!read(idler->end[0], &byte, 1);
	return NULL;
}

static void thread_is_refused_naming_its_leader(void **state)
{
	struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct idler idler;
	pthread_t thread;
	char leader[32];
	pid_t tid = 0;

	(void)state;
	assert_int_equal(pipe(idler.ready), 0);
	assert_int_equal(pipe(idler.end), 0);
	assert_int_equal(pthread_create(&thread, NULL, idle, &idler), 0);
	assert_int_equal(read(idler.ready[0], &tid, sizeof(tid)), sizeof(tid));
	(void)snprintf(leader, sizeof(leader), "process %d", (int)getpid());
	assert_refused(stasis_process_open(tid, &process, &err), &err, STASIS_REFUSED, leader);
	assert_int_equal(close(idler.end[1]), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void odd_names_do_not_shift_the_fields(void **state)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t start_ticks = 0;
	int ready[2];
	char byte = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, "a) Z 1 (b");
		(void)!write(ready[1], "r", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_done(stasis_process_open(pid, &process, &err), &err);
	assert_true(stasis_process_start_ticks(getpid(), &start_ticks));
	assert_true(process.start_ticks >= start_ticks);
	child_end(pid);
}

static void status_numbers_are_found_by_key(void **state)
{
	uint64_t kib = 0;

	(void)state;
	assert_true(stasis_process_status_kib(getpid(), "RssAnon:", &kib));
	assert_true(kib > 0);
	assert_false(stasis_process_status_kib(getpid(), "NoSuchKey:", &kib));
}

/* A process that holds both ends of a pipe. */
static pid_t holder_start(const int ends[2])
{
	char byte = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ends[1], "r", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	return pid;
}

static void descriptors_can_be_taken(void **state)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct rlimit limit;
	struct rlimit none;
	struct stat theirs;
	struct stat ours;
	int ends[2];
	pid_t pid;
	int fd = -1;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = holder_start(ends);
	assert_done(stasis_process_open(pid, &process, &err), &err);
	assert_done(stasis_process_take_descriptor(&process, ends[0], &fd, &err), &err);
	assert_int_equal(fstat(fd, &theirs), 0);
	assert_int_equal(fstat(ends[0], &ours), 0);
	assert_int_equal(theirs.st_ino, ours.st_ino);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(close(fd), 0);
	/* That it has none is an answer, not a failure. */
	assert_done(stasis_process_take_descriptor(&process, 1000, &fd, &err), &err);
	assert_int_equal(fd, -1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_refused(stasis_process_take_descriptor(&process, ends[0], &fd, &err), &err,
		       STASIS_REFUSED, "this program has none left");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	err = (struct stasis_error)STASIS_ERROR_INIT;
	child_end(pid);
	assert_refused(stasis_process_take_descriptor(&process, ends[0], &fd, &err), &err,
		       STASIS_REFUSED, "take its descriptor");
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(living_process_is_held),
		cmocka_unit_test(ending_process_is_not_alive),
		cmocka_unit_test(numbers_that_are_no_process_are_refused),
		cmocka_unit_test(dead_process_is_refused),
		cmocka_unit_test(zombie_is_refused),
		cmocka_unit_test(thread_is_refused_naming_its_leader),
		cmocka_unit_test(odd_names_do_not_shift_the_fields),
		cmocka_unit_test(status_numbers_are_found_by_key),
		cmocka_unit_test(descriptors_can_be_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
