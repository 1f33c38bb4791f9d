/*
 * Description: an error is filled once, keeps errno, never overflows its text, and its status only
 * gets worse.
 */

#include "unit.h"

#include <errno.h>

static void first_cause_wins(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_false(stasis_error_is_set(&err));
	assert_int_equal(stasis_fail(&err, STASIS_REFUSED, "first %d", 1), -1);
	assert_int_equal(stasis_fail(&err, STASIS_LOST, "second"), -1);
	assert_true(stasis_error_is_set(&err));
	assert_int_equal(err.status, STASIS_REFUSED);
	assert_string_equal(err.text, "first 1");
}

static void errno_is_kept_and_explained(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	errno = ENOENT;
	assert_int_equal(stasis_fail_errno(&err, STASIS_REFUSED, "open '%s'", "x"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(err.os_errno, ENOENT);
	assert_int_equal(err.cuda_result, 0);
	assert_string_equal(err.text, "open 'x': No such file or directory");
}

static void returned_codes_are_explained(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	errno = 0;
	assert_int_equal(stasis_fail_code(&err, STASIS_SUSPENDED, ENOSPC, "write"), -1);
	assert_int_equal(errno, 0);
	assert_int_equal(err.os_errno, ENOSPC);
	assert_string_equal(err.text, "write: No space left on device");
}

static void context_and_advice_surround_the_cause(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	stasis_error_context(&err, "nothing to add to");
	stasis_error_append(&err, "nothing to add to");
	assert_false(stasis_error_is_set(&err));
	(void)stasis_fail(&err, STASIS_BAD_IMAGE, "cause");
	stasis_error_context(&err, "restore image '%s'", "dir");
	stasis_error_append(&err, "; the target %s", "runs as before");
	assert_string_equal(err.text, "restore image 'dir': cause; the target runs as before");
}

static void long_texts_are_cut_not_overrun(void **state)
{
	struct {
		struct stasis_error err;
		char guard[16];
	} box = {.err = STASIS_ERROR_INIT, .guard = "guard"};
	char big[STASIS_ERROR_TEXT_BYTES * 2];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	errno = EIO;
	(void)stasis_fail_errno(&box.err, STASIS_REFUSED, "%s", big);
	stasis_error_context(&box.err, "%s", big);
	stasis_error_append(&box.err, "%s", big);
	assert_int_equal(strlen(box.err.text), STASIS_ERROR_TEXT_BYTES - 1);
	assert_string_equal(box.guard, "guard");
}

static void status_only_gets_worse(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	stasis_error_worsen(&err, STASIS_LOST);
	assert_int_equal(err.status, STASIS_OK);
	(void)stasis_fail(&err, STASIS_SUSPENDED, "cause");
	stasis_error_worsen(&err, STASIS_REFUSED);
	assert_int_equal(err.status, STASIS_SUSPENDED);
	stasis_error_worsen(&err, STASIS_LOST);
	assert_int_equal(err.status, STASIS_LOST);
}

static void taking_over_respects_the_first(void **state)
{
	struct stasis_error first = STASIS_ERROR_INIT;
	struct stasis_error second = STASIS_ERROR_INIT;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	(void)stasis_fail(&first, STASIS_REFUSED, "first");
	(void)stasis_fail(&second, STASIS_LOST, "second");
	stasis_error_take(&err, &first);
	stasis_error_take(&err, &second);
	assert_string_equal(err.text, "first");
	assert_int_equal(err.status, STASIS_REFUSED);
}

static void no_error_wanted_is_fine(void **state)
{
	(void)state;
	assert_int_equal(stasis_fail(NULL, STASIS_REFUSED, "unseen"), -1);
	assert_int_equal(stasis_fail_errno(NULL, STASIS_REFUSED, "unseen"), -1);
	stasis_error_context(NULL, "unseen");
	stasis_error_append(NULL, "unseen");
	stasis_error_worsen(NULL, STASIS_LOST);
	assert_false(stasis_error_is_set(NULL));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_cause_wins),
		cmocka_unit_test(errno_is_kept_and_explained),
		cmocka_unit_test(returned_codes_are_explained),
		cmocka_unit_test(context_and_advice_surround_the_cause),
		cmocka_unit_test(long_texts_are_cut_not_overrun),
		cmocka_unit_test(status_only_gets_worse),
		cmocka_unit_test(taking_over_respects_the_first),
		cmocka_unit_test(no_error_wanted_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
