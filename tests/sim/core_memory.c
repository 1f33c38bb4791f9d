/*
 * Description: native memory: pieces and blocks, arguments, a full device, poison after a free, a CPU that
 * touches it, and what sparse memory costs.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "base/process.h"

#include "check.h"
#include "device.h"

static void pieces_share_a_block(void)
{
	CUdeviceptr first = t_alloc(1000);
	CUdeviceptr second = t_alloc(1);
	CUdeviceptr large = t_alloc(3 * T_MIB);
	CUdeviceptr start = 0;
	size_t bytes = 0;

	T_EQ(second - first, 1024);
	T_EQ(first / T_BLOCK_BYTES, second / T_BLOCK_BYTES);
	T_EQ(large % T_BLOCK_BYTES, 0);
	T_OK(cuMemGetAddressRange_v2(&start, &bytes, first + 999));
	T_EQ(start, first);
	T_EQ(bytes, 1000);
	T_IS(cuMemGetAddressRange_v2(&start, &bytes, first + 1000), CUDA_ERROR_NOT_FOUND);
	T_OK(cuMemFree_v2(first));
	T_EQ(t_alloc(512), first);
	T_OK(cuMemFree_v2(first));
	T_OK(cuMemFree_v2(second));
	T_OK(cuMemFree_v2(large));
}

static void pitch_is_a_multiple_of_512(void)
{
	CUdeviceptr rows = 0;
	size_t pitch = 0;
	unsigned char row[6] = {0};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = row,
		.WidthInBytes = 2,
		.Height = 3,
	};

	T_OK(cuMemAllocPitch_v2(&rows, &pitch, 700, 3, 4));
	T_EQ(pitch, 1024);
	T_OK(cuMemsetD8_v2(rows, 1, 3 * pitch));
	T_OK(cuMemsetD2D8_v2(rows, pitch, 9, 1, 3));
	copy.srcDevice = rows;
	copy.srcPitch = pitch;
	T_OK(cuMemcpy2D_v2(&copy));
	T_EQ(memcmp(row, "\11\1\11\1\11\1", 6), 0);
	T_OK(cuMemFree_v2(rows));
}

static void wrong_arguments_are_refused(void)
{
	CUdeviceptr memory = t_alloc(4096);
	unsigned char bytes[8];

	T_IS(cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemAlloc_v2(&memory, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemFree_v2(memory + 512), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemcpyDtoH_v2(bytes, memory + 4092, 8), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemcpyDtoH_v2(bytes, 0, 8), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemcpyHtoD_v2(memory, NULL, 8), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemsetD32_v2(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemFree_v2(memory));
	T_IS(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemcpyDtoH_v2(bytes, memory, 8), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemFree_v2(0));
}

static void a_full_device_says_so(void)
{
	size_t before = t_free_bytes();
	CUdeviceptr most = t_alloc(before - 4 * T_MIB);
	CUdeviceptr more = 0;

	T_IS(cuMemAlloc_v2(&more, 16 * T_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	T_OK(cuMemFree_v2(most));
	T_EQ(t_free_bytes(), before);
}

static void freed_bytes_are_poisoned(void)
{
	CUdeviceptr neighbour = t_alloc(512);
	CUdeviceptr memory = t_alloc(STASIS_KIB * 64);

	t_fill(memory, STASIS_KIB * 64, 1);
	T_OK(cuMemFree_v2(memory));
	T_EQ(t_alloc(STASIS_KIB * 64), memory);
	T_TRUE(!t_matches(memory, STASIS_KIB * 64, 1));
	T_OK(cuMemFree_v2(memory));
	T_OK(cuMemFree_v2(neighbour));
}

static void the_cpu_faults_on_it(void)
{
	CUdeviceptr memory = t_alloc(4096);
	pid_t pid = (pid_t)T_SYS(fork());
	int status = 0;

	if (pid == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile unsigned char *)(uintptr_t)memory == 0 ? 0 : 1);
	}
	T_SYS(waitpid(pid, &status, 0));
	T_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	T_OK(cuMemFree_v2(memory));
}

/* Anonymous resident memory of this process. */
static size_t anonymous_bytes(void)
{
	uint64_t kib = 0;

	T_TRUE(stasis_process_status_kib(getpid(), "RssAnon:", &kib));
	return (size_t)kib * 1024;
}

/* Data at both ends and in the middle of a GiB, copied whole and zeroed. */
static void sparse_memory_costs_what_is_written(void)
{
	size_t before = anonymous_bytes();
	size_t bytes = 1024 * T_MIB;
	CUdeviceptr from = t_alloc(bytes);
	CUdeviceptr to = t_alloc(bytes);

	t_fill(from + 512 * T_MIB + 12, 1000, 7);
	t_fill(to, T_MIB, 8);
	T_OK(cuMemcpyDtoD_v2(to, from, bytes));
	t_verify(to + 512 * T_MIB + 12, 1000, 7);
	T_TRUE(!t_matches(to, T_MIB, 8));
	T_OK(cuMemsetD8_v2(to, 0, bytes));
	T_TRUE(!t_matches(to + 512 * T_MIB + 12, 1000, 7));
	T_TRUE(anonymous_bytes() < before + 32 * T_MIB);
	T_OK(cuMemFree_v2(from));
	T_OK(cuMemFree_v2(to));
}

static void host_memory_is_pinned_and_registered(void)
{
	static unsigned char own[8192];
	unsigned char *pinned = NULL;
	CUdeviceptr device = 0;
	unsigned flags = 0;

	T_OK(cuMemHostAlloc((void **)&pinned, 100, CU_MEMHOSTALLOC_PORTABLE));
	T_OK(cuMemHostGetDevicePointer_v2(&device, pinned, 0));
	T_EQ(device, (uintptr_t)pinned);
	T_OK(cuMemHostGetFlags(&flags, pinned));
	T_EQ(flags & CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
	T_OK(cuMemsetD8_v2(device, 3, 100));
	T_OK(cuCtxSynchronize());
	T_EQ(pinned[99], 3);
	T_OK(cuMemFreeHost(pinned));
	T_IS(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemHostRegister_v2(own, sizeof(own), 0));
	T_IS(cuMemHostRegister_v2(own + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	T_OK(cuMemHostUnregister(own));
	T_IS(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

int main(void)
{
	CUcontext context = t_cuda();

	pieces_share_a_block();
	pitch_is_a_multiple_of_512();
	wrong_arguments_are_refused();
	a_full_device_says_so();
	freed_bytes_are_poisoned();
	the_cpu_faults_on_it();
	sparse_memory_costs_what_is_written();
	host_memory_is_pinned_and_registered();
	T_TRUE(context != NULL);
	return 0;
}
