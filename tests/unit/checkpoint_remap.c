/*
 * Description: a remap names every GPU that the process saw, each once, and only GPUs of the same kind that
 * are here; all of that is checked before the driver is asked.
 */

#include "target_fixture.h"

static struct stasis_gpu seen[FIXTURE_GPUS];
static struct stasis_gpu_pair pairs[FIXTURE_GPUS];
static struct stasis_remap remap;

static int setup(void **state)
{
	int result = fixture_setup(state);

	for (int i = 0; i < FIXTURE_GPUS; i++) {
		seen[i] = (struct stasis_gpu){.uuid = fake_uuid(i),
					      .name = "Fake GPU",
					      .capability_major = 9,
					      .total_bytes = (uint64_t)80 << 30};
		pairs[i] = (struct stasis_gpu_pair){fake_uuid(i), fake_uuid(1 - i)};
	}
	remap = (struct stasis_remap){.pairs = pairs, .count = FIXTURE_GPUS};
	return result;
}

static void check_refused(const char *text)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	int result = stasis_remap_check(&driver, &remap, seen, FIXTURE_GPUS, &err);

	if (!strstr(err.text, text))
		print_error("%s\n", err.text);
	assert_refused(result, &err, STASIS_SUSPENDED, text);
}

static void whole_exchange_is_good(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id first = fake_uuid(0);
	struct stasis_id second = fake_uuid(1);
	struct stasis_id other = {{5}};

	(void)state;
	assert_done(stasis_remap_check(&driver, &remap, seen, FIXTURE_GPUS, &err), &err);
	assert_true(stasis_id_equal(stasis_remap_new(&remap, &first), &second));
	assert_true(stasis_id_equal(stasis_remap_new(&remap, &second), &first));
	assert_true(stasis_id_equal(stasis_remap_new(&remap, &other), &other));
	assert_true(stasis_id_equal(stasis_remap_new(NULL, &other), &other));
	remap.count = 0;
	assert_done(stasis_remap_check(&driver, &remap, seen, FIXTURE_GPUS, &err), &err);
	assert_true(stasis_id_equal(stasis_remap_new(&remap, &first), &first));
}

static void every_gpu_must_be_named(void **state)
{
	(void)state;
	remap.count = 1;
	check_refused("no GPU pair names GPU-11111111");
}

static void none_is_named_twice(void **state)
{
	(void)state;
	pairs[1].old_uuid = pairs[0].old_uuid;
	check_refused("two GPU pairs move GPU-10101010");
	pairs[1] = (struct stasis_gpu_pair){fake_uuid(1), fake_uuid(1)};
	check_refused("two GPU pairs move onto GPU-11111111");
}

static void unseen_gpu_is_not_named(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_remap_check(&driver, &remap, seen, 1, &err), &err, STASIS_SUSPENDED,
		       "moves GPU-11111111-1111-1111-1111-111111111111, which the process did not "
		       "see");
}

static void new_gpu_must_be_here(void **state)
{
	(void)state;
	pairs[0].new_uuid = (struct stasis_id){{0x55}};
	check_refused("moves onto GPU-55000000-0000-0000-0000-000000000000, which is not visible");
}

static void new_gpu_must_be_of_the_same_kind(void **state)
{
	(void)state;
	fake.gpus[1].name = "Other GPU";
	check_refused("GPU-11111111-1111-1111-1111-111111111111 is a 'Other GPU' (9.0)");
	fake.gpus[1].name = "Fake GPU";
	fake.gpus[1].capability_minor = 2;
	check_refused("a GPU of the same kind is needed");
	fake.gpus[1].capability_minor = 0;
	fake.gpus[1].capability_major = 8;
	check_refused("(8.0) and cannot take the place of GPU-10101010");
}

static void new_gpu_must_have_as_much_memory(void **state)
{
	(void)state;
	fake.gpus[1].total_bytes--;
	check_refused("has 85899345919 bytes of memory");
}

static void failing_driver_leaves_the_target_asleep(void **state)
{
	(void)state;
	fake_rule("cuDeviceGetCount", 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	fake_rule("cuDeviceGetName", 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	check_refused("count the GPUs");
	check_refused("read the name of GPU 1");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(whole_exchange_is_good),
		TEST(every_gpu_must_be_named),
		TEST(none_is_named_twice),
		TEST(unseen_gpu_is_not_named),
		TEST(new_gpu_must_be_here),
		TEST(new_gpu_must_be_of_the_same_kind),
		TEST(new_gpu_must_have_as_much_memory),
		TEST(failing_driver_leaves_the_target_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
