/*
 * Description: a begun CustomStorage operation is viewed, matched and completed once; what fails after
 * begin is fatal, seen, and never repeated.
 */

#include "operation_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void checkpoint_goes_its_way(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id first = fake_uuid(0);
	const struct stasis_view *view;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	assert_int_equal(operation.state, STASIS_OPERATION_BEGUN);
	assert_int_equal(operation.view_count, 2);
	view = stasis_operation_view(&operation, &first);
	assert_non_null(view);
	assert_int_equal(view->pointer, 0x200000000);
	assert_int_equal(view->bytes, 5 * MIB);
	assert_int_equal(view->device.ordinal, 0);
	assert_ptr_equal(view->context, (void *)&fake.gpus[0].context);
	assert_ptr_equal(view->stream, (void *)&fake.gpus[0].stream);
	assert_int_equal(fake.state, CU_PROCESS_STATE_CHECKPOINTING);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_int_equal(operation.state, STASIS_OPERATION_COMPLETED);
	assert_ptr_equal(fake.completed, HANDLE);
	assert_null(operation.handle);
	assert_null(operation.info);
	assert_int_equal(fake.state, CU_PROCESS_STATE_CHECKPOINTED);
	assert_string_equal(fake.calls, "ProcessCheckpoint OperationComplete ");
	assert_int_equal(retained(), 0);
	stasis_operation_close(&operation);
}

static void restore_goes_its_way_with_pairs(void **state)
{
	struct stasis_gpu_pair pairs[] = {{fake_uuid(0), fake_uuid(1)},
					  {fake_uuid(1), fake_uuid(0)}};
	struct stasis_operation_options options = restore_options;
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	options.remap = (struct stasis_remap){.pairs = pairs, .count = 2};
	fake.state = CU_PROCESS_STATE_CHECKPOINTED;
	assert_done(stasis_operation_begin(&operation, &target, &options, &err), &err);
	assert_int_equal(fake.pairs_count, 2);
	assert_memory_equal(&fake.pairs[1].newUuid, &fake.gpus[0].uuid, sizeof(CUuuid));
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_int_equal(fake.state, CU_PROCESS_STATE_LOCKED);
	assert_string_equal(fake.calls, "ProcessRestore OperationComplete ");
	stasis_operation_close(&operation);
}

static void second_complete_is_refused_and_changes_nothing(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error idle = STASIS_ERROR_INIT;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error again = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_operation_complete(&operation, &idle), &idle, STASIS_INTERNAL,
		       "no operation has begun");
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_refused(stasis_operation_complete(&operation, &again), &again, STASIS_INTERNAL,
		       "completed already");
	assert_int_equal(operation.state, STASIS_OPERATION_COMPLETED);
	assert_int_equal(fake_count("cuCheckpointOperationComplete"), 1);
	stasis_operation_close(&operation);
}

static void operation_in_use_is_not_begun_again(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error again = STASIS_ERROR_INIT;
	struct stasis_error adopt = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &again),
		       &again, STASIS_INTERNAL, "in use");
	assert_refused(stasis_operation_adopt(&operation, &target, STASIS_OPERATION_CHECKPOINT,
					      &info, &adopt),
		       &adopt, STASIS_INTERNAL, "in use");
	assert_int_equal(operation.view_count, 2);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	stasis_operation_close(&operation);
}

static void nothing_on_any_gpu_is_legal(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	info.deviceCount = 0;
	info.perDeviceData = NULL;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	assert_int_equal(operation.view_count, 0);
	assert_int_equal(retained(), 0);
	assert_done(stasis_operation_match(&operation, NULL, 0, &err), &err);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_int_equal(fake.state, CU_PROCESS_STATE_CHECKPOINTED);
	stasis_operation_close(&operation);
}

static void target_that_ends_is_noticed_at_each_step(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error complete = STASIS_ERROR_INIT;
	struct stasis_error begin = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	fake_target_kill();
	assert_refused(stasis_operation_complete(&operation, &complete), &complete, STASIS_LOST,
		       "has ended");
	assert_int_equal(fake_count("cuCheckpointOperationComplete"), 0);
	fatal_is_acknowledged(&operation, "has ended");
	assert_refused(stasis_operation_begin(&operation, &target, &checkpoint_options, &begin),
		       &begin, STASIS_LOST, "has ended");
	assert_int_equal(operation.state, STASIS_OPERATION_IDLE);
}

static void failed_complete_is_fatal_and_final(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error failed = STASIS_ERROR_INIT;
	struct stasis_error again = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	fake_rule("cuCheckpointOperationComplete", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
		  FAKE_KEEP);
	assert_refused(stasis_operation_complete(&operation, &failed), &failed, STASIS_LOST,
		       "its state reads CHECKPOINTING");
	assert_int_equal(failed.cuda_result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_refused(stasis_operation_complete(&operation, &again), &again, STASIS_LOST,
		       "complete: refused, since complete the operation on process");
	assert_int_equal(fake_count("cuCheckpointOperationComplete"), 1);
	/* The views live in them. */
	assert_int_equal(retained(), 2);
	fatal_is_acknowledged(&operation, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)");
}

static void complete_that_does_not_show_is_fatal(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error failed = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	fake_rule_works("cuCheckpointOperationComplete", 1, CUDA_SUCCESS, LOCKED);
	assert_refused(stasis_operation_complete(&operation, &failed), &failed, STASIS_LOST,
		       "the state is LOCKED, not CHECKPOINTED");
	fatal_is_acknowledged(&operation, "the state is LOCKED, not CHECKPOINTED");
}

static void marked_fatal_stays_fatal(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error copy = STASIS_ERROR_INIT;
	struct stasis_error later = STASIS_ERROR_INIT;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	assert_false(stasis_operation_acknowledge_fatal(&operation, NULL));
	(void)stasis_fail_cuda(&copy, STASIS_REFUSED, CUDA_ERROR_LAUNCH_FAILED, "copy chunk 3");
	(void)stasis_fail(&later, STASIS_REFUSED, "something later");
	stasis_operation_mark_fatal(&operation, &copy);
	stasis_operation_mark_fatal(&operation, &later);
	assert_refused(stasis_operation_complete(&operation, &err), &err, STASIS_LOST,
		       "copy chunk 3: CUDA_ERROR_LAUNCH_FAILED (719)");
	assert_int_equal(fake_count("cuCheckpointOperationComplete"), 0);
	fatal_is_acknowledged(&operation, "copy chunk 3");
}

static void fatal_without_a_cause_has_a_text(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&operation, &target, &checkpoint_options, &err), &err);
	stasis_operation_mark_fatal(&operation, NULL);
	fatal_is_acknowledged(&operation, "copying the memory of process");
}

static void views_must_match_the_image(void **state)
{
	struct stasis_view_expected good[] = {{fake_uuid(0), 5 * MIB}, {fake_uuid(1), 7 * MIB}};
	struct stasis_view_expected sizes[] = {{fake_uuid(0), 7 * MIB}, {fake_uuid(1), 5 * MIB}};
	struct stasis_view_expected other[] = {{fake_uuid(0), 5 * MIB}, {{{9}}, 7 * MIB}};
	struct {
		const struct stasis_view_expected *expected;
		unsigned int count;
		const char *text;
	} bad[] = {
		{sizes, 2, "the driver asks for 5242880 bytes on GPU-10101010"},
		{other, 2, "the image has bytes for GPU-09000000"},
		{good, 1, "the driver asks for the bytes of 2 GPUs, the image has 1"},
	};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error idle = STASIS_ERROR_INIT;
	struct stasis_error good_err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_operation_match(&operation, good, 2, &idle), &idle, STASIS_INTERNAL,
		       "no operation has begun");
	fake.state = CHECKPOINTED;
	assert_done(stasis_operation_begin(&operation, &target, &restore_options, &good_err),
		    &good_err);
	assert_done(stasis_operation_match(&operation, good, 2, &good_err), &good_err);
	assert_done(stasis_operation_complete(&operation, &good_err), &good_err);
	stasis_operation_close(&operation);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_error refused = STASIS_ERROR_INIT;
		int completes = fake_count("cuCheckpointOperationComplete");

		fake.state = CHECKPOINTED;
		assert_done(stasis_operation_begin(&operation, &target, &restore_options, &err),
			    &err);
		assert_refused(
			stasis_operation_match(&operation, bad[i].expected, bad[i].count, &err),
			&err, STASIS_LOST, bad[i].text);
		assert_refused(stasis_operation_complete(&operation, &refused), &refused,
			       STASIS_LOST, bad[i].text);
		assert_int_equal(fake_count("cuCheckpointOperationComplete"), completes);
		fatal_is_acknowledged(&operation, bad[i].text);
	}
}

static void adopted_operation_is_completed(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.state = CHECKPOINTING;
	assert_done(stasis_operation_adopt(&operation, &target, SAVE, &info, &err), &err);
	assert_int_equal(operation.view_count, 2);
	assert_int_equal(retained(), 2);
	assert_done(stasis_operation_complete(&operation, &err), &err);
	assert_ptr_equal(fake.completed, HANDLE);
	assert_int_equal(retained(), 0);
	stasis_operation_close(&operation);
}

static void bad_description_is_refused_when_adopted_too(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error complete = STASIS_ERROR_INIT;

	(void)state;
	fake.state = CHECKPOINTING;
	entries[1].size = 0;
	assert_refused(stasis_operation_adopt(&operation, &target, SAVE, &info, &err), &err,
		       STASIS_LOST, "entry 1 has no size");
	/* The verdict is kept: mending the description afterwards does not help. */
	entries[1].size = 5 * MIB;
	assert_refused(stasis_operation_complete(&operation, &complete), &complete, STASIS_LOST,
		       "entry 1 has no size");
	assert_int_equal(fake_count("cuCheckpointOperationComplete"), 0);
	assert_int_equal(operation.verdict.status, STASIS_LOST);
	fatal_is_acknowledged(&operation, "cannot be completed, and the process is lost");
}

static void nothing_to_adopt_is_refused(void **state)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error running = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;
	struct stasis_error unread = STASIS_ERROR_INIT;

	(void)state;
	fake.state = RUNNING;
	assert_refused(stasis_operation_adopt(&operation, &target, SAVE, &info, &running), &running,
		       STASIS_REFUSED, "is RUNNING, so none has begun");
	fake_rule("cuCheckpointProcessGetState", 3, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
	assert_refused(stasis_operation_adopt(&operation, &target, SAVE, &info, &unread), &unread,
		       STASIS_LOST, "read the checkpoint state");
	assert_int_equal(operation.state, STASIS_OPERATION_IDLE);
	fake.state = CHECKPOINTING;
	assert_refused(stasis_operation_adopt(&operation, &target, SAVE, NULL, &none), &none,
		       STASIS_LOST, "there is none");
	fatal_is_acknowledged(&operation, "there is none");
}

static void moved_from_and_released_are_idle(void **state)
{
	struct stasis_operation from = STASIS_OPERATION_EMPTY;
	struct stasis_operation to = STASIS_OPERATION_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_operation_begin(&from, &target, &checkpoint_options, &err), &err);
	stasis_operation_move(&from, &to);
	assert_int_equal(from.state, STASIS_OPERATION_IDLE);
	assert_int_equal(to.state, STASIS_OPERATION_BEGUN);
	stasis_operation_close(&from);
	assert_ptr_equal(stasis_operation_release(&to), &info);
	assert_int_equal(to.state, STASIS_OPERATION_IDLE);
	assert_int_equal(retained(), 2);
	stasis_operation_close(&to);
	assert_done(stasis_operation_adopt(&from, &target, SAVE, &info, &err), &err);
	stasis_operation_mark_fatal(&from, NULL);
	stasis_operation_move(&from, &to);
	stasis_operation_close(&from);
	fatal_is_acknowledged(&to, "copying");
}

#ifndef NDEBUG

/* Drops an operation in a child: the signal that ends the child. */
static int drop_signal(bool is_fatal)
{
	static const struct rlimit no_core = {0, 0};
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct stasis_operation operation = STASIS_OPERATION_EMPTY;

		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)signal(SIGABRT, SIG_DFL);
		if (stasis_operation_begin(&operation, &target, &checkpoint_options, NULL) != 0)
			_exit(1);
		if (is_fatal)
			stasis_operation_mark_fatal(&operation, NULL);
		stasis_operation_close(&operation);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void debug_build_asserts_that_nothing_is_dropped_unseen(void **state)
{
	(void)state;
	assert_int_equal(drop_signal(true), SIGABRT);
	assert_int_equal(drop_signal(false), SIGABRT);
}

#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		OPERATION_TEST(checkpoint_goes_its_way),
		OPERATION_TEST(restore_goes_its_way_with_pairs),
		OPERATION_TEST(second_complete_is_refused_and_changes_nothing),
		OPERATION_TEST(operation_in_use_is_not_begun_again),
		OPERATION_TEST(nothing_on_any_gpu_is_legal),
		OPERATION_TEST(target_that_ends_is_noticed_at_each_step),
		OPERATION_TEST(failed_complete_is_fatal_and_final),
		OPERATION_TEST(complete_that_does_not_show_is_fatal),
		OPERATION_TEST(marked_fatal_stays_fatal),
		OPERATION_TEST(fatal_without_a_cause_has_a_text),
		OPERATION_TEST(views_must_match_the_image),
		OPERATION_TEST(adopted_operation_is_completed),
		OPERATION_TEST(bad_description_is_refused_when_adopted_too),
		OPERATION_TEST(nothing_to_adopt_is_refused),
		OPERATION_TEST(moved_from_and_released_are_idle),
#ifndef NDEBUG
		OPERATION_TEST(debug_build_asserts_that_nothing_is_dropped_unseen),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
