/*
 * Description: directories are renamed without replacing anything, removed without following symbolic
 * links, and paths are split into a parent and a last name.
 */

#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"

static bool exists(int dir, const char *name)
{
	struct stat info;

	return fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static void rename_replaces_nothing(void **state)
{
	static const char *const taken[] = {"empty", "file", "link"};
	CLEANUP(fd) int dir = unit_folder_make();
	struct stasis_error done = STASIS_ERROR_INIT;

	(void)state;
	assert_int_equal(mkdirat(dir, "new", 0700), 0);
	unit_file_make(dir, "new/data", "x");
	assert_int_equal(mkdirat(dir, "empty", 0700), 0);
	unit_file_make(dir, "file", "x");
	assert_int_equal(symlinkat("nowhere", dir, "link"), 0);
	for (size_t i = 0; i < ARRAY_COUNT(taken); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;

		assert_refused(stasis_dir_rename_exclusive(dir, "new", dir, taken[i], &err), &err,
			       STASIS_REFUSED, taken[i]);
		assert_int_equal(err.os_errno, EEXIST);
		assert_true(exists(dir, "new/data"));
	}
	assert_done(stasis_dir_rename_exclusive(dir, "new", dir, "final", &done), &done);
	assert_true(exists(dir, "final/data"));
	assert_false(exists(dir, "new"));
}

static void missing_source_is_named(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_dir_rename_exclusive(dir, "none", dir, "final", &err), &err,
		       STASIS_REFUSED, "'none'");
	assert_int_equal(err.os_errno, ENOENT);
	assert_false(exists(dir, "final"));
}

static void removal_follows_no_link(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_int_equal(mkdirat(dir, "kept", 0700), 0);
	unit_file_make(dir, "kept/data", "x");
	assert_int_equal(mkdirat(dir, "tree", 0700), 0);
	assert_int_equal(mkdirat(dir, "tree/sub", 0700), 0);
	unit_file_make(dir, "tree/sub/data", "x");
	unit_file_make(dir, "tree/.hidden", "x");
	assert_int_equal(symlinkat("../kept", dir, "tree/link"), 0);
	assert_int_equal(mkfifoat(dir, "tree/fifo", 0600), 0);
	assert_done(stasis_tree_remove(dir, "tree", &err), &err);
	assert_false(exists(dir, "tree"));
	assert_true(exists(dir, "kept/data"));
	assert_done(stasis_tree_remove(dir, "tree", &err), &err);
	assert_int_equal(symlinkat("kept", dir, "link"), 0);
	assert_done(stasis_tree_remove(dir, "link", &err), &err);
	assert_false(exists(dir, "link"));
	assert_true(exists(dir, "kept/data"));
}

static void too_deep_a_tree_is_left(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	struct stasis_error err = STASIS_ERROR_INIT;
	char path[64] = "deep";

	(void)state;
	assert_int_equal(mkdirat(dir, path, 0700), 0);
	for (int depth = 0; depth < 12; depth++) {
		memcpy(path + strlen(path), "/d", 3);
		assert_int_equal(mkdirat(dir, path, 0700), 0);
	}
	assert_refused(stasis_tree_remove(dir, "deep", &err), &err, STASIS_REFUSED, "'deep'");
	assert_true(exists(dir, path));
}

static void entries_are_listed_once(void **state)
{
	CLEANUP(fd) int dir = unit_folder_make();
	CLEANUP(dir) DIR *stream = NULL;
	unsigned int seen = 0;

	(void)state;
	unit_file_make(dir, "a", "");
	unit_file_make(dir, ".b", "");
	stream = fdopendir(dup(dir));
	assert_non_null(stream);
	for (struct dirent *entry = stasis_dir_next(stream); entry;
	     entry = stasis_dir_next(stream)) {
		assert_true(strcmp(entry->d_name, "a") == 0 || strcmp(entry->d_name, ".b") == 0);
		seen++;
	}
	assert_int_equal(errno, 0);
	assert_int_equal(seen, 2);
}

struct path_case {
	const char *path;
	const char *name; /* NULL: refused */
	int os_errno;
};

static void paths_are_split(void **state)
{
	static const struct path_case cases[] = {
		{"name", "name", 0},
		{"./name", "name", 0},
		{"/tmp/name", "name", 0},
		{"/tmp/name///", "name", 0},
		{"/name", "name", 0},
		{"", NULL, ENOENT},
		{"/", NULL, 0},
		{".", NULL, 0},
		{"/tmp/..", NULL, 0},
		{"/tmp/./", NULL, 0},
		{"/nowhere/at/all/name", NULL, ENOENT},
		{"/dev/null/name", NULL, ENOTDIR},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		CLEANUP(fd) int dir = -1;
		struct stasis_error err = STASIS_ERROR_INIT;
		char name[256] = "";
		int result = stasis_path_open_parent(cases[i].path, &dir, name, &err);

		if (cases[i].name) {
			assert_done(result, &err);
			assert_string_equal(name, cases[i].name);
			assert_true(dir >= 0);
			continue;
		}
		assert_refused(result, &err, STASIS_REFUSED, "");
		assert_int_equal(err.os_errno, cases[i].os_errno);
		assert_int_equal(dir, -1);
	}
}

static void long_paths_are_refused(void **state)
{
	struct stasis_error long_name = STASIS_ERROR_INIT;
	struct stasis_error long_path = STASIS_ERROR_INIT;
	char path[PATH_MAX + 64];
	char name[256];
	int dir = -1;

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_refused(stasis_path_open_parent(path, &dir, name, &long_path), &long_path,
		       STASIS_REFUSED, "File name too long");
	path[300] = '\0';
	assert_refused(stasis_path_open_parent(path, &dir, name, &long_name), &long_name,
		       STASIS_REFUSED, "File name too long");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rename_replaces_nothing),
		cmocka_unit_test(missing_source_is_named),
		cmocka_unit_test(removal_follows_no_link),
		cmocka_unit_test(too_deep_a_tree_is_left),
		cmocka_unit_test(entries_are_listed_once),
		cmocka_unit_test(paths_are_split),
		cmocka_unit_test(long_paths_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
