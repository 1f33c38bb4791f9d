#ifndef STASIS_TESTS_UNIT_H
#define STASIS_TESTS_UNIT_H

/*
 * What every unit test includes: cmocka with the headers that it wants before it, and a few helpers for
 * errors and temporary folders. Unit tests check pure code; no test here needs a driver.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* The call failed, with this status, and its text names what it should. */
#define assert_refused(result, error, wanted_status, wanted_text)                                  \
	do {                                                                                       \
		assert_int_equal((result), -1);                                                    \
		assert_int_equal((error)->status, (wanted_status));                                \
		assert_non_null(strstr((error)->text, (wanted_text)));                             \
	} while (0)

/* The call worked and left the error empty; where not, its text is shown. */
#define assert_done(result, error) unit_done(__FILE__, __LINE__, (result), (error))

static inline void unit_done(const char *file, int line, int result,
			     const struct stasis_error *error)
{
	if (result == 0 && error->status == STASIS_OK)
		return;
	print_error("%s\n", error->text);
	_fail(file, line);
}

/* A descriptor of a new folder below TMPDIR; the test runner removes it. */
static inline int unit_folder_make(void)
{
	const char *parent = secure_getenv("TMPDIR");
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/unit-XXXXXX", parent ? parent : "/tmp");
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline void unit_file_make(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
}

#endif
