/*
 * Description: memory of cuMemAlloc.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static void alloc_zero(void)
{
	CUdeviceptr address = 0;

	(void)t_cuda();
	T_IS(cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemAlloc_v2(NULL, 4096), CUDA_ERROR_INVALID_VALUE);
}

static void alloc_too_much(void)
{
	CUdeviceptr address = 0;
	size_t total = 0;

	(void)t_cuda();
	T_OK(cuDeviceTotalMem_v2(&total, 0));
	T_IS(cuMemAlloc_v2(&address, total + T_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	/* The context is none the worse for it. */
	t_fill(t_alloc(4096), 4096, 1);
}

static void alloc_steps(void)
{
	CUdeviceptr addresses[8];

	(void)t_cuda();
	for (size_t i = 0; i < 8; i++) {
		addresses[i] = t_alloc(1 + i * 100);
		T_EQ(addresses[i] % 512, 0);
	}
	for (size_t i = 1; i < 8; i++)
		T_EQ(addresses[i] / T_BLOCK_BYTES, addresses[0] / T_BLOCK_BYTES);
}

static void free_unknown(void)
{
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(4 * T_MIB);
	T_IS(cuMemFree_v2(address + 4096), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemFree_v2(address));
	T_IS(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
}

static void free_returns_memory(void)
{
	size_t before;
	CUdeviceptr address;

	(void)t_cuda();
	before = t_free_bytes();
	address = t_alloc(64 * T_MIB);
	T_TRUE(t_free_bytes() <= before - 64 * T_MIB);
	T_OK(cuMemFree_v2(address));
	T_TRUE(t_free_bytes() >= before - T_SLACK_BYTES);
}

static CUresult free_it(void *address)
{
	return cuMemFree_v2(*(CUdeviceptr *)address);
}

static void free_waits(void)
{
	struct t_gate gate;
	struct t_task task;
	CUdeviceptr small;
	CUdeviceptr other;
	CUstream stream;

	(void)t_cuda();
	small = t_alloc(1024);
	other = t_alloc(4 * T_MIB);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	T_OK(cuMemsetD8Async(other, 1, 4 * T_MIB, stream));
	t_task_start(&task, free_it, &small);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_gate_open(&gate);
	T_OK(t_task_join(&task));
	T_OK(cuStreamSynchronize(stream));
}

static void address_range(void)
{
	CUdeviceptr address;
	CUdeviceptr base = 0;
	size_t bytes = 0;

	(void)t_cuda();
	address = t_alloc(1000);
	T_OK(cuMemGetAddressRange_v2(&base, &bytes, address + 10));
	T_EQ(base, address);
	T_EQ(bytes, 1000);
}

static void pitch_steps(void)
{
	CUdeviceptr address = 0;
	size_t pitch = 0;

	(void)t_cuda();
	T_OK(cuMemAllocPitch_v2(&address, &pitch, 1000, 10, 4));
	T_TRUE(pitch >= 1000);
	T_EQ(pitch % 512, 0);
	T_OK(cuMemAllocPitch_v2(&address, &pitch, 100000, 10, 16));
	T_TRUE(pitch >= 100000);
	T_EQ(pitch % 512, 0);
}

static sigjmp_buf fault_jump;

static void on_fault(int number)
{
	siglongjmp(fault_jump, number);
}

static void cpu_touch_faults(void)
{
	struct sigaction action = {.sa_handler = on_fault};
	const volatile unsigned char *bytes;

	(void)t_cuda();
	bytes = (const volatile unsigned char *)(uintptr_t)t_alloc(4096);
	T_SYS(sigaction(SIGSEGV, &action, NULL));
	T_SYS(sigaction(SIGBUS, &action, NULL));
	if (sigsetjmp(fault_jump, 1) == 0)
		t_fail("the CPU reads %u at a device address, should fault", bytes[0]);
}

static const struct t_behaviour behaviours[] = {
	{"alloc_zero", T_DOCUMENTED, "an allocation of no bytes is INVALID_VALUE", alloc_zero},
	{"alloc_too_much", T_DOCUMENTED, "more than the device has is OUT_OF_MEMORY",
	 alloc_too_much},
	{"alloc_steps", T_MEASURED, "small allocations lie at steps of 512 bytes in a 2 MiB block",
	 alloc_steps},
	{"free_unknown", T_DOCUMENTED,
	 "only the start of a live allocation can be freed, and once: INVALID_VALUE", free_unknown},
	{"free_returns_memory", T_MEASURED, "cuMemGetInfo sees what is allocated and freed",
	 free_returns_memory},
	{"free_waits", T_MEASURED, "cuMemFree waits for all queued work of the context",
	 free_waits},
	{"address_range", T_MEASURED,
	 "cuMemGetAddressRange gives base and requested size for any address inside",
	 address_range},
	{"pitch_steps", T_MEASURED, "a pitch is a multiple of 512", pitch_steps},
	{"cpu_touch_faults", T_DOCUMENTED, "the CPU cannot touch device memory", cpu_touch_faults},
};

T_BEHAVIOURS_MAIN(behaviours)
