#ifndef STASIS_TESTS_STREAMS_FIXTURE_H
#define STASIS_TESTS_STREAMS_FIXTURE_H

/*
 * A driver of two contexts that a test of the interposer's account of streams plays, and the application's calls in
 * short, through the interposer's handlers. For one program.
 */

#include "unit.h"

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

#endif
