/*
 * Description: fault points fail as the plan says, at the passage it names and nowhere else; files are
 * left whole or absent whichever system call fails; a plan that cannot be read ends the process.
 *
 * A process reads its plan once, so every case runs in a child of its own; this process itself passes
 * no fault point.
 */

#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"

/* 0: all as it should be; else the line where it was not. */
typedef int child_function(int dir_fd);

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__;                                                           \
	} while (0)

/* Runs `body` in a child under this plan; returns the child's wait status. */
static int planned_run(const char *plan, const char *log, child_function *body, int dir_fd)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int line;

		(void)setenv("STASIS_FAULT", plan, 1);
		if (log)
			(void)setenv("STASIS_FAULT_LOG", log, 1);
		line = body(dir_fd);
		if (line)
			(void)dprintf(STDERR_FILENO, "plan '%s': line %d does not hold\n", plan,
				      line);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

#define assert_holds(plan, body, dir_fd) assert_int_equal(planned_run(plan, NULL, body, dir_fd), 0)

static int second_passage_fails(int dir_fd)
{
	(void)dir_fd;
	EXPECT(stasis_fault_point("here") == 0);
	EXPECT(stasis_fault_point("elsewhere") == 0);
	EXPECT(stasis_fault_point("here") == ENOSPC);
	EXPECT(stasis_fault_point("here") == 0);
	return 0;
}

static int every_passage_fails(int dir_fd)
{
	(void)dir_fd;
	for (int i = 0; i < 3; i++)
		EXPECT(stasis_fault_point("here") == EIO);
	return 0;
}

static int range_fails(int dir_fd)
{
	(void)dir_fd;
	EXPECT(stasis_fault_point("here") == 0);
	EXPECT(stasis_fault_point("here") == EIO);
	EXPECT(stasis_fault_point("here") == EIO);
	EXPECT(stasis_fault_point("here") == 0);
	return 0;
}

static int nothing_fails(int dir_fd)
{
	(void)dir_fd;
	EXPECT(stasis_fault_point("here") == 0);
	return 0;
}

static int both_fail(int dir_fd)
{
	(void)dir_fd;
	EXPECT(stasis_fault_point("here") == EMFILE);
	EXPECT(stasis_fault_point("there") == 0);
	EXPECT(stasis_fault_point("there") == ENOMEM);
	return 0;
}

static void plan_is_followed(void **state)
{
	(void)state;
	assert_holds("here:2=ENOSPC", second_passage_fails, -1);
	assert_holds("here:*=EIO", every_passage_fails, -1);
	assert_holds("here:2-3=EIO", range_fails, -1);
	assert_holds("here=EMFILE,there:2=ENOMEM", both_fail, -1);
	assert_holds("other=EIO", nothing_fails, -1);
	assert_holds("", nothing_fails, -1);
}

static int io_is_shortened(int dir_fd)
{
	size_t bytes = 10;
	size_t one = 1;

	(void)dir_fd;
	EXPECT(stasis_fault_point_io("here", &bytes) == 0);
	EXPECT(bytes == 5);
	EXPECT(stasis_fault_point_io("here", &one) == 0);
	EXPECT(one == 1);
	return 0;
}

static void short_moves_at_least_a_byte(void **state)
{
	(void)state;
	assert_holds("here:*=short", io_is_shortened, -1);
}

static int here_ends_us(int dir_fd)
{
	(void)dir_fd;
	(void)stasis_fault_point("here");
	return __LINE__;
}

static void kill_is_sigkill(void **state)
{
	int status = planned_run("here=kill", NULL, here_ends_us, -1);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void hang_hangs(void **state)
{
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		/* The alarm is what ends a hang; whoever returns has not hung. */
		(void)setenv("STASIS_FAULT", "here=hang", 1);
		(void)alarm(1);
		(void)stasis_fault_point("here");
		_exit(0);
	}
	{
		int status = 0;

		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGALRM);
	}
}

static void wrong_plans_end_the_process(void **state)
{
	static const char *const wrong[] = {
		"here",       "here=",        "here=NONSENSE", "=EIO=",
		"here:0=EIO", "here:=EIO",    "here:x=EIO",    "here:1x=EIO",
		":1=EIO",     "here:3-2=EIO", "here:0-2=EIO",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
		int status = planned_run(wrong[i], NULL, nothing_fails, -1);

		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) != STASIS_INTERNAL)
			fail_msg("plan '%s' was taken", wrong[i]);
	}
}

static void reached_faults_are_logged(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;
	char path[64];

	(void)state;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d/log", (int)getpid(), dir);
	assert_int_equal(planned_run("here:2=ENOSPC,never=EIO", path, second_passage_fails, -1), 0);
	assert_done(stasis_file_read(dir, "log", 256, STASIS_REFUSED, &text, &bytes, &err), &err);
	assert_string_equal(text, "here:2=ENOSPC\n");
}

static int storms_are_survived(int dir_fd)
{
	CLEANUP(fd) int fd = openat(dir_fd, "data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char back[6] = "";

	EXPECT(stasis_pwrite_all(fd, "abcdef", 6, 0, "move") == 0);
	EXPECT(stasis_pread_all(fd, back, 6, 0, "move") == 0);
	EXPECT(memcmp(back, "abcdef", 6) == 0);
	return 0;
}

static int second_piece_fails(int dir_fd)
{
	CLEANUP(fd) int fd = openat(dir_fd, "data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	EXPECT(stasis_pwrite_all(fd, "abcdef", 6, 0, "move") == ENOSPC);
	return 0;
}

static void interrupted_and_short_moves_go_on(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();

	(void)state;
	assert_holds("move:1=EINTR,move:2=EINTR,move:5=EINTR", storms_are_survived, dir);
	assert_holds("move:*=short", storms_are_survived, dir);
	assert_holds("move:1=short,move:2=ENOSPC", second_piece_fails, dir);
}

/* The file holds its old text, and nothing else lies in the folder. */
static int write_fails_cleanly(int dir_fd)
{
	CLEANUP(dir) DIR *stream = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct dirent *entry;
	char back[4] = "";
	int fd;

	EXPECT(stasis_file_write_whole(dir_fd, "file", "new", 3, &err) == -1);
	EXPECT(err.status == STASIS_REFUSED && err.os_errno != 0);
	EXPECT(strstr(err.text, "'file'"));
	fd = openat(dir_fd, "file", O_RDONLY | O_CLOEXEC);
	EXPECT(read(fd, back, 3) == 3 && memcmp(back, "old", 3) == 0);
	(void)close(fd);
	stream = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	EXPECT(stream);
	entry = stasis_dir_next(stream);
	EXPECT(entry && strcmp(entry->d_name, "file") == 0);
	EXPECT(!stasis_dir_next(stream));
	return 0;
}

static void failed_writes_leave_the_old_file(void **state)
{
	static const char *const plans[] = {"file_write=ENOSPC", "file_write=EIO", "file_sync=EIO",
					    "file_rename=EACCES"};
	CLEANUP(fd) int dir = unit_folder_make();

	(void)state;
	unit_file_make(dir, "file", "old");
	for (size_t i = 0; i < ARRAY_COUNT(plans); i++)
		assert_holds(plans[i], write_fails_cleanly, dir);
}

static int unsynced_write_is_reported(int dir_fd)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(stasis_file_write_whole(dir_fd, "file", "new", 3, &err) == -1);
	EXPECT(err.os_errno == EIO && strstr(err.text, "fsync"));
	return 0;
}

static int refused_rename_keeps_the_source(int dir_fd)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	EXPECT(stasis_dir_rename_exclusive(dir_fd, "source", dir_fd, "final", &err) == -1);
	EXPECT(err.os_errno == EIO);
	EXPECT(faccessat(dir_fd, "source", F_OK, 0) == 0);
	EXPECT(faccessat(dir_fd, "final", F_OK, 0) != 0);
	return 0;
}

static void failing_directories_are_reported(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();

	(void)state;
	assert_holds("dir_sync=EIO", unsynced_write_is_reported, dir);
	unit_file_make(dir, "source", "");
	assert_holds("dir_rename=EIO", refused_rename_keeps_the_source, dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_is_followed),
		cmocka_unit_test(short_moves_at_least_a_byte),
		cmocka_unit_test(kill_is_sigkill),
		cmocka_unit_test(hang_hangs),
		cmocka_unit_test(wrong_plans_end_the_process),
		cmocka_unit_test(interrupted_and_short_moves_go_on),
		cmocka_unit_test(failed_writes_leave_the_old_file),
		cmocka_unit_test(failing_directories_are_reported),
		/* last: reads the log, and so passes a fault point in this process */
		cmocka_unit_test(reached_faults_are_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
