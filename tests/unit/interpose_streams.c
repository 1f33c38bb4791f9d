/*
 * Description: the interposer's account of contexts, streams and captures: what ends with what, and that a handle that
 * comes again is not taken for what had it before.
 */

#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/handlers.h"
#include "interpose/lives.h"
#include "interpose/streams.h"

#define HANDLE(type, number) ((type)(uintptr_t)(number))
#define A HANDLE(CUcontext, 0xa000)
#define B HANDLE(CUcontext, 0xb000)
#define S HANDLE(CUstream, 0x1000)
#define T HANDLE(CUstream, 0x2000)

/* ---- the driver that the test plays ---- */

static struct {
	CUcontext current;
	CUcontext of_stream; /* of every stream but the default ones */
	CUcontext of_green;  /* what the first form of the question says instead */
	struct {
		CUcontext context;
		unsigned long long id; /* 0: it has ended */
	} contexts[2];
	unsigned long long last_id;
	int is_active;
	CUresult result;  /* of the call that the application makes */
	bool must_end;    /* the call ends context A */
	CUcontext remade; /* meanwhile another thread gets this handle, for a context or a stream */
	CUresult status_result;
	CUstreamCaptureStatus status;
} fake;

static CUresult fake_id(CUcontext context, unsigned long long *ret_id)
{
	for (size_t i = 0; i < ARRAY_COUNT(fake.contexts); i++) {
		if (fake.contexts[i].context != context)
			continue;
		if (fake.contexts[i].id == 0)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		*ret_id = fake.contexts[i].id;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult fake_current(CUcontext *ret_context)
{
	*ret_context = fake.current;
	return CUDA_SUCCESS;
}

static bool is_default(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static CUresult fake_context_v2(CUstream stream, CUcontext *ret_context, CUgreenCtx *ret_green)
{
	*ret_context = is_default(stream) ? fake.current : fake.of_stream;
	*ret_green = NULL;
	return CUDA_SUCCESS;
}

static CUresult fake_context(CUstream stream, CUcontext *ret_context)
{
	CUgreenCtx green;

	(void)fake_context_v2(stream, ret_context, &green);
	if (fake.of_green)
		*ret_context = fake.of_green;
	return CUDA_SUCCESS;
}

static CUresult fake_state(CUdevice device, unsigned int *ret_flags, int *ret_active)
{
	(void)device;
	*ret_flags = 0;
	*ret_active = fake.is_active;
	return CUDA_SUCCESS;
}

static CUresult fake_capturing(CUstream stream, CUstreamCaptureStatus *ret_status)
{
	(void)stream;
	*ret_status = fake.status;
	return fake.status_result;
}

static struct stasis_calls calls;

const struct stasis_calls *stasis_calls_get(void)
{
	return &calls;
}

static void life_begin(CUcontext context)
{
	size_t i = context == A ? 0 : 1;

	fake.contexts[i].context = context;
	fake.contexts[i].id = ++fake.last_id;
}

static void life_end(CUcontext context)
{
	fake.contexts[context == A ? 0 : 1].id = 0;
}

static int begin(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	calls = (struct stasis_calls){
		.cuCtxGetCurrent = fake_current,
		.cuCtxGetId = fake_id,
		.cuDevicePrimaryCtxGetState = fake_state,
		.cuStreamGetCtx = fake_context,
		.cuStreamGetCtx_v2 = fake_context_v2,
		.cuStreamIsCapturing = fake_capturing,
	};
	life_begin(A);
	life_begin(B);
	fake.current = A;
	fake.of_stream = A;
	return 0;
}

static int end(void **state)
{
	(void)state;
	life_end(A);
	life_end(B);
	calls.cuCtxGetId = fake_id;
	stasis_lives_prune(&calls);
	for (int list = 0; list < STASIS_STREAM_LIST_COUNT; list++)
		assert_int_equal(stasis_streams_count((enum stasis_stream_list)list), 0);
	return 0;
}

/* ---- the application's calls ---- */

static CUresult target_create(CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	(void)flags;
	(void)device;
	*ret_context = fake.remade;
	life_begin(fake.remade);
	return CUDA_SUCCESS;
}

static void context_create(CUcontext context)
{
	CUcontext made = NULL;

	fake.remade = context;
	assert_int_equal(stasis_handle_cuCtxCreate_v2(target_create, &made, 0, 0), CUDA_SUCCESS);
	assert_ptr_equal(made, context);
	fake.remade = NULL;
}

static CUresult target_leave(CUcontext context)
{
	if (fake.must_end)
		life_end(context);
	if (fake.remade)
		context_create(fake.remade);
	return fake.result;
}

static CUresult target_primary(CUdevice device)
{
	(void)device;
	if (fake.must_end)
		life_end(A);
	return fake.result;
}

static CUresult target_stream_create(CUstream *ret_stream, unsigned int flags)
{
	(void)flags;
	*ret_stream = S;
	return CUDA_SUCCESS;
}

static void stream_create(void)
{
	CUstream stream = NULL;

	assert_int_equal(stasis_handle_cuStreamCreate(target_stream_create, &stream, 0),
			 CUDA_SUCCESS);
}

static CUresult target_stream_destroy(CUstream stream)
{
	(void)stream;
	if (fake.remade) {
		fake.remade = NULL;
		stream_create();
	}
	return fake.result;
}

static CUresult target_begin(CUstream stream, CUstreamCaptureMode mode)
{
	(void)stream;
	(void)mode;
	return fake.result;
}

static void capture_begin(CUstream stream)
{
	assert_int_equal(stasis_handle_cuStreamBeginCapture_v2(target_begin, stream,
							       CU_STREAM_CAPTURE_MODE_RELAXED),
			 CUDA_SUCCESS);
}

static CUresult target_end(CUstream stream, CUgraph *ret_graph)
{
	(void)stream;
	(void)ret_graph;
	return fake.result;
}

static void capture_end(CUstream stream, CUresult result)
{
	CUgraph graph = NULL;

	fake.result = result;
	assert_int_equal(stasis_handle_cuStreamEndCapture(target_end, stream, &graph), result);
	fake.result = CUDA_SUCCESS;
}

/* The only record of the list. */
static struct stasis_stream_record only(enum stasis_stream_list list)
{
	struct stasis_stream_record *records = NULL;
	struct stasis_stream_record record;
	uint32_t count = 0;

	assert_true(stasis_streams_copy(list, &records, &count));
	assert_int_equal(count, 1);
	record = records[0];
	free(records);
	return record;
}

static void counts_are(uint32_t contexts, uint32_t streams, uint32_t captures)
{
	assert_int_equal(stasis_streams_count(STASIS_CONTEXTS), contexts);
	assert_int_equal(stasis_streams_count(STASIS_STREAMS), streams);
	assert_int_equal(stasis_streams_count(STASIS_CAPTURES), captures);
}

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
	/* A green context's stream is of the primary one, which waits for it too. */
	fake.of_green = A;
	stream_create();
	capture_begin(S);
	assert_ptr_equal(only(STASIS_STREAMS).life.context, B);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, B);
	/* A driver before 12.5 knows no other question; one before 9.2 none at all. */
	calls.cuStreamGetCtx_v2 = NULL;
	capture_begin(S);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, A);
	calls.cuStreamGetCtx = NULL;
	fake.current = B;
	capture_begin(S);
	assert_ptr_equal(only(STASIS_CAPTURES).life.context, B);
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
