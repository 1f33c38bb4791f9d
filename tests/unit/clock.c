/*
 * Description: deadlines never wrap, never come too early, and poll(2) gets a timeout that it can use.
 */

#include "unit.h"

#include <limits.h>

#include "base/clock.h"

static void time_does_not_run_back(void **state)
{
	uint64_t before = stasis_clock_now_ns();

	(void)state;
	assert_true(stasis_clock_now_ns() >= before);
}

static void far_deadlines_are_none(void **state)
{
	(void)state;
	assert_true(stasis_deadline_after_ns(UINT64_MAX) == STASIS_NO_DEADLINE);
	assert_false(stasis_deadline_passed(STASIS_NO_DEADLINE));
	assert_int_equal(stasis_deadline_poll_ms(STASIS_NO_DEADLINE), -1);
}

static void deadlines_pass(void **state)
{
	uint64_t now = stasis_clock_now_ns();

	(void)state;
	assert_true(stasis_deadline_passed(now));
	assert_int_equal(stasis_deadline_poll_ms(now), 0);
	assert_false(stasis_deadline_passed(stasis_deadline_after_ns(STASIS_NS_PER_S * 1000)));
}

static void poll_never_gets_zero_too_early(void **state)
{
	uint64_t far = stasis_deadline_after_ns(STASIS_NS_PER_S * 1000);
	int left_ms = stasis_deadline_poll_ms(far);

	(void)state;
	assert_true(left_ms > 0 && left_ms <= 1000 * 1000);
	assert_int_equal(stasis_deadline_poll_ms(STASIS_NO_DEADLINE - 1), INT_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_does_not_run_back),
		cmocka_unit_test(far_deadlines_are_none),
		cmocka_unit_test(deadlines_pass),
		cmocka_unit_test(poll_never_gets_zero_too_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
