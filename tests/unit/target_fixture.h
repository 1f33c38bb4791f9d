#ifndef STASIS_TESTS_TARGET_FIXTURE_H
#define STASIS_TESTS_TARGET_FIXTURE_H

/*
 * The stage of the checkpoint tests: a fake driver with two GPUs, and a living child as its target.
 */

#include "unit.h"

#include "checkpoint/checkpoint.h"
#include "fake_driver.h"

#define FIXTURE_GPUS 2

static struct stasis_driver driver;
static struct stasis_target target;

static int fixture_setup(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake_reset(FIXTURE_GPUS, &driver);
	(void)fake_target_start();
	assert_done(stasis_target_open(&driver, fake.pid, &target, &err), &err);
	return 0;
}

static int fixture_teardown(void **state)
{
	(void)state;
	assert_false(fake.has_dirty_args);
	assert_int_equal(fake.pushed, 0);
	stasis_target_close(&target);
	fake_target_end(fake.pid);
	return 0;
}

#define FIXTURE_TEST(function)                                                                     \
	cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

#endif
