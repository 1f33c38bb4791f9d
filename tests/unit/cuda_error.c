/*
 * Description: an error from the driver carries its result's name and number, and the first cause wins.
 */

#include "unit.h"

#include <errno.h>

#include "driver/cuda_error.h"

static void results_have_their_names(void **state)
{
	(void)state;
	assert_string_equal(stasis_cuda_result_name(CUDA_SUCCESS), "CUDA_SUCCESS");
	assert_string_equal(stasis_cuda_result_name(CUDA_ERROR_INVALID_VALUE),
			    "CUDA_ERROR_INVALID_VALUE");
	assert_string_equal(stasis_cuda_result_name(CUDA_ERROR_NOT_READY), "CUDA_ERROR_NOT_READY");
	assert_string_equal(stasis_cuda_result_name(CUDA_ERROR_UNKNOWN), "CUDA_ERROR_UNKNOWN");
	assert_null(stasis_cuda_result_name((CUresult)12345));
	assert_null(stasis_cuda_result_name((CUresult)-1));
}

static void text_ends_in_the_result(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error odd = STASIS_ERROR_INIT;

	(void)state;
	errno = EXDEV;
	assert_int_equal(
		stasis_fail_cuda(&err, STASIS_LOST, CUDA_ERROR_NOT_READY, "lock process %d", 7),
		-1);
	assert_int_equal(errno, EXDEV);
	assert_string_equal(err.text, "lock process 7: CUDA_ERROR_NOT_READY (600)");
	assert_int_equal(err.status, STASIS_LOST);
	assert_int_equal(err.cuda_result, 600);
	assert_int_equal(err.os_errno, 0);
	(void)stasis_fail_cuda(&odd, STASIS_REFUSED, (CUresult)12345, "x%%");
	assert_string_equal(odd.text, "x%: unknown CUDA result (12345)");
}

static void first_cause_wins(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	(void)stasis_fail(&err, STASIS_REFUSED, "first");
	(void)stasis_fail_cuda(&err, STASIS_LOST, CUDA_ERROR_UNKNOWN, "second");
	assert_string_equal(err.text, "first");
	assert_int_equal(err.cuda_result, 0);
	assert_int_equal(err.status, STASIS_REFUSED);
	assert_int_equal(stasis_fail_cuda(NULL, STASIS_LOST, CUDA_ERROR_UNKNOWN, "nobody"), -1);
}

static void long_text_is_cut(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	char text[2 * STASIS_ERROR_TEXT_BYTES];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)stasis_fail_cuda(&err, STASIS_LOST, CUDA_ERROR_UNKNOWN, "%s", text);
	assert_int_equal(strlen(err.text), STASIS_ERROR_TEXT_BYTES - 1);
	assert_int_equal(err.cuda_result, 999);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_have_their_names),
		cmocka_unit_test(text_ends_in_the_result),
		cmocka_unit_test(first_cause_wins),
		cmocka_unit_test(long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
