/*
 * Description: the interposer's account of contexts, streams and captures: what ends with what, and that a handle that
 * comes again is not taken for what had it before.
 */

#include "streams_fixture.h"

#include <pthread.h>

/* ---- contexts ---- */

static void destroyed_context_takes_its_own(void **state)
{
	(void)state;
	context_create(A);
	context_create(B);
	stream_create();
	capture_begin(S);
	fake.of_stream = B;
	capture_begin(T);
	fake.must_end = true;
	assert_int_equal(stasis_handle_cuCtxDestroy_v2(target_leave, A), CUDA_SUCCESS);
	counts_are(1, 0, 1);
	assert_ptr_equal(only(STASIS_CONTEXTS).life.context, B);
	assert_ptr_equal(only(STASIS_CAPTURES).key.stream, T);
}

/* Another thread is given the handle before the destroying call has come back. */
static void context_handle_comes_again(void **state)
{
	(void)state;
	context_create(A);
	fake.must_end = true;
	fake.remade = A;
	assert_int_equal(stasis_handle_cuCtxDestroy_v2(target_leave, A), CUDA_SUCCESS);
	counts_are(1, 0, 0);
	assert_int_equal(only(STASIS_CONTEXTS).life.id, fake.contexts[0].id);
}

static void context_destroy_refused(void **state)
{
	(void)state;
	context_create(A);
	stream_create();
	capture_begin(S);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(stasis_handle_cuCtxDestroy(target_leave, A), CUDA_ERROR_INVALID_VALUE);
	counts_are(1, 1, 1);
}

/* The error is of its work; the context is gone. */
static void context_destroyed_with_an_error(void **state)
{
	(void)state;
	context_create(A);
	stream_create();
	fake.result = CUDA_ERROR_ILLEGAL_ADDRESS;
	fake.must_end = true;
	assert_int_equal(stasis_handle_cuCtxDestroy_v2(target_leave, A),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
	counts_are(0, 0, 0);
}

static void context_detached(void **state)
{
	(void)state;
	context_create(A);
	capture_begin(S);
	assert_int_equal(stasis_handle_cuCtxDetach(target_leave, A), CUDA_SUCCESS);
	counts_are(1, 0, 1);
	fake.must_end = true;
	assert_int_equal(stasis_handle_cuCtxDetach(target_leave, A), CUDA_SUCCESS);
	counts_are(0, 0, 0);
}

static void primary_released(void **state)
{
	(void)state;
	stream_create();
	capture_begin(S);
	fake.is_active = 1;
	assert_int_equal(stasis_handle_cuDevicePrimaryCtxRelease_v2(target_primary, 0),
			 CUDA_SUCCESS);
	counts_are(0, 1, 1);
	fake.is_active = 0;
	fake.must_end = true;
	assert_int_equal(stasis_handle_cuDevicePrimaryCtxRelease(target_primary, 0), CUDA_SUCCESS);
	counts_are(0, 0, 0);
}

/* One that a context of the application's is beside, which stays. */
static void primary_reset(void **state)
{
	(void)state;
	context_create(B);
	stream_create();
	capture_begin(S);
	fake.of_stream = B;
	capture_begin(T);
	fake.must_end = true;
	assert_int_equal(stasis_handle_cuDevicePrimaryCtxReset_v2(target_primary, 0), CUDA_SUCCESS);
	counts_are(1, 0, 1);
}

/* It has a new life by the time that anybody looks. */
static void primary_reset_and_retained(void **state)
{
	(void)state;
	capture_begin(S);
	fake.must_end = true;
	fake.is_active = 1;
	assert_int_equal(stasis_handle_cuDevicePrimaryCtxReset(target_primary, 0), CUDA_SUCCESS);
	life_begin(A);
	capture_begin(T);
	stasis_lives_prune(&calls);
	assert_ptr_equal(only(STASIS_CAPTURES).key.stream, T);
}

/* The error that work left behind says nothing about the context. */
static CUresult failing_id(CUcontext context, unsigned long long *ret_id)
{
	(void)context;
	(void)ret_id;
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void context_that_cannot_be_asked(void **state)
{
	(void)state;
	context_create(A);
	calls.cuCtxGetId = failing_id;
	stasis_lives_prune(&calls);
	counts_are(1, 0, 0);
}

/* Before CUDA 12.0. */
static void driver_without_ids(void **state)
{
	(void)state;
	calls.cuCtxGetId = NULL;
	context_create(A);
	capture_begin(S);
	stasis_lives_prune(&calls);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(stasis_handle_cuCtxDestroy_v2(target_leave, A), CUDA_ERROR_INVALID_VALUE);
	counts_are(1, 0, 1);
	fake.result = CUDA_SUCCESS;
	assert_int_equal(stasis_handle_cuCtxDestroy_v2(target_leave, A), CUDA_SUCCESS);
	counts_are(0, 0, 0);
}

/* ---- streams ---- */

static void context_is_the_streams_own(void **state)
{
	(void)state;
	fake.current = A;
	fake.of_stream = B;
	stream_create();
	capture_begin(S);
	assert_ptr_equal(only(STASIS_STREAMS).life.context, B);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, B);
	/* A driver before 12.5 knows one question; one before 9.2 none at all. */
	calls.cuStreamGetCtx_v2 = NULL;
	capture_begin(S);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, B);
	calls.cuStreamGetCtx = NULL;
	capture_begin(S);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, A);
}

static CUresult target_green(CUgreenCtx green)
{
	life_end((CUcontext)(void *)green);
	return CUDA_SUCCESS;
}

/* Its streams end with it, while the primary context, which waits for them too, goes on. */
static void green_context(void **state)
{
	(void)state;
	capture_begin(T);
	fake.of_green = B;
	stream_create();
	assert_ptr_equal(only(STASIS_STREAMS).life.context, B);
	assert_ptr_equal(only(STASIS_STREAMS).context, A);
	capture_begin(S);
	counts_are(0, 1, 2);
	assert_int_equal(stasis_handle_cuGreenCtxDestroy(target_green, HANDLE(CUgreenCtx, B)),
			 CUDA_SUCCESS);
	assert_ptr_equal(only(STASIS_CAPTURES).key.stream, T);
	counts_are(0, 0, 1);
}

static void stream_destroy_refused(void **state)
{
	(void)state;
	stream_create();
	capture_begin(S);
	fake.result = CUDA_ERROR_INVALID_CONTEXT;
	assert_int_equal(stasis_handle_cuStreamDestroy(target_stream_destroy, S),
			 CUDA_ERROR_INVALID_CONTEXT);
	counts_are(0, 1, 1);
	fake.result = CUDA_SUCCESS;
	assert_int_equal(stasis_handle_cuStreamDestroy_v2(target_stream_destroy, S), CUDA_SUCCESS);
	counts_are(0, 0, 0);
	stream_create();
	capture_begin(S);
	/* Whether it is still there nobody knows: it must not be asked. */
	fake.result = CUDA_ERROR_ILLEGAL_ADDRESS;
	assert_int_equal(stasis_handle_cuStreamDestroy_v2(target_stream_destroy, S),
			 CUDA_ERROR_ILLEGAL_ADDRESS);
	counts_are(0, 0, 0);
}

static void stream_handle_comes_again(void **state)
{
	(void)state;
	stream_create();
	fake.remade = A;
	assert_int_equal(stasis_handle_cuStreamDestroy_v2(target_stream_destroy, S), CUDA_SUCCESS);
	counts_are(0, 1, 0);
	/* Also where the first call is said to have failed. */
	fake.remade = A;
	fake.result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(stasis_handle_cuStreamDestroy_v2(target_stream_destroy, S),
			 CUDA_ERROR_INVALID_VALUE);
	counts_are(0, 1, 0);
}

/* ---- captures ---- */

static void refused_capture_is_none(void **state)
{
	(void)state;
	fake.result = CUDA_ERROR_ILLEGAL_STATE;
	assert_int_equal(stasis_handle_cuStreamBeginCapture_v2(target_begin, S,
							       CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_ERROR_ILLEGAL_STATE);
	counts_are(0, 0, 0);
	/* One that was lost from sight is not counted beside the next. */
	fake.result = CUDA_SUCCESS;
	capture_begin(S);
	capture_begin(S);
	counts_are(0, 0, 1);
}

static void end_that_fails(void **state)
{
	(void)state;
	capture_begin(S);
	fake.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	capture_end(S, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	counts_are(0, 0, 1);
	fake.status_result = CUDA_ERROR_UNKNOWN;
	fake.status = CU_STREAM_CAPTURE_STATUS_NONE;
	capture_end(S, CUDA_ERROR_UNKNOWN);
	counts_are(0, 0, 1);
	fake.status_result = CUDA_SUCCESS;
	capture_end(S, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	counts_are(0, 0, 0);
}

static CUresult target_to_graph(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
				const CUgraphEdgeData *edges, size_t count,
				CUstreamCaptureMode mode)
{
	(void)stream;
	(void)graph;
	(void)nodes;
	(void)edges;
	(void)count;
	(void)mode;
	return CUDA_SUCCESS;
}

static void captures_into_a_graph(void **state)
{
	(void)state;
	capture_begin(S);
	assert_int_equal(
		stasis_handle_cuStreamBeginCaptureToGraph_ptsz(
			target_to_graph, NULL, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_SUCCESS);
	counts_are(0, 0, 2);
	capture_end(CU_STREAM_PER_THREAD, CUDA_SUCCESS);
	assert_ptr_equal(only(STASIS_CAPTURES).key.stream, S);
}

/* A thread has a default stream of its own in each context. */
static void own_default_stream_of_each_context(void **state)
{
	CUgraph graph = NULL;

	(void)state;
	capture_begin(CU_STREAM_PER_THREAD);
	fake.current = B;
	capture_begin(CU_STREAM_PER_THREAD);
	counts_are(0, 0, 2);
	assert_int_equal(stasis_handle_cuStreamEndCapture_ptsz(target_end, NULL, &graph),
			 CUDA_SUCCESS);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, A);
}

static void *capture_and_leave(void *unused)
{
	(void)unused;
	capture_begin(CU_STREAM_PER_THREAD);
	capture_begin(S);
	return NULL;
}

/* Its own default stream ends with it; a stream that it captured does not. */
static void thread_ends_capturing(void **state)
{
	pthread_t thread;

	(void)state;
	capture_begin(CU_STREAM_PER_THREAD);
	assert_int_equal(pthread_create(&thread, NULL, capture_and_leave, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	counts_are(0, 0, 2);
	capture_end(S, CUDA_SUCCESS);
	assert_ptr_equal(only(STASIS_CAPTURES).key.stream, CU_STREAM_PER_THREAD);
}

static void any_number(void **state)
{
	struct stasis_stream_record *records = NULL;
	uint32_t count = 0;

	(void)state;
	for (uintptr_t i = 1; i <= 5000; i++)
		capture_begin(HANDLE(CUstream, 0x10000 + 64 * i));
	assert_true(stasis_streams_copy(STASIS_CAPTURES, &records, &count));
	assert_int_equal(count, 5000);
	free(records);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(destroyed_context_takes_its_own),
		TEST(context_handle_comes_again),
		TEST(context_destroy_refused),
		TEST(context_destroyed_with_an_error),
		TEST(context_detached),
		TEST(primary_released),
		TEST(primary_reset),
		TEST(primary_reset_and_retained),
		TEST(context_that_cannot_be_asked),
		TEST(driver_without_ids),
		TEST(context_is_the_streams_own),
		TEST(green_context),
		TEST(stream_destroy_refused),
		TEST(stream_handle_comes_again),
		TEST(refused_capture_is_none),
		TEST(end_that_fails),
		TEST(captures_into_a_graph),
		TEST(own_default_stream_of_each_context),
		TEST(thread_ends_capturing),
		TEST(any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
