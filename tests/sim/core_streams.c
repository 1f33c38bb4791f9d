/*
 * Description: work in streams runs asynchronously and in order; the legacy stream waits for blocking
 * streams and they for it; events, callbacks, memory waits and per-thread streams.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "device.h"
#include "gate.h"

static void order_in_a_stream(void)
{
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr memory = t_alloc(T_MIB);
	struct t_gate gate;
	uint32_t word = 0;

	t_gate_close(&gate, stream);
	T_OK(cuMemsetD32Async(memory, 1, 1, stream));
	T_OK(cuMemsetD32Async(memory, 2, 1, stream));
	T_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	T_OK(cuMemcpyDtoH_v2(&word, memory, sizeof(word)));
	T_EQ(word, 2);
	T_OK(cuStreamQuery(stream));
	T_OK(cuStreamDestroy_v2(stream));
	T_IS(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	T_OK(cuMemFree_v2(memory));
}

static void legacy_stream_waits(unsigned flags, CUresult expected)
{
	CUstream stream = t_stream(flags);
	CUdeviceptr memory = t_alloc(T_MIB);
	CUevent event = NULL;
	struct t_gate gate;

	T_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	t_gate_close(&gate, stream);
	T_OK(cuMemsetD8_v2(memory, 1, T_MIB));
	T_OK(cuEventRecord(event, NULL));
	if (expected == CUDA_SUCCESS)
		T_OK(cuEventSynchronize(event));
	T_IS(cuEventQuery(event), expected);
	t_gate_open(&gate);
	T_OK(cuEventSynchronize(event));
	T_OK(cuEventDestroy_v2(event));
	T_OK(cuStreamDestroy_v2(stream));
	T_OK(cuMemFree_v2(memory));
}

static void events_order_streams(void)
{
	CUstream first = t_stream(CU_STREAM_NON_BLOCKING);
	CUstream second = t_stream(CU_STREAM_NON_BLOCKING);
	CUevent start = NULL;
	CUevent end = NULL;
	struct t_gate gate;
	float ms = -1;

	T_OK(cuEventCreate(&start, CU_EVENT_DEFAULT));
	T_OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
	T_IS(cuEventElapsedTime_v2(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
	T_OK(cuEventQuery(start));
	t_gate_close(&gate, first);
	T_OK(cuEventRecord(start, first));
	T_OK(cuStreamWaitEvent(second, start, 0));
	T_OK(cuEventRecord(end, second));
	T_IS(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	T_IS(cuEventElapsedTime_v2(&ms, start, end), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuEventSynchronize(end));
	T_OK(cuEventElapsedTime_v2(&ms, start, end));
	T_TRUE(ms >= 0);
	T_OK(cuEventDestroy_v2(start));
	T_IS(cuEventQuery(start), CUDA_ERROR_INVALID_HANDLE);
	T_OK(cuEventDestroy_v2(end));
	T_OK(cuStreamDestroy_v2(first));
	T_OK(cuStreamDestroy_v2(second));
}

static void count_call(CUstream stream, CUresult result, void *data)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)atomic_fetch_add((atomic_int *)data, 1);
}

static void callbacks_and_memory_waits(void)
{
	CUstream stream = t_stream(CU_STREAM_DEFAULT);
	CUdeviceptr flag = t_alloc(8);
	atomic_int calls = 0;

	T_OK(cuMemsetD32_v2(flag, 0, 2));
	T_OK(cuCtxSynchronize());
	T_OK(cuStreamWaitValue32_v2(stream, flag, 5, CU_STREAM_WAIT_VALUE_GEQ));
	T_OK(cuStreamAddCallback(stream, count_call, &calls, 0));
	T_IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	T_OK(cuStreamWriteValue32_v2(CU_STREAM_PER_THREAD, flag, 6, 0));
	T_OK(cuStreamSynchronize(stream));
	T_EQ(atomic_load(&calls), 1);
	T_IS(cuStreamWaitValue64_v2(stream, flag + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuStreamDestroy_v2(stream));
	T_OK(cuMemFree_v2(flag));
}

static void *use_own_stream(void *context)
{
	unsigned long long id = 0;

	T_OK(cuCtxSetCurrent(context));
	T_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id));
	T_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return (void *)(uintptr_t)id;
}

static void each_thread_has_a_stream(CUcontext context)
{
	unsigned long long own = 0;
	unsigned long long legacy = 0;
	pthread_t thread;
	void *other = NULL;

	T_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
	T_OK(cuStreamGetId(NULL, &legacy));
	T_EQ(pthread_create(&thread, NULL, use_own_stream, context), 0);
	T_EQ(pthread_join(thread, &other), 0);
	T_TRUE((uintptr_t)other != own && own != legacy);
}

/* The work of a destroyed stream still ends, and a free waits for it. */
static void a_destroyed_stream_ends_its_work(void)
{
	CUstream stream = t_stream(CU_STREAM_NON_BLOCKING);
	atomic_int calls = 0;
	struct t_gate gate;

	t_gate_close(&gate, stream);
	T_OK(cuStreamAddCallback(stream, count_call, &calls, 0));
	T_OK(cuStreamDestroy_v2(stream));
	T_EQ(atomic_load(&calls), 0);
	t_gate_open(&gate);
	T_OK(cuCtxSynchronize());
	T_EQ(atomic_load(&calls), 1);
}

int main(void)
{
	CUcontext context = t_cuda();

	order_in_a_stream();
	legacy_stream_waits(CU_STREAM_DEFAULT, CUDA_ERROR_NOT_READY);
	legacy_stream_waits(CU_STREAM_NON_BLOCKING, CUDA_SUCCESS);
	events_order_streams();
	callbacks_and_memory_waits();
	each_thread_has_a_stream(context);
	a_destroyed_stream_ends_its_work();
	return 0;
}
