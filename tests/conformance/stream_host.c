/*
 * Description: host functions and memory operations on streams.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

struct sight {
	const volatile uint32_t *word;
	uint32_t seen;
	CUresult result;
};

static void CUDAAPI look(void *argument)
{
	struct sight *sight = argument;

	sight->seen = *sight->word;
}

static volatile uint32_t *host_words(void)
{
	void *memory = NULL;

	T_OK(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	*(uint32_t *)memory = 0;
	return memory;
}

static void host_function_is_ordered(void)
{
	struct sight sight = {0};
	volatile uint32_t *words;
	struct t_gate gate;
	CUstream stream;

	(void)t_cuda();
	words = host_words();
	sight.word = words;
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	T_OK(cuMemsetD32Async((CUdeviceptr)(uintptr_t)words, 5, 1, stream));
	T_OK(cuLaunchHostFunc(stream, look, &sight));
	T_OK(cuMemsetD32Async((CUdeviceptr)(uintptr_t)words, 6, 1, stream));
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	T_EQ(sight.seen, 5);
	T_EQ(*words, 6);
}

static void CUDAAPI call_cuda(void *argument)
{
	struct sight *sight = argument;
	CUdeviceptr address = 0;

	sight->result = cuMemAlloc_v2(&address, 4096);
}

static void host_function_has_no_cuda(void)
{
	struct sight sight = {.result = CUDA_SUCCESS};
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuLaunchHostFunc(stream, call_cuda, &sight));
	T_OK(cuStreamSynchronize(stream));
	T_IS(sight.result, CUDA_ERROR_NOT_PERMITTED);
}

struct callback {
	CUstream stream;
	CUresult status;
	int calls;
};

static void CUDAAPI on_callback(CUstream stream, CUresult status, void *argument)
{
	struct callback *callback = argument;

	callback->stream = stream;
	callback->status = status;
	callback->calls++;
}

static void callback_gets_status(void)
{
	struct callback callback = {.status = CUDA_ERROR_UNKNOWN};
	CUstream stream;

	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamAddCallback(stream, on_callback, &callback, 0));
	T_OK(cuStreamSynchronize(stream));
	T_EQ(callback.calls, 1);
	T_TRUE(callback.stream == stream);
	T_IS(callback.status, CUDA_SUCCESS);
	T_IS(cuStreamAddCallback(stream, on_callback, &callback, 1), CUDA_ERROR_INVALID_VALUE);
}

static void write_value(void)
{
	volatile uint32_t *words;
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	words = host_words();
	address = (CUdeviceptr)(uintptr_t)words;
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamWriteValue32_v2(stream, address, 0x12345678, 0));
	T_OK(cuStreamWriteValue64_v2(stream, address + 8, 0x1122334455667788, 0));
	T_OK(cuStreamSynchronize(stream));
	T_EQ(words[0], 0x12345678);
	T_EQ(words[2], 0x55667788);
	T_EQ(words[3], 0x11223344);
}

static CUresult synchronize_stream(void *stream)
{
	return cuStreamSynchronize(stream);
}

static void wait_value(void)
{
	struct t_task task;
	volatile uint32_t *words;
	CUdeviceptr address;
	CUstream stream;

	(void)t_cuda();
	words = host_words();
	address = (CUdeviceptr)(uintptr_t)words;
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamWaitValue32_v2(stream, address, 3, CU_STREAM_WAIT_VALUE_GEQ));
	T_OK(cuStreamWriteValue32_v2(stream, address + 4, 9, 0));
	t_task_start(&task, synchronize_stream, stream);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	__atomic_store_n(&words[0], 2, __ATOMIC_SEQ_CST);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	__atomic_store_n(&words[0], 4, __ATOMIC_SEQ_CST);
	T_OK(t_task_join(&task));
	T_EQ(words[1], 9);
}

static const struct t_behaviour behaviours[] = {
	{"host_function_is_ordered", T_DOCUMENTED,
	 "a host function runs after the work before it and before the work behind it",
	 host_function_is_ordered},
	{"host_function_has_no_cuda", T_DOCUMENTED, "CUDA calls in a host function: NOT_PERMITTED",
	 host_function_has_no_cuda},
	{"callback_gets_status", T_DOCUMENTED, "a stream callback gets its stream and status, once",
	 callback_gets_status},
	{"write_value", T_DOCUMENTED, "a stream writes words to memory", write_value},
	{"wait_value", T_DOCUMENTED, "a stream waits until a word has reached a value", wait_value},
};

T_BEHAVIOURS_MAIN(behaviours)
