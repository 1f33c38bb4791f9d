/*
 * Description: initialisation, fork, contexts and their stack, several devices, peer access, and how
 * cuGetProcAddress answers names, versions and flags.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "device.h"

static void before_init(void)
{
	CUdevice device = 0;
	const char *name = NULL;

	T_IS(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
	T_EQ(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS"), 0);
	T_IS(cuGetErrorName((CUresult)12345, &name), CUDA_ERROR_INVALID_VALUE);
}

static void a_forked_child_has_lost_it(void)
{
	pid_t pid = (pid_t)T_SYS(fork());
	int status = 0;
	int count = 0;

	if (pid == 0) {
		T_IS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
		T_IS(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
		_exit(0);
	}
	T_SYS(waitpid(pid, &status, 0));
	T_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void context_stack(void)
{
	CUcontext primary = NULL;
	CUcontext own = NULL;
	CUcontext current = NULL;
	CUdeviceptr memory = 0;
	unsigned flags = 0;
	int active = 1;

	T_IS(cuMemAlloc_v2(&memory, 1), CUDA_ERROR_INVALID_CONTEXT);
	T_IS(cuCtxPopCurrent_v2(&current), CUDA_ERROR_INVALID_CONTEXT);
	T_OK(cuDevicePrimaryCtxRetain(&primary, 0));
	T_OK(cuCtxPushCurrent_v2(primary));
	T_OK(cuCtxCreate_v2(&own, 0, 0));
	T_OK(cuCtxGetCurrent(&current));
	T_TRUE(current == own);
	T_OK(cuMemAlloc_v2(&memory, 1));
	T_OK(cuCtxDestroy_v2(own));
	T_OK(cuCtxGetCurrent(&current));
	T_TRUE(current == primary);
	T_IS(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
	T_IS(cuMemAlloc_v2(&memory, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	T_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	T_EQ(active, 0);
	T_IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	T_OK(cuCtxSetCurrent(NULL));
}

static void two_devices(void)
{
	CUcontext contexts[2];
	CUuuid uuids[2];
	CUdeviceptr memory[2];
	CUdevice found = -1;
	char bus_id[32];
	int can = 0;

	t_need_devices(2);
	for (int i = 0; i < 2; i++) {
		T_OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		T_OK(cuCtxSetCurrent(contexts[i]));
		T_OK(cuDeviceGetUuid_v2(&uuids[i], i));
		memory[i] = t_alloc(4096);
	}
	T_TRUE(memcmp(&uuids[0], &uuids[1], sizeof(uuids[0])) != 0);
	T_OK(cuDeviceGetPCIBusId(bus_id, sizeof(bus_id), 1));
	T_OK(cuDeviceGetByPCIBusId(&found, bus_id));
	T_EQ(found, 1);
	T_OK(cuDeviceCanAccessPeer(&can, 0, 1));
	T_EQ(can, 1);
	t_fill(memory[1], 4096, 6);
	T_OK(cuMemcpyPeer(memory[0], contexts[0], memory[1], contexts[1], 4096));
	t_verify(memory[0], 4096, 6);
	T_OK(cuCtxEnablePeerAccess(contexts[0], 0));
	T_IS(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	T_OK(cuCtxDisablePeerAccess(contexts[0]));
	T_IS(cuCtxDisablePeerAccess(contexts[0]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

static void proc_address(void)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *address = NULL;
	int version = 0;

	T_OK(cuDriverGetVersion(&version));
	T_OK(cuGetProcAddress_v2("cuMemAlloc", &address, version, 0, &status));
	T_TRUE(address == (void *)cuMemAlloc_v2);
	T_OK(cuGetProcAddress_v2("cuStreamGetCtx", &address, 12000, 0, &status));
	T_TRUE(address == (void *)cuStreamGetCtx);
	T_OK(cuGetProcAddress_v2("cuStreamGetCtx", &address, 12050, 0, &status));
	T_TRUE(address == (void *)cuStreamGetCtx_v2);
	T_OK(cuGetProcAddress("cuGetProcAddress", &address, 11030, 0));
	T_TRUE(address == (void *)cuGetProcAddress);
	T_OK(cuGetProcAddress_v2("cuMemCreate", &address, 9000, 0, &status));
	T_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	T_IS(cuGetProcAddress("cuNoSuch", &address, version, 0), CUDA_ERROR_NOT_FOUND);
	T_OK(cuGetProcAddress_v2("cuNoSuch", &address, version, 0, &status));
	T_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	T_TRUE(address == NULL);
	T_IS(cuGetProcAddress_v2("cuInit", &address, version + 10, 0, &status),
	     CUDA_ERROR_INVALID_VALUE);
	T_IS(cuGetProcAddress_v2("cuInit", &address, version, 4, &status),
	     CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	t_ask_devices(2);
	before_init();
	t_init_only();
	a_forked_child_has_lost_it();
	context_stack();
	two_devices();
	proc_address();
	return 0;
}
