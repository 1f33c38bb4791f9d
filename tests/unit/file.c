/*
 * Description: whole reads and writes, files that appear whole or not at all, and the refusal of
 * everything that is not a regular file.
 */

#include "unit.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"

static void reads_and_writes_are_whole(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	CLEANUP(fd) int fd = -1;
	char back[8] = {0};

	(void)state;
	fd = openat(dir, "data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(stasis_pwrite_all(fd, "abcdef", 6, 2, NULL), 0);
	assert_int_equal(stasis_pread_all(fd, back, 8, 0, NULL), 0);
	assert_memory_equal(back, "\0\0abcdef", 8);
	assert_int_equal(stasis_pread_all(fd, back, 8, 1, NULL), ENODATA);
	assert_int_equal(stasis_pread_all(fd, back, 0, 100, NULL), 0);
	assert_int_equal(stasis_pread_all(-1, back, 1, 0, NULL), EBADF);
	assert_int_equal(stasis_pwrite_all(-1, back, 1, 0, NULL), EBADF);
}

static void pipes_are_read_whole(void **state)
{
	int ends[2];
	char back[6];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(stasis_write_all(ends[1], "abc", 3), 0);
	assert_int_equal(stasis_write_all(ends[1], "def", 3), 0);
	assert_int_equal(stasis_read_all(ends[0], back, 6), 0);
	assert_memory_equal(back, "abcdef", 6);
	assert_int_equal(close(ends[1]), 0);
	assert_int_equal(stasis_read_all(ends[0], back, 1), ENODATA);
	assert_int_equal(close(ends[0]), 0);
}

static void only_regular_files_are_opened(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	CLEANUP(fd) int fd = -1;
	struct stasis_error link = STASIS_ERROR_INIT;
	struct stasis_error fifo = STASIS_ERROR_INIT;
	struct stasis_error folder = STASIS_ERROR_INIT;
	struct stasis_error missing = STASIS_ERROR_INIT;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t bytes = 0;

	(void)state;
	unit_file_make(dir, "file", "12345");
	assert_int_equal(symlinkat("file", dir, "link"), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(mkdirat(dir, "folder", 0700), 0);
	assert_refused(stasis_file_open_regular(dir, "link", STASIS_BAD_IMAGE, &fd, &bytes, &link),
		       &link, STASIS_BAD_IMAGE, "'link': it is a symbolic link");
	assert_refused(stasis_file_open_regular(dir, "fifo", STASIS_BAD_IMAGE, &fd, &bytes, &fifo),
		       &fifo, STASIS_BAD_IMAGE, "'fifo': it is not a regular file");
	assert_refused(
		stasis_file_open_regular(dir, "folder", STASIS_REFUSED, &fd, &bytes, &folder),
		&folder, STASIS_REFUSED, "'folder': it is not a regular file");
	assert_refused(
		stasis_file_open_regular(dir, "none", STASIS_BAD_IMAGE, &fd, &bytes, &missing),
		&missing, STASIS_BAD_IMAGE, "'none': No such file");
	assert_int_equal(fd, -1);
	assert_done(stasis_file_open_regular(dir, "file", STASIS_BAD_IMAGE, &fd, &bytes, &err),
		    &err);
	assert_true(bytes == 5);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

static void whole_files_are_read_up_to_a_limit(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	CLEANUP(free) char *text = NULL;
	CLEANUP(free) char *empty = NULL;
	struct stasis_error too_long = STASIS_ERROR_INIT;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;

	(void)state;
	unit_file_make(dir, "file", "12345");
	unit_file_make(dir, "empty", "");
	assert_refused(stasis_file_read(dir, "file", 4, STASIS_BAD_IMAGE, &text, &bytes, &too_long),
		       &too_long, STASIS_BAD_IMAGE, "5 bytes are more than the 4 allowed");
	assert_null(text);
	assert_done(stasis_file_read(dir, "file", 5, STASIS_BAD_IMAGE, &text, &bytes, &err), &err);
	assert_int_equal(bytes, 5);
	assert_string_equal(text, "12345");
	assert_done(stasis_file_read(dir, "empty", 5, STASIS_BAD_IMAGE, &empty, &bytes, &err),
		    &err);
	assert_int_equal(bytes, 0);
	assert_string_equal(empty, "");
}

static void written_files_replace_and_are_private(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	mode_t old_mask = umask(0);
	size_t bytes = 0;
	struct stat info;

	(void)state;
	unit_file_make(dir, "file", "old and longer");
	assert_done(stasis_file_write_whole(dir, "file", "new", 3, &err), &err);
	(void)umask(old_mask);
	assert_done(stasis_file_read(dir, "file", 64, STASIS_REFUSED, &text, &bytes, &err), &err);
	assert_string_equal(text, "new");
	assert_int_equal(fstatat(dir, "file", &info, 0), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
}

static void names_that_cannot_be_written_are_refused(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	struct stasis_error too_long = STASIS_ERROR_INIT;
	struct stasis_error folder = STASIS_ERROR_INIT;
	char name[300];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_refused(stasis_file_write_whole(dir, name, "x", 1, &too_long), &too_long,
		       STASIS_REFUSED, "File name too long");
	assert_int_equal(mkdirat(dir, "folder", 0700), 0);
	assert_refused(stasis_file_write_whole(dir, "folder", "x", 1, &folder), &folder,
		       STASIS_REFUSED, "'folder'");
	assert_int_equal(unlinkat(dir, "folder", AT_REMOVEDIR), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_writes_are_whole),
		cmocka_unit_test(pipes_are_read_whole),
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(whole_files_are_read_up_to_a_limit),
		cmocka_unit_test(written_files_replace_and_are_private),
		cmocka_unit_test(names_that_cannot_be_written_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
