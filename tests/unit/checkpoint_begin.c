/*
 * Description: the CustomStorage operation begins, or leaves the target as it was and says so; contexts of
 * ours are retained for what is needed.
 */

#include "operation_fixture.h"

static void wrong_state_is_refused_before_the_driver_is_asked(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error running = STASIS_ERROR_INIT;
	struct stasis_error locked = STASIS_ERROR_INIT;
	struct stasis_error done = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_operation_begin(&operation, &target, &restore_options, &locked),
		       &locked, STASIS_SUSPENDED, "it is LOCKED, not CHECKPOINTED");
	fake.state = CU_PROCESS_STATE_RUNNING;
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &running),
		       &running, STASIS_REFUSED, "it is RUNNING, not LOCKED; it runs as before");
	fake.state = CU_PROCESS_STATE_CHECKPOINTED;
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &done),
		       &done, STASIS_SUSPENDED, "it is CHECKPOINTED, not LOCKED");
	assert_string_equal(fake.calls, "");
	assert_int_equal(operation.state, STASIS_OPERATION_IDLE);
	assert_int_equal(fake_count("cuDevicePrimaryCtxRetain"), 0);
}

/* What a failure before or at begin leaves behind. */
struct begin_row {
	enum stasis_operation_direction direction;
	const char *call;
	CUresult result;
	int behind;
	enum stasis_status status;
	CUprocessState after;
	const char *calls;
	const char *text;
};

#define CHECKPOINT_CALL "cuCheckpointProcessCheckpoint"
#define RESTORE_CALL "cuCheckpointProcessRestore"

/* clang-format off */
static const struct begin_row begin_rows[] = {
	{SAVE, "cuDeviceGetCount", CUDA_ERROR_UNKNOWN, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessUnlock ", "count the GPUs"},
	{SAVE, "cuDeviceGet", CUDA_ERROR_UNKNOWN, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessUnlock ", "open GPU 0"},
	{SAVE, "cuDeviceGetUuid", CUDA_ERROR_UNKNOWN, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessUnlock ", "read the UUID of GPU 0"},
	{SAVE, "cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessUnlock ", "no room for a context of ours"},
	{SAVE, "cuDevicePrimaryCtxRetain", CUDA_ERROR_DEVICE_UNAVAILABLE, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessUnlock ", "exclusive"},
	{LOAD, "cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP, STASIS_SUSPENDED, CHECKPOINTED, "", "it is suspended and intact"},
	{SAVE, CHECKPOINT_CALL, CUDA_ERROR_UNKNOWN, RUNNING, STASIS_REFUSED, RUNNING, "ProcessCheckpoint ", "it runs as before"},
	{SAVE, CHECKPOINT_CALL, CUDA_ERROR_NOT_SUPPORTED, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessCheckpoint ProcessUnlock ", "it was unlocked and runs as before"},
	{SAVE, CHECKPOINT_CALL, CUDA_ERROR_UNKNOWN, CHECKPOINTED, STASIS_SUSPENDED, CHECKPOINTED, "ProcessCheckpoint ", "it is suspended and intact"},
	{SAVE, CHECKPOINT_CALL, CUDA_ERROR_UNKNOWN, FAILED, STASIS_LOST, FAILED, "ProcessCheckpoint ", "it is lost"},
	{SAVE, CHECKPOINT_CALL, CUDA_ERROR_UNKNOWN, CHECKPOINTING, STASIS_LOST, CHECKPOINTING, "ProcessCheckpoint ", "has begun and not ended"},
	{LOAD, RESTORE_CALL, CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP, STASIS_LOST, CHECKPOINTED, "ProcessRestore ", "its state reads CHECKPOINTED"},
	{LOAD, RESTORE_CALL, CUDA_ERROR_UNKNOWN, LOCKED, STASIS_LOST, LOCKED, "ProcessRestore ", "its state reads LOCKED"},
	{LOAD, RESTORE_CALL, CUDA_ERROR_UNKNOWN, FAILED, STASIS_LOST, FAILED, "ProcessRestore ", "nothing is tried again"},
};
/* clang-format on */

static void begin_row_check(const struct begin_row *row)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	int result;

	fake.state = row->direction == LOAD ? CHECKPOINTED : LOCKED;
	fake.calls[0] = '\0';
	fake.rule_count = 0;
	fake_rule(row->call, fake_count(row->call) + 1, row->result, row->behind);
	result = stasis_operation_begin(
		&operation, &target,
		row->direction == LOAD ? &restore_options : &checkpoint_options, &err);
	if (err.status != row->status || !strstr(err.text, row->text))
		print_error("row %d: status %d: %s\n", (int)(row - begin_rows), (int)err.status,
			    err.text);
	assert_refused(result, &err, row->status, row->text);
	assert_int_equal(err.cuda_result, row->result);
	assert_int_equal(fake.state, row->after);
	assert_string_equal(fake.calls, row->calls);
	assert_int_equal(operation.state, STASIS_OPERATION_IDLE);
	assert_int_equal(retained(), 0);
	stasis_operation_close(&operation);
}

static void failed_begin_says_what_became_of_the_target(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(begin_rows); i++)
		begin_row_check(&begin_rows[i]);
}

static void second_gpu_without_room_gives_the_first_back(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake_rule("cuDevicePrimaryCtxRetain", 2, CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP);
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err,
		       STASIS_REFUSED, "make a context on GPU 1 (GPU-11111111");
	assert_int_equal(fake.gpus[0].retained_most, 1);
	assert_int_equal(retained(), 0);
}

static void driver_without_custom_storage_is_refused(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error save = STASIS_ERROR_INIT;
	struct stasis_error load = STASIS_ERROR_INIT;
	struct stasis_error adopt = STASIS_ERROR_INIT;

	(void)state;
	driver.cuda_version = 13000;
	driver.cuCheckpointOperationComplete = NULL;
	assert_refused(
		stasis_operation_begin(&operation, &target, &checkpoint_options, &save), &save,
		STASIS_REFUSED,
		"no CustomStorage: the driver is of CUDA 13.0; CUDA 13.4 or newer is needed; "
		"it was unlocked");
	fake.state = CHECKPOINTED;
	assert_refused(stasis_operation_begin(&operation, &target, &restore_options, &load), &load,
		       STASIS_SUSPENDED, "no CustomStorage");
	assert_refused(stasis_operation_adopt(&operation, &target, SAVE, &info, &adopt), &adopt,
		       STASIS_INTERNAL, "no CustomStorage");
}

static void contexts_are_retained_for_what_is_needed(void **state)
{
	struct stasis_id needed[] = {fake_uuid(1)};
	struct stasis_operation_options options = restore_options;
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	/* A checkpoint cannot know: all, and only what holds data after it began. */
	info.deviceCount = 1;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	assert_int_equal(fake.gpus[0].retained_begin, 1);
	assert_int_equal(fake.gpus[1].retained_begin, 1);
	assert_int_equal(fake.gpus[0].retained, 0);
	assert_int_equal(fake.gpus[1].retained, 1);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_int_equal(retained(), 0);
	stasis_operation_close(&operation);

	/* A restore knows from the image. */
	options.gpus = (struct stasis_gpu_set){.uuids = needed, .count = 1};
	assert_done(stasis_operation_begin(&operation, &target, &options, &err), &err);
	assert_int_equal(fake.gpus[0].retained_begin, 0);
	assert_int_equal(fake.gpus[1].retained_begin, 1);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_int_equal(retained(), 0);
	stasis_operation_close(&operation);
}

static void gpu_that_nobody_expected_is_retained_late(void **state)
{
	struct stasis_id needed[] = {fake_uuid(0)};
	struct stasis_operation_options options = checkpoint_options;
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	options.gpus = (struct stasis_gpu_set){.uuids = needed, .count = 1};
	assert_done(stasis_operation_begin(&operation, &target, &options, &err), &err);
	assert_int_equal(fake.gpus[0].retained, 1);
	assert_int_equal(fake.gpus[1].retained, 1);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_int_equal(retained(), 0);
	stasis_operation_close(&operation);

	fake.state = LOCKED;
	fake_rule("cuDevicePrimaryCtxRetain", fake_count("cuDevicePrimaryCtxRetain") + 2,
		  CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP);
	assert_refused(stasis_operation_begin(&operation, &target, &options, &err), &err,
		       STASIS_LOST, "make a context on GPU 1");
	fatal_is_acknowledged(&operation, "make a context on GPU 1");
}

static void needed_gpu_that_is_not_here_is_refused(void **state)
{
	struct stasis_id needed[] = {{{0x77}}};
	struct stasis_operation_options options = checkpoint_options;
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error many = STASIS_ERROR_INIT;

	(void)state;
	options.gpus = (struct stasis_gpu_set){.uuids = needed, .count = 1};
	assert_refused(stasis_operation_begin(&operation, &target, &options, &err), &err,
		       STASIS_REFUSED, "GPU-77000000-0000-0000-0000-000000000000 is needed");
	fake.state = LOCKED;
	options.gpus.count = STASIS_DEVICES_MAX + 1;
	assert_refused(stasis_operation_begin(&operation, &target, &options, &many), &many,
		       STASIS_REFUSED, "65 GPUs");
	assert_int_equal(retained(), 0);
}

static void target_killed_under_begin_is_lost(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.kills = true;
	fake_rule(CHECKPOINT_CALL, 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err,
		       STASIS_LOST, "the process has ended");
	assert_string_equal(fake.calls, "ProcessCheckpoint ");
}

static void target_that_dies_just_before_begin_is_not_begun_on(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error save = STASIS_ERROR_INIT;
	struct stasis_error load = STASIS_ERROR_INIT;

	(void)state;
	fake.kills_call = "cuDevicePrimaryCtxRetain";
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &save),
		       &save, STASIS_LOST, "has ended");
	assert_string_equal(fake.calls, "");
	assert_int_equal(retained(), 0);
	fixture_teardown(state);
	setup(state);
	fake.state = CHECKPOINTED;
	fake.kills_call = "cuDevicePrimaryCtxRetain";
	assert_refused(stasis_operation_begin(&operation, &target, &restore_options, &load), &load,
		       STASIS_LOST, "has ended");
	assert_string_equal(fake.calls, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPERATION_TEST(wrong_state_is_refused_before_the_driver_is_asked),
		OPERATION_TEST(failed_begin_says_what_became_of_the_target),
		OPERATION_TEST(second_gpu_without_room_gives_the_first_back),
		OPERATION_TEST(driver_without_custom_storage_is_refused),
		OPERATION_TEST(contexts_are_retained_for_what_is_needed),
		OPERATION_TEST(gpu_that_nobody_expected_is_retained_late),
		OPERATION_TEST(needed_gpu_that_is_not_here_is_refused),
		OPERATION_TEST(target_that_dies_just_before_begin_is_not_begun_on),
		OPERATION_TEST(target_killed_under_begin_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
