/*
 * Description: copies and memsets.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static void copies_move_bytes(void)
{
	CUdeviceptr first;
	CUdeviceptr second;

	(void)t_cuda();
	first = t_alloc(T_MIB);
	second = t_alloc(T_MIB);
	t_fill(first, T_MIB, 1);
	T_OK(cuMemcpyDtoD_v2(second, first, T_MIB));
	t_verify(second, T_MIB, 1);
}

static void memset_widths(void)
{
	unsigned char bytes[32];
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(4096);
	T_OK(cuMemsetD8_v2(address, 0xee, 32));
	T_OK(cuMemsetD8_v2(address, 0x11, 3));
	T_OK(cuMemsetD16_v2(address + 8, 0x2233, 3));
	T_OK(cuMemsetD32_v2(address + 16, 0x44556677, 3));
	T_OK(cuMemcpyDtoH_v2(bytes, address, sizeof(bytes)));
	T_EQ(bytes[2], 0x11);
	T_EQ(bytes[3], 0xee);
	T_EQ(bytes[12], 0x33);
	T_EQ(bytes[13], 0x22);
	T_EQ(bytes[14], 0xee);
	T_EQ(bytes[24], 0x77);
	T_EQ(bytes[27], 0x44);
	T_EQ(bytes[28], 0xee);
}

static void memset_alignment(void)
{
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(4096);
	T_IS(cuMemsetD32_v2(address + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemsetD16_v2(address + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemsetD8_v2(address + 1, 0, 4));
}

static void copy_in_two_dimensions(void)
{
	unsigned char image[4][8];
	unsigned char back[4][8];
	CUdeviceptr address = 0;
	size_t pitch = 0;

	(void)t_cuda();
	for (size_t i = 0; i < sizeof(image); i++)
		image[i / 8][i % 8] = (unsigned char)i;
	T_OK(cuMemAllocPitch_v2(&address, &pitch, 8, 4, 4));
	T_OK(cuMemsetD2D8_v2(address, pitch, 0xff, 8, 4));
	T_OK(cuMemcpy2D_v2(&(CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = image,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = address,
		.dstPitch = pitch,
		.WidthInBytes = 5,
		.Height = 4,
	}));
	for (size_t row = 0; row < 4; row++)
		T_OK(cuMemcpyDtoH_v2(back[row], address + row * pitch, 8));
	T_EQ(back[3][4], image[3][4]);
	T_EQ(back[0][0], image[0][0]);
	T_EQ(back[3][5], 0xff);
}

static void unified_copy(void)
{
	CUdeviceptr address;
	uint32_t in[4] = {1, 2, 3, 4};
	uint32_t out[4] = {0};

	(void)t_cuda();
	address = t_alloc(4096);
	T_OK(cuMemcpy(address, (CUdeviceptr)(uintptr_t)in, sizeof(in)));
	T_OK(cuMemcpy((CUdeviceptr)(uintptr_t)out, address, sizeof(out)));
	T_TRUE(!memcmp(in, out, sizeof(in)));
}

static void copy_of_nothing(void)
{
	char byte = 1;

	(void)t_cuda();
	T_OK(cuMemcpyDtoH_v2(&byte, t_alloc(4096), 0));
	T_EQ(byte, 1);
}

static void copy_beyond_end(void)
{
	CUdeviceptr address;
	char *memory = malloc(64 * T_MIB);

	(void)t_cuda();
	address = t_alloc(4 * T_MIB);
	T_IS(cuMemcpyDtoH_v2(memory, address, 64 * T_MIB), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemcpyDtoH_v2(memory, address, 4 * T_MIB));
	free(memory);
}

static void copy_from_nowhere(void)
{
	CUdeviceptr address;
	char bytes[64];

	(void)t_cuda();
	address = t_alloc(64 * T_MIB);
	T_OK(cuMemFree_v2(address));
	T_IS(cuMemcpyDtoH_v2(bytes, address, sizeof(bytes)), CUDA_ERROR_INVALID_VALUE);
	/* The context is none the worse for it. */
	t_fill(t_alloc(4096), 4096, 1);
}

struct async_copy {
	void *memory;
	CUdeviceptr address;
	CUstream stream;
};

static CUresult start_copy(void *argument)
{
	const struct async_copy *copy = argument;

	return cuMemcpyDtoHAsync_v2(copy->memory, copy->address, T_MIB, copy->stream);
}

static void async_copy_returns(void)
{
	struct async_copy copy = {0};
	struct t_gate gate;
	struct t_task task;

	(void)t_cuda();
	T_OK(cuMemHostAlloc(&copy.memory, T_MIB, 0));
	(void)memset(copy.memory, 0, T_MIB);
	copy.address = t_alloc(T_MIB);
	t_fill(copy.address, T_MIB, 1);
	copy.stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, copy.stream);
	t_task_start(&task, start_copy, &copy);
	T_TRUE(t_task_returns_within(&task, T_PASS_MS));
	T_OK(t_task_join(&task));
	T_EQ(*(uint32_t *)copy.memory, 0);
	T_IS(cuStreamQuery(copy.stream), CUDA_ERROR_NOT_READY);
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(copy.stream));
	T_EQ(*(uint32_t *)copy.memory, t_word(1, 0));
}

static CUresult copy_out(void *address)
{
	char bytes[64];

	return cuMemcpyDtoH_v2(bytes, *(CUdeviceptr *)address, sizeof(bytes));
}

static void copy_waits_for_blocking_streams(void)
{
	struct t_gate gate;
	struct t_task task;
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(4096);
	t_gate_close(&gate, t_stream(CU_STREAM_DEFAULT));
	t_task_start(&task, copy_out, &address);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_gate_open(&gate);
	T_OK(t_task_join(&task));
}

static void peer_copy(void)
{
	CUcontext first;
	CUcontext second = NULL;
	CUdeviceptr here;
	CUdeviceptr there;

	t_ask_devices(2);
	first = t_cuda();
	t_need_devices(2);
	here = t_alloc(T_MIB);
	t_fill(here, T_MIB, 1);
	T_OK(cuDevicePrimaryCtxRetain(&second, 1));
	T_OK(cuCtxSetCurrent(second));
	there = t_alloc(T_MIB);
	T_OK(cuMemcpyPeer(there, second, here, first, T_MIB));
	t_verify(there, T_MIB, 1);
}

static const struct t_behaviour behaviours[] = {
	{"copies_move_bytes", T_DOCUMENTED, "bytes arrive by way of host and device",
	 copies_move_bytes},
	{"memset_widths", T_DOCUMENTED, "memsets write so many items of 1, 2 and 4 bytes",
	 memset_widths},
	{"memset_alignment", T_DOCUMENTED, "wide memsets demand aligned addresses",
	 memset_alignment},
	{"copy_in_two_dimensions", T_DOCUMENTED, "a 2D copy moves rows and leaves what is beside",
	 copy_in_two_dimensions},
	{"unified_copy", T_DOCUMENTED, "cuMemcpy finds the direction from the addresses",
	 unified_copy},
	{"copy_of_nothing", T_DOCUMENTED, "a copy of no bytes succeeds", copy_of_nothing},
	{"copy_beyond_end", T_DOCUMENTED, "a copy beyond an allocation's end is INVALID_VALUE",
	 copy_beyond_end},
	{"copy_from_nowhere", T_DOCUMENTED, "a copy from freed memory is INVALID_VALUE",
	 copy_from_nowhere},
	{"async_copy_returns", T_DOCUMENTED, "an asynchronous copy returns before its turn comes",
	 async_copy_returns},
	{"copy_waits_for_blocking_streams", T_DOCUMENTED,
	 "a synchronous copy waits for blocking streams", copy_waits_for_blocking_streams},
	{"peer_copy", T_DOCUMENTED, "a peer copy moves bytes to another device", peer_copy},
};

T_BEHAVIOURS_MAIN(behaviours)
