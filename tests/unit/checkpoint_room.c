/*
 * Description: free memory is held against what a target needs and what a context of ours takes, once.
 */

#include "target_fixture.h"

#define GIB (UINT64_C(1) << 30)

static void room_is_read_beside_a_context(void **state)
{
	struct stasis_gpu_room rooms[] = {{.uuid = fake_uuid(1), .need_bytes = 7}};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.gpus[1].free_bytes = 12345;
	assert_done(stasis_gpu_rooms_read(&driver, rooms, 1, &err), &err);
	assert_int_equal(rooms[0].free_bytes, 12345);
	assert_int_equal(rooms[0].need_bytes, 7);
	assert_true(rooms[0].has_context);
	assert_int_equal(fake.gpus[1].retained_most, 1);
	assert_int_equal(fake.gpus[0].retained_most, 0);
	assert_int_equal(fake.gpus[1].retained, 0);
}

static void no_memory_for_a_context_is_no_room(void **state)
{
	struct stasis_gpu_room rooms[] = {{.uuid = fake_uuid(0)}};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake_rule("cuDevicePrimaryCtxRetain", 0, CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP);
	assert_done(stasis_gpu_rooms_read(&driver, rooms, 1, &err), &err);
	assert_int_equal(rooms[0].free_bytes, 0);
	assert_false(rooms[0].has_context);
	assert_refused(stasis_gpu_rooms_check(rooms, 1, STASIS_CONTEXT_BYTES, &err), &err,
		       STASIS_REFUSED, "a context of ours 512.0 MiB");
}

static void failures_of_the_reading_are_named(void **state)
{
	struct stasis_gpu_room here[] = {{.uuid = fake_uuid(0)}};
	struct stasis_gpu_room gone[] = {{.uuid = {{3}}}};
	struct stasis_error gone_err = STASIS_ERROR_INIT;
	struct stasis_error list_err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_gpu_rooms_read(&driver, gone, 1, &gone_err), &gone_err,
		       STASIS_REFUSED, "GPU-03000000-0000-0000-0000-000000000000 is needed");
	for (int i = 0; i < 3; i++) {
		static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
						    "cuMemGetInfo"};
		struct stasis_error err = STASIS_ERROR_INIT;

		fake.rule_count = 0;
		fake_rule(calls[i], 0, CUDA_ERROR_DEVICE_UNAVAILABLE, FAKE_KEEP);
		assert_refused(stasis_gpu_rooms_read(&driver, here, 1, &err), &err, STASIS_REFUSED,
			       "read how much memory is free on GPU-10101010");
		assert_int_equal(err.cuda_result, CUDA_ERROR_DEVICE_UNAVAILABLE);
		assert_int_equal(fake.gpus[0].retained, 0);
		assert_int_equal(fake.pushed, 0);
	}
	fake_rule("cuDeviceGetCount", 0, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_refused(stasis_gpu_rooms_read(&driver, here, 1, &list_err), &list_err,
		       STASIS_REFUSED, "count the GPUs");
}

static void contexts_are_counted_once(void **state)
{
	struct stasis_gpu_room room = {.need_bytes = 3 * GIB, .free_bytes = 3 * GIB};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	room.has_context = true;
	assert_done(stasis_gpu_rooms_check(&room, 1, GIB, &err), &err);
	room.has_context = false;
	assert_refused(stasis_gpu_rooms_check(&room, 1, GIB, &err), &err, STASIS_REFUSED,
		       "too little free memory: 3.0 GiB, where the process needs 3.0 GiB and a "
		       "context of ours 1.0 GiB");
	room.free_bytes = 4 * GIB;
	memset(&err, 0, sizeof(err));
	assert_done(stasis_gpu_rooms_check(&room, 1, GIB, &err), &err);
	room.has_context = true;
	room.free_bytes = 3 * GIB - 1;
	assert_refused(stasis_gpu_rooms_check(&room, 1, GIB, &err), &err, STASIS_REFUSED,
		       "too little free memory");
}

static void every_gpu_is_checked_and_sums_do_not_wrap(void **state)
{
	struct stasis_gpu_room rooms[] = {
		{.uuid = fake_uuid(0), .free_bytes = GIB, .has_context = true},
		{.uuid = fake_uuid(1), .need_bytes = UINT64_MAX, .free_bytes = GIB},
	};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_gpu_rooms_check(rooms, 2, GIB, &err), &err, STASIS_REFUSED,
		       "GPU-11111111");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FIXTURE_TEST(room_is_read_beside_a_context),
		FIXTURE_TEST(no_memory_for_a_context_is_no_room),
		FIXTURE_TEST(failures_of_the_reading_are_named),
		FIXTURE_TEST(contexts_are_counted_once),
		FIXTURE_TEST(every_gpu_is_checked_and_sums_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
