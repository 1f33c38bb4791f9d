/*
 * Description: lock, unlock and the driver's own store: what becomes of a target after each failure is
 * read back, said, and undone where that is safe; nothing is tried twice.
 */

#include "target_fixture.h"

enum step {
	LOCK,
	CHECKPOINT,
	RESTORE,
	UNLOCK,
};

struct row {
	enum step step;
	CUprocessState before;
	CUresult result; /* of the step's call */
	int behind;      /* the state that the call leaves; FAKE_KEEP */
	enum stasis_status status;
	CUprocessState after;
	const char *calls;
	const char *text;
};

#define RUNNING CU_PROCESS_STATE_RUNNING
#define LOCKED CU_PROCESS_STATE_LOCKED
#define CHECKPOINTED CU_PROCESS_STATE_CHECKPOINTED
#define FAILED CU_PROCESS_STATE_FAILED
#define CHECKPOINTING CU_PROCESS_STATE_CHECKPOINTING
#define RESTORING CU_PROCESS_STATE_RESTORING
#define OK CUDA_SUCCESS

/* clang-format off */
static const struct row rows[] = {
	/* good, and a driver whose success does not show in the state */
	{LOCK, RUNNING, OK, FAKE_KEEP, STASIS_OK, LOCKED, "ProcessLock ", ""},
	{LOCK, RUNNING, OK, RUNNING, STASIS_REFUSED, RUNNING, "ProcessLock ", "the state is RUNNING, not LOCKED; it runs as before"},
	{LOCK, RUNNING, OK, FAILED, STASIS_LOST, FAILED, "ProcessLock ", "FAILED: it is lost"},
	{CHECKPOINT, LOCKED, OK, FAKE_KEEP, STASIS_OK, CHECKPOINTED, "ProcessCheckpoint ", ""},
	{CHECKPOINT, LOCKED, OK, LOCKED, STASIS_REFUSED, RUNNING, "ProcessCheckpoint ProcessUnlock ", "the state is LOCKED, not CHECKPOINTED; it was unlocked"},
	{RESTORE, CHECKPOINTED, OK, FAKE_KEEP, STASIS_OK, LOCKED, "ProcessRestore ", ""},
	{RESTORE, CHECKPOINTED, OK, CHECKPOINTED, STASIS_LOST, CHECKPOINTED, "ProcessRestore ", "reported success, but"},
	{UNLOCK, LOCKED, OK, FAKE_KEEP, STASIS_OK, RUNNING, "ProcessUnlock ", ""},
	{UNLOCK, LOCKED, OK, LOCKED, STASIS_SUSPENDED, LOCKED, "ProcessUnlock ", "the state is LOCKED, not RUNNING"},

	/* the call fails */
	{LOCK, RUNNING, CUDA_ERROR_NOT_READY, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessLock ", "did not pause its GPU work in time; allow more time or try again; it runs as before"},
	{LOCK, RUNNING, CUDA_ERROR_OPERATING_SYSTEM, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessLock ", "CAP_SYS_PTRACE"},
	{LOCK, RUNNING, CUDA_ERROR_UNKNOWN, LOCKED, STASIS_REFUSED, RUNNING, "ProcessLock ProcessUnlock ", "it was unlocked and runs as before"},
	{LOCK, RUNNING, CUDA_ERROR_UNKNOWN, FAILED, STASIS_LOST, FAILED, "ProcessLock ", "it is lost"},
	{CHECKPOINT, LOCKED, CUDA_ERROR_NOT_SUPPORTED, FAKE_KEEP, STASIS_REFUSED, RUNNING, "ProcessCheckpoint ProcessUnlock ", "such as managed memory; it was unlocked and runs as before"},
	{CHECKPOINT, LOCKED, CUDA_ERROR_OUT_OF_MEMORY, RUNNING, STASIS_REFUSED, RUNNING, "ProcessCheckpoint ", "it runs as before"},
	{CHECKPOINT, LOCKED, CUDA_ERROR_UNKNOWN, CHECKPOINTED, STASIS_SUSPENDED, CHECKPOINTED, "ProcessCheckpoint ", "it is suspended and intact"},
	{CHECKPOINT, LOCKED, CUDA_ERROR_UNKNOWN, FAILED, STASIS_LOST, FAILED, "ProcessCheckpoint ", "it is lost"},
	{CHECKPOINT, LOCKED, CUDA_ERROR_UNKNOWN, CHECKPOINTING, STASIS_LOST, CHECKPOINTING, "ProcessCheckpoint ", "has begun and not ended"},
	{CHECKPOINT, LOCKED, CUDA_ERROR_UNKNOWN, 77, STASIS_LOST, (CUprocessState)77, "ProcessCheckpoint ", "its fate is unknown"},
	{RESTORE, CHECKPOINTED, CUDA_ERROR_UNKNOWN, FAKE_KEEP, STASIS_LOST, CHECKPOINTED, "ProcessRestore ", "its state reads CHECKPOINTED, which promises nothing"},
	{RESTORE, CHECKPOINTED, CUDA_ERROR_INVALID_VALUE, FAKE_KEEP, STASIS_LOST, CHECKPOINTED, "ProcessRestore ", "nothing is tried again"},
	{RESTORE, CHECKPOINTED, CUDA_ERROR_UNKNOWN, LOCKED, STASIS_LOST, LOCKED, "ProcessRestore ", "its state reads LOCKED"},
	{RESTORE, CHECKPOINTED, CUDA_ERROR_UNKNOWN, FAILED, STASIS_LOST, FAILED, "ProcessRestore ", "its state reads FAILED"},
	{UNLOCK, LOCKED, CUDA_ERROR_ILLEGAL_STATE, FAKE_KEEP, STASIS_SUSPENDED, LOCKED, "ProcessUnlock ", "intact but LOCKED"},
	{UNLOCK, LOCKED, CUDA_ERROR_UNKNOWN, RUNNING, STASIS_REFUSED, RUNNING, "ProcessUnlock ", "it runs as before"},
	{UNLOCK, LOCKED, CUDA_ERROR_UNKNOWN, FAILED, STASIS_LOST, FAILED, "ProcessUnlock ", "it is lost"},

	/* the wrong state: the driver is not asked */
	{LOCK, LOCKED, OK, FAKE_KEEP, STASIS_SUSPENDED, LOCKED, "", "it is LOCKED, not RUNNING"},
	{LOCK, CHECKPOINTED, OK, FAKE_KEEP, STASIS_SUSPENDED, CHECKPOINTED, "", "it is suspended and intact"},
	{LOCK, FAILED, OK, FAKE_KEEP, STASIS_LOST, FAILED, "", "it is FAILED, not RUNNING"},
	{LOCK, RESTORING, OK, FAKE_KEEP, STASIS_LOST, RESTORING, "", "unless another program is about to complete it"},
	{CHECKPOINT, RUNNING, OK, FAKE_KEEP, STASIS_REFUSED, RUNNING, "", "it is RUNNING, not LOCKED"},
	{CHECKPOINT, CHECKPOINTED, OK, FAKE_KEEP, STASIS_SUSPENDED, CHECKPOINTED, "", "it is CHECKPOINTED, not LOCKED"},
	{RESTORE, RUNNING, OK, FAKE_KEEP, STASIS_REFUSED, RUNNING, "", "it is RUNNING, not CHECKPOINTED"},
	{RESTORE, LOCKED, OK, FAKE_KEEP, STASIS_SUSPENDED, LOCKED, "", "it is LOCKED, not CHECKPOINTED"},
	{UNLOCK, RUNNING, OK, FAKE_KEEP, STASIS_REFUSED, RUNNING, "", "it is RUNNING, not LOCKED"},
	{UNLOCK, CHECKPOINTED, OK, FAKE_KEEP, STASIS_SUSPENDED, CHECKPOINTED, "", "it is CHECKPOINTED, not LOCKED"},
};
/* clang-format on */

static const char *const step_calls[] = {
	[LOCK] = "cuCheckpointProcessLock",
	[CHECKPOINT] = "cuCheckpointProcessCheckpoint",
	[RESTORE] = "cuCheckpointProcessRestore",
	[UNLOCK] = "cuCheckpointProcessUnlock",
};

static int step_do(enum step step, struct stasis_error *err)
{
	switch (step) {
	case LOCK:
		return stasis_target_lock(&target, 250, err);
	case CHECKPOINT:
		return stasis_target_checkpoint(&target, err);
	case RESTORE:
		return stasis_target_restore(&target, NULL, err);
	case UNLOCK:
		return stasis_target_unlock(&target, err);
	}
	return -1;
}

static void row_check(const struct row *row)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	int result;

	fake.state = row->before;
	fake.calls[0] = '\0';
	fake.rule_count = 0;
	/* Rules are for the next call of the step. */
	if (row->result != CUDA_SUCCESS)
		fake_rule(step_calls[row->step], fake_count(step_calls[row->step]) + 1, row->result,
			  row->behind);
	else if (row->behind != FAKE_KEEP)
		fake_rule_works(step_calls[row->step], fake_count(step_calls[row->step]) + 1,
				CUDA_SUCCESS, row->behind);
	result = step_do(row->step, &err);
	if (err.status != row->status || !strstr(err.text, row->text))
		print_error("row %d: status %d: %s\n", (int)(row - rows), (int)err.status,
			    err.text);
	assert_int_equal(err.status, row->status);
	assert_int_equal(result, row->status == STASIS_OK ? 0 : -1);
	assert_non_null(strstr(err.text, row->text));
	assert_int_equal(err.cuda_result, row->result);
	assert_int_equal(fake.state, row->after);
	assert_string_equal(fake.calls, row->calls);
}

static void every_failure_says_what_became_of_the_target(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		row_check(&rows[i]);
}

static void lock_passes_its_timeout(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_target_lock(&target, 1234, &err), &err);
	assert_int_equal(fake.lock_timeout_ms, 1234);
}

static void failed_undo_leaves_the_target_locked(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.state = LOCKED;
	fake_rule("cuCheckpointProcessCheckpoint", 1, CUDA_ERROR_NOT_SUPPORTED, FAKE_KEEP);
	fake_rule("cuCheckpointProcessUnlock", 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_refused(stasis_target_checkpoint(&target, &err), &err, STASIS_SUSPENDED,
		       "it is intact but LOCKED");
	assert_int_equal(err.cuda_result, CUDA_ERROR_NOT_SUPPORTED);
	assert_string_equal(fake.calls, "ProcessCheckpoint ProcessUnlock ");
}

/* The n-th and the next reading of the state get no answer; opening the target took the first. */
static void state_unread_from(int passage)
{
	fake_rule("cuCheckpointProcessGetState", passage, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	fake_rule("cuCheckpointProcessGetState", passage + 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
}

static void state_that_cannot_be_read_means_unknown(void **state)
{
	struct stasis_error checkpoint = STASIS_ERROR_INIT;
	struct stasis_error restore = STASIS_ERROR_INIT;
	struct stasis_error confirm = STASIS_ERROR_INIT;

	(void)state;
	fake.state = LOCKED;
	fake_rule("cuCheckpointProcessCheckpoint", 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	state_unread_from(3);
	assert_refused(stasis_target_checkpoint(&target, &checkpoint), &checkpoint, STASIS_LOST,
		       "the driver does not say its state");
	fake.state = CHECKPOINTED;
	fake_rule("cuCheckpointProcessRestore", 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	state_unread_from(6);
	assert_refused(stasis_target_restore(&target, NULL, &restore), &restore, STASIS_LOST,
		       "its fate is unknown");
	assert_string_equal(fake.calls, "ProcessCheckpoint ProcessRestore ");
	fake.rule_count = 0;
	state_unread_from(9);
	state_unread_from(11);
	assert_refused(stasis_target_restore(&target, NULL, &confirm), &confirm, STASIS_LOST,
		       "read the checkpoint state of process");
}

static void state_that_cannot_be_read_before_leaves_all_as_it_was(void **state)
{
	static const struct {
		enum step step;
		CUprocessState before;
		enum stasis_status status;
	} steps[] = {
		{LOCK, RUNNING, STASIS_REFUSED},
		{CHECKPOINT, LOCKED, STASIS_SUSPENDED},
		{RESTORE, CHECKPOINTED, STASIS_SUSPENDED},
		{UNLOCK, LOCKED, STASIS_SUSPENDED},
	};

	(void)state;
	fake_rule("cuCheckpointProcessGetState", 0, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;

		fake.state = steps[i].before;
		assert_refused(step_do(steps[i].step, &err), &err, steps[i].status,
			       "CUDA_ERROR_UNKNOWN (999); it was left as it was");
		assert_int_equal(fake.state, steps[i].before);
	}
	assert_string_equal(fake.calls, "");
}

static void one_unanswered_question_is_asked_again(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error failed = STASIS_ERROR_INIT;

	(void)state;
	fake.state = LOCKED;
	/* Before the call, after it, and after a call that fails. */
	fake_rule("cuCheckpointProcessGetState", 2, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	fake_rule("cuCheckpointProcessGetState", 4, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	fake_rule("cuCheckpointProcessGetState", 7, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_done(stasis_target_checkpoint(&target, &err), &err);
	fake.state = LOCKED;
	fake_rule("cuCheckpointProcessCheckpoint", 2, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_refused(stasis_target_checkpoint(&target, &failed), &failed, STASIS_REFUSED,
		       "it was unlocked and runs as before");
	assert_string_equal(fake.calls, "ProcessCheckpoint ProcessCheckpoint ProcessUnlock ");
}

static void target_that_dies_under_the_call_is_lost(void **state)
{
	struct stasis_error checkpoint = STASIS_ERROR_INIT;
	struct stasis_error unlock = STASIS_ERROR_INIT;

	(void)state;
	fake.state = LOCKED;
	fake.kills = true;
	fake_rule("cuCheckpointProcessCheckpoint", 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_refused(stasis_target_checkpoint(&target, &checkpoint), &checkpoint, STASIS_LOST,
		       "CUDA_ERROR_UNKNOWN (999); the process has ended");
	assert_string_equal(fake.calls, "ProcessCheckpoint ");
	assert_refused(stasis_target_unlock(&target, &unlock), &unlock, STASIS_LOST, "has ended");
	assert_string_equal(fake.calls, "ProcessCheckpoint ");
}

static void target_that_dies_under_the_restore_is_lost(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.state = CHECKPOINTED;
	fake.kills = true;
	assert_refused(stasis_target_restore(&target, NULL, &err), &err, STASIS_LOST, "has ended");
	assert_string_equal(fake.calls, "ProcessRestore ");
}

static void target_that_dies_just_before_a_call_is_not_called_on(void **state)
{
	static const CUprocessState before[] = {[LOCK] = RUNNING,
						[CHECKPOINT] = LOCKED,
						[RESTORE] = CHECKPOINTED,
						[UNLOCK] = LOCKED};

	for (enum step step = LOCK; step <= UNLOCK; step++) {
		struct stasis_error err = STASIS_ERROR_INIT;

		fixture_teardown(state);
		fixture_setup(state);
		fake.state = before[step];
		fake.kills_call = "cuCheckpointProcessGetState";
		assert_refused(step_do(step, &err), &err, STASIS_LOST, "has ended");
		assert_string_equal(fake.calls, "");
	}
}

static void restore_carries_its_pairs(void **state)
{
	struct stasis_gpu_pair pairs[] = {{fake_uuid(0), fake_uuid(1)},
					  {fake_uuid(1), fake_uuid(0)}};
	struct stasis_remap remap = {.pairs = pairs, .count = 2};
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.state = CHECKPOINTED;
	assert_done(stasis_target_restore(&target, &remap, &err), &err);
	assert_int_equal(fake.pairs_count, 2);
	assert_memory_equal(&fake.pairs[0].oldUuid, &fake.gpus[0].uuid, sizeof(CUuuid));
	assert_memory_equal(&fake.pairs[0].newUuid, &fake.gpus[1].uuid, sizeof(CUuuid));
	assert_memory_equal(&fake.pairs[1].newUuid, &fake.gpus[0].uuid, sizeof(CUuuid));
}

static void pairs_that_cannot_be_right_never_reach_the_driver(void **state)
{
	struct stasis_gpu_pair twice_old[] = {{fake_uuid(0), fake_uuid(1)},
					      {fake_uuid(0), fake_uuid(0)}};
	struct stasis_gpu_pair twice_new[] = {{fake_uuid(0), fake_uuid(1)},
					      {fake_uuid(1), fake_uuid(1)}};
	struct stasis_remap remap = {.pairs = twice_old, .count = 2};
	struct stasis_error old_err = STASIS_ERROR_INIT;
	struct stasis_error new_err = STASIS_ERROR_INIT;
	struct stasis_error many_err = STASIS_ERROR_INIT;
	struct stasis_error driver_err = STASIS_ERROR_INIT;

	(void)state;
	fake.state = CHECKPOINTED;
	assert_refused(stasis_target_restore(&target, &remap, &old_err), &old_err, STASIS_SUSPENDED,
		       "two GPU pairs move GPU-10101010");
	remap.pairs = twice_new;
	assert_refused(stasis_target_restore(&target, &remap, &new_err), &new_err, STASIS_SUSPENDED,
		       "two GPU pairs move onto GPU-11111111");
	remap.count = STASIS_DEVICES_MAX + 1;
	assert_refused(stasis_target_restore(&target, &remap, &many_err), &many_err,
		       STASIS_SUSPENDED, "65 GPU pairs");
	driver.cuda_version = 12080;
	remap.count = 1;
	assert_refused(stasis_target_restore(&target, &remap, &driver_err), &driver_err,
		       STASIS_SUSPENDED, "CUDA 13.0 or newer is needed");
	assert_string_equal(fake.calls, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FIXTURE_TEST(every_failure_says_what_became_of_the_target),
		FIXTURE_TEST(lock_passes_its_timeout),
		FIXTURE_TEST(failed_undo_leaves_the_target_locked),
		FIXTURE_TEST(state_that_cannot_be_read_means_unknown),
		FIXTURE_TEST(state_that_cannot_be_read_before_leaves_all_as_it_was),
		FIXTURE_TEST(one_unanswered_question_is_asked_again),
		FIXTURE_TEST(target_that_dies_under_the_call_is_lost),
		FIXTURE_TEST(target_that_dies_under_the_restore_is_lost),
		FIXTURE_TEST(target_that_dies_just_before_a_call_is_not_called_on),
		FIXTURE_TEST(restore_carries_its_pairs),
		FIXTURE_TEST(pairs_that_cannot_be_right_never_reach_the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
