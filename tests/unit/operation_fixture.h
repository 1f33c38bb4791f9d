#ifndef STASIS_TESTS_OPERATION_FIXTURE_H
#define STASIS_TESTS_OPERATION_FIXTURE_H

/*
 * The stage of the CustomStorage tests: that of target_fixture.h, with a LOCKED target whose memory lies on
 * both GPUs.
 */

#include "target_fixture.h"

#define SAVE STASIS_OPERATION_CHECKPOINT
#define LOAD STASIS_OPERATION_RESTORE
#define RUNNING CU_PROCESS_STATE_RUNNING
#define LOCKED CU_PROCESS_STATE_LOCKED
#define CHECKPOINTED CU_PROCESS_STATE_CHECKPOINTED
#define FAILED CU_PROCESS_STATE_FAILED
#define CHECKPOINTING CU_PROCESS_STATE_CHECKPOINTING
#define MIB ((size_t)1 << 20)
#define HANDLE ((CUcheckpointOperationHandle)(void *)&handle_object)

static char handle_object;
static CUcheckpointCustomStoragePerDeviceData entries[FIXTURE_GPUS];
static CUcheckpointCustomStorageInfo info;

static const struct stasis_operation_options checkpoint_options = {
	.direction = STASIS_OPERATION_CHECKPOINT};
static const struct stasis_operation_options restore_options = {.direction =
									STASIS_OPERATION_RESTORE};

/* The driver hands out GPU 1 first: an entry's place says nothing. */
static int setup(void **state)
{
	int result = fixture_setup(state);

	entries[0] = (CUcheckpointCustomStoragePerDeviceData){
		.devPtr = 0x100000000,
		.size = 7 * MIB,
		.stream = (CUstream)(void *)&fake.gpus[1].stream};
	entries[1] = (CUcheckpointCustomStoragePerDeviceData){
		.devPtr = 0x200000000,
		.size = 5 * MIB,
		.stream = (CUstream)(void *)&fake.gpus[0].stream};
	info = (CUcheckpointCustomStorageInfo){
		.handle = HANDLE, .perDeviceData = entries, .deviceCount = 2};
	fake.info = &info;
	fake.state = CU_PROCESS_STATE_LOCKED;
	return result;
}

static inline int retained(void)
{
	return fake.gpus[0].retained + fake.gpus[1].retained;
}

static inline void fatal_is_acknowledged(struct stasis_operation *operation, const char *text)
{
	struct stasis_error cause = STASIS_ERROR_INIT;

	assert_int_equal(operation->state, STASIS_OPERATION_FATAL);
	assert_true(stasis_operation_acknowledge_fatal(operation, &cause));
	assert_int_equal(cause.status, STASIS_LOST);
	assert_non_null(strstr(cause.text, text));
	stasis_operation_close(operation);
	assert_int_equal(operation->state, STASIS_OPERATION_IDLE);
}

#define OPERATION_TEST(function) cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

#endif
