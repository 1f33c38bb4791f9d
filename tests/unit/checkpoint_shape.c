/*
 * Description: every way in which the driver's description can be wrong is named and refused before a byte
 * is copied, and so is an entry whose GPU cannot be found through its stream.
 */

#include "operation_fixture.h"

/* Begins with the description as it stands; it must be refused with `text`. */
static void shape_refused(const char *text)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error complete = STASIS_ERROR_INIT;

	fake.state = LOCKED;
	assert_int_equal(stasis_operation_begin(&operation, &target, &checkpoint_options, &err),
			 -1);
	if (!strstr(err.text, text))
		print_error("%s\n", err.text);
	assert_refused(-1, &err, STASIS_LOST, text);
	assert_non_null(strstr(err.text, "the driver's description of the memory of process"));
	assert_refused(stasis_operation_complete(&operation, &complete), &complete, STASIS_LOST,
		       text);
	assert_int_equal(fake_count("cuCheckpointOperationComplete"), 0);
	assert_int_equal(operation.view_count, 0);
	fatal_is_acknowledged(&operation, text);
}

static void no_description(void **state)
{
	(void)state;
	fake.info = NULL;
	shape_refused("there is none");
}

static void no_handle(void **state)
{
	(void)state;
	info.handle = NULL;
	shape_refused("it has no handle");
}

static void no_handle_and_no_devices(void **state)
{
	(void)state;
	info = (CUcheckpointCustomStorageInfo){.deviceCount = 0};
	shape_refused("it has no handle");
}

static void no_array(void **state)
{
	(void)state;
	info.perDeviceData = NULL;
	shape_refused("it has 2 entries and no array");
}

static void too_many_entries(void **state)
{
	(void)state;
	info.deviceCount = STASIS_DEVICES_MAX + 1;
	shape_refused("it has 65 entries");
	info.deviceCount = UINT32_MAX;
	shape_refused("it has 4294967295 entries");
}

static void no_pointer(void **state)
{
	(void)state;
	entries[0].devPtr = 0;
	shape_refused("entry 0 has no pointer");
}

static void no_size(void **state)
{
	(void)state;
	entries[1].size = 0;
	shape_refused("entry 1 has no size");
}

static void no_stream(void **state)
{
	(void)state;
	entries[1].stream = NULL;
	shape_refused("entry 1 has no stream");
}

static void end_beyond_all_addresses(void **state)
{
	(void)state;
	entries[1].size = SIZE_MAX - 1;
	shape_refused("entry 1 ends beyond all addresses");
}

static void sum_overflows(void **state)
{
	(void)state;
	entries[0].devPtr = 1;
	entries[0].size = SIZE_MAX - 1;
	entries[1].devPtr = 1;
	entries[1].size = 2;
	shape_refused("the sizes' sum overflows at entry 1");
}

static void same_gpu_twice(void **state)
{
	(void)state;
	entries[1].stream = entries[0].stream;
	shape_refused("entries 0 and 1 are both on GPU-11111111");
}

static void stream_and_context_disagree(void **state)
{
	(void)state;
	fake.gpus[0].stream_device = 1;
	shape_refused("entry 1: its stream is of device 39, its context of device 40");
}

static void stream_has_no_context(void **state)
{
	(void)state;
	fake.gpus[0].has_no_context = true;
	shape_refused("entry 1: its stream has no context");
}

/* The passages that the listing of the devices takes come first. */
static void driver_fails_on_the_way(void **state)
{
	struct {
		const char *call;
		int passage;
		const char *text;
	} calls[] = {
		{"cuDeviceGetCount", 2, "count the GPUs: CUDA_ERROR_UNKNOWN (999)"},
		{"cuStreamGetCtx", 1, "entry 0: find its stream's context"},
		{"cuCtxPushCurrent", 1, "entry 0: find its context's GPU"},
		{"cuCtxGetDevice", 1, "entry 0: find its context's GPU"},
		{"cuStreamGetDevice", 1, "entry 0: find its stream's GPU"},
		{"cuDeviceGetUuid", 5, "entry 0: read its GPU's UUID"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
		fixture_teardown(state);
		setup(state);
		fake_rule(calls[i].call, calls[i].passage, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
		shape_refused(calls[i].text);
	}
}

static void gpu_vanishes_from_the_list(void **state)
{
	(void)state;
	/* The listing in begin sees both; the one behind it sees one. */
	fake.vanish_passage = 2;
	shape_refused(
		"entry 0 is on GPU-11111111-1111-1111-1111-111111111111, which is not visible "
		"here");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPERATION_TEST(no_description),
		OPERATION_TEST(no_handle),
		OPERATION_TEST(no_handle_and_no_devices),
		OPERATION_TEST(no_array),
		OPERATION_TEST(too_many_entries),
		OPERATION_TEST(no_pointer),
		OPERATION_TEST(no_size),
		OPERATION_TEST(no_stream),
		OPERATION_TEST(end_beyond_all_addresses),
		OPERATION_TEST(sum_overflows),
		OPERATION_TEST(same_gpu_twice),
		OPERATION_TEST(stream_and_context_disagree),
		OPERATION_TEST(stream_has_no_context),
		OPERATION_TEST(driver_fails_on_the_way),
		OPERATION_TEST(gpu_vanishes_from_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
