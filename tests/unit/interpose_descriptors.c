/*
 * Description: our descriptors in somebody else's process: what was closed and taken by another file is not ours
 * any more and stays open; a forked child closes what is ours and nothing else.
 */

#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/compiler.h"
#include "interpose/descriptors.h"
#include "interpose/identity.h"

static int file_make(void)
{
	int fd = memfd_create("ours", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void ours_until_it_is_replaced(void **state)
{
	int fd = file_make();
	int other = file_make();
	int number = fd;

	(void)state;
	assert_false(stasis_descriptors_is_ours(fd));
	assert_true(stasis_descriptors_add(fd));
	assert_true(stasis_descriptors_is_ours(fd));
	/* The program puts a file of its own there. */
	assert_int_equal(dup2(other, fd), fd);
	assert_false(stasis_descriptors_is_ours(fd));
	stasis_descriptors_close(&fd);
	assert_int_equal(fd, -1);
	assert_true(is_open(number));
	(void)close(number);
	(void)close(other);
}

static void closed_and_given_away(void **state)
{
	int fd = file_make();
	int number = fd;
	int none = -1;

	(void)state;
	assert_true(stasis_descriptors_add(fd));
	stasis_descriptors_close(&fd);
	assert_false(is_open(number));
	errno = ENOTTY;
	assert_true(stasis_descriptors_add(-1));
	assert_false(stasis_descriptors_is_ours(-1));
	stasis_descriptors_close(&none);
	fd = file_make();
	assert_true(stasis_descriptors_add(fd));
	assert_int_equal(stasis_descriptors_remove(fd), fd);
	assert_false(stasis_descriptors_is_ours(fd));
	assert_int_equal(errno, ENOTTY);
	(void)close(fd);
}

/* High numbers, too, which lie in a chunk of their own. */
static void a_forked_child_closes_ours_alone(void **state)
{
	int ours = file_make();
	int high = fcntl(ours, F_DUPFD_CLOEXEC, 900);
	int theirs = file_make();
	int replaced = file_make();
	int status = 0;
	pid_t child;

	(void)state;
	assert_true(high >= 900);
	assert_true(stasis_descriptors_add(ours));
	assert_true(stasis_descriptors_add(high));
	assert_true(stasis_descriptors_add(replaced));
	assert_int_equal(dup2(theirs, replaced), replaced);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		stasis_descriptors_forked();
		_exit(is_open(ours) || is_open(high) || !is_open(theirs) || !is_open(replaced) ||
		      stasis_descriptors_is_ours(ours));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(is_open(ours) && is_open(high));
}

static void one_identity_a_process(void **state)
{
	const struct stasis_identity *identity = stasis_identity_get();

	(void)state;
	assert_non_null(identity);
	assert_ptr_equal(identity, stasis_identity_get());
	assert_int_equal(strlen(stasis_identity_build()), 40);
	assert_int_equal(strspn(stasis_identity_build(), "0123456789abcdef"), 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours_until_it_is_replaced),
		cmocka_unit_test(closed_and_given_away),
		cmocka_unit_test(a_forked_child_closes_ours_alone),
		cmocka_unit_test(one_identity_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
