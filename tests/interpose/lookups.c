/*
 * Description: what the program finds with dlsym, cuGetProcAddress and the runtime's lookups, and what
 * it must find as if the interposer were not there.
 */

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "behaviour.h"
#include "check.h"
#include "loader.h"

typedef CUresult bind_function(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle,
			       size_t, size_t, unsigned long long);
typedef CUresult bind2_function(CUmemGenericAllocationHandle, CUdevice, size_t,
				CUmemGenericAllocationHandle, size_t, size_t, unsigned long long);
typedef CUresult ipc_open_function(CUdeviceptr *, CUipcMemHandle, unsigned int);
typedef CUresult clamp_function(void *, float, float);

static void *libcuda_open(void)
{
	return loader_open("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void by_handle(void)
{
	void *libcuda = libcuda_open();
	void *alloc = loader_find(libcuda, "cuMemAlloc_v2");

	T_TRUE(loader_is_ours(alloc));
	T_TRUE(!loader_is_ours(loader_find(libcuda, "cuDriverGetVersion")));
	T_TRUE(!loader_is_ours(loader_find(libcuda, "cuBrandNew")));
	loader_allocate(libcuda, alloc);
	T_EQ(dlsym(libcuda, "cuMemAlloc_v2"), alloc);
}

static void missing(void)
{
	void *libcuda = libcuda_open();

	T_TRUE(!dlsym(libcuda, "cuGraphLaunch"));
	T_TRUE(dlerror());
	/* One that is there tells of no error, whatever was tried to find it. */
	(void)loader_find(libcuda, "cuMemAlloc_v2");
	T_TRUE(!dlsym(libcuda, "cuGraphLaunch_v9"));
	T_TRUE(dlerror());
}

static void arguments_arrive(void)
{
	void *libcuda = libcuda_open();
	fake_call_function *call = (fake_call_function *)loader_find(libcuda, "fake_call");
	CUipcMemHandle handle = {.reserved = {[0] = 17, [63] = 99}};
	CUdeviceptr address = 0;
	unsigned long seen[8];

	T_IS(((bind_function *)loader_find(libcuda, "cuMulticastBindMem"))(1, 2, 3, 4, 5, 6),
	     CUDA_ERROR_NOT_SUPPORTED);
	T_TRUE(!strcmp(call(seen), "cuMulticastBindMem"));
	for (unsigned long i = 0; i < 6; i++)
		T_EQ(seen[i], i + 1);
	T_IS(((bind2_function *)loader_find(libcuda, "cuMulticastBindMem_v2"))(1, 2, 3, 4, 5, 6, 7),
	     CUDA_ERROR_NOT_PERMITTED);
	T_TRUE(!strcmp(call(seen), "cuMulticastBindMem_v2"));
	for (unsigned long i = 0; i < 7; i++)
		T_EQ(seen[i], i + 1);
	T_OK(((ipc_open_function *)loader_find(libcuda, "cuIpcOpenMemHandle_v2"))(&address, handle,
										  5));
	T_EQ(address, 0x3000);
	T_TRUE(!strcmp(call(seen), "cuIpcOpenMemHandle_v2"));
	T_TRUE(seen[0] == 17 && seen[1] == 99 && seen[2] == 5);
	T_OK(((clamp_function *)loader_find(libcuda, "cuTexRefSetMipmapLevelClamp"))(&handle, 1.25f,
										     2.5f));
	T_TRUE(!strcmp(call(seen), "cuTexRefSetMipmapLevelClamp"));
	T_TRUE(seen[0] == (unsigned long)&handle && seen[1] == 5 && seen[2] == 10);
}

static void errno_is_kept(void)
{
	void *libcuda = libcuda_open();
	void *alloc;

	errno = 4711;
	alloc = dlsym(libcuda, "cuMemAlloc_v2");
	T_EQ(errno, 4711);
	loader_allocate(libcuda, alloc);
	T_EQ(errno, 4711);
}

static void by_version(void)
{
	void *libcuda = libcuda_open();
	proc_address5_function *ask =
		(proc_address5_function *)loader_find(libcuda, "cuGetProcAddress_v2");
	CUdriverProcAddressQueryResult status;
	void *newer = NULL;
	void *older = NULL;
	void *unknown = &status;

	T_TRUE(loader_is_ours((void *)ask));
	T_OK(ask("cuMemAlloc", &newer, 12000, 0, &status));
	T_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
	loader_allocate(libcuda, newer);
	T_TRUE(loader_is_ours(newer));
	T_OK(ask("cuMemAlloc", &older, 2000, 0, &status));
	T_TRUE(loader_is_ours(older) && older != newer);
	T_OK(ask("cuGraphLaunch", &unknown, 12000, 0, &status));
	T_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	T_TRUE(!unknown);
	T_OK(ask("cuBrandNew", &unknown, 12000, 0, &status));
	T_TRUE(unknown && !loader_is_ours(unknown));
}

static void by_version_before_12(void)
{
	void *libcuda = libcuda_open();
	proc_address4_function *ask =
		(proc_address4_function *)loader_find(libcuda, "cuGetProcAddress");
	void *entry = NULL;

	T_TRUE(loader_is_ours((void *)ask));
	T_OK(ask("cuMemAlloc", &entry, 11030, 0));
	T_TRUE(loader_is_ours(entry));
	loader_allocate(libcuda, entry);
	T_IS(ask("cuGraphLaunch", &entry, 11030, 0), CUDA_ERROR_NOT_FOUND);
	T_TRUE(!entry);
}

/* The name cuGetProcAddress stands for a function of four arguments or of five. */
static void lookup_of_lookup(void)
{
	void *libcuda = libcuda_open();
	proc_address5_function *ask =
		(proc_address5_function *)loader_find(libcuda, "cuGetProcAddress_v2");
	CUdriverProcAddressQueryResult status;
	void *four = NULL;
	void *five = NULL;
	void *entry = NULL;

	T_OK(ask("cuGetProcAddress", &four, 11030, 0, &status));
	T_OK(ask("cuGetProcAddress", &five, 12000, 0, &status));
	T_EQ(four, loader_find(libcuda, "cuGetProcAddress"));
	T_EQ(five, (void *)ask);
	T_OK(((proc_address4_function *)four)("cuMemAlloc", &entry, 12000, 3));
	loader_called(libcuda, "cuGetProcAddress", 3);
	loader_allocate(libcuda, entry);
}

static void runtime_use(void *libcuda, const char *name, int version)
{
	void *runtime = loader_open(name, RTLD_NOW | RTLD_LOCAL);
	int (*query)(const char *, void **, unsigned long long, int *) =
		(int (*)(const char *, void **, unsigned long long, int *))loader_find(
			runtime, "cudaGetDriverEntryPoint");
	int (*tell)(void) = (int (*)(void))loader_find(runtime, "fake_runtime_version");
	int status = -5;
	void *entry = NULL;

	T_EQ(tell(), version);
	T_TRUE(loader_is_ours((void *)query));
	T_EQ(query("cuMemAlloc", &entry, 0, &status), 0);
	T_TRUE(loader_is_ours(entry));
	/* A library of CUDA 11 has no such output and leaves it alone. */
	T_EQ(status, version < 12000 ? -5 : (int)CU_GET_PROC_ADDRESS_SUCCESS);
	loader_allocate(libcuda, entry);
	T_EQ(query("cuGraphLaunch", &entry, 0, &status), 500);
	T_TRUE(!entry);
	T_TRUE(!loader_is_ours((void *)tell));
}

static void runtimes_beside_each_other(void)
{
	void *libcuda = libcuda_open();

	runtime_use(libcuda, "libcudart.so.11.0", 11080);
	runtime_use(libcuda, "libcudart.so.12", 12090);
	runtime_use(libcuda, "libcudart.so.13", 13000);
	runtime_use(libcuda, "libcudart.so.11.0", 11080);
}

static void runtime_by_version(void)
{
	void *libcuda = libcuda_open();
	void *runtime = loader_open("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
	int (*query)(const char *, void **, unsigned int, unsigned long long, int *) =
		(int (*)(const char *, void **, unsigned int, unsigned long long,
			 int *))loader_find(runtime, "cudaGetDriverEntryPointByVersion");
	int status = -5;
	void *newer = NULL;
	void *older = NULL;

	T_EQ(query("cuMulticastBindMem", &newer, 13010, 0, &status), 0);
	T_EQ(query("cuMulticastBindMem", &older, 12010, 0, &status), 0);
	T_EQ(newer, loader_find(libcuda, "cuMulticastBindMem_v2"));
	T_EQ(older, loader_find(libcuda, "cuMulticastBindMem"));
}

static const struct t_behaviour behaviours[] = {
	{"by_handle", T_DOCUMENTED, "dlsym with libcuda's handle gives wrappers", by_handle},
	{"missing", T_DOCUMENTED, "what the driver has not is not found", missing},
	{"arguments_arrive", T_DOCUMENTED, "arguments of all kinds and the result pass unchanged",
	 arguments_arrive},
	{"errno_is_kept", T_DOCUMENTED, "lookups and calls keep errno", errno_is_kept},
	{"by_version", T_DOCUMENTED, "cuGetProcAddress_v2 gives the wrapper of the version",
	 by_version},
	{"by_version_before_12", T_DOCUMENTED, "so does the form with four arguments",
	 by_version_before_12},
	{"lookup_of_lookup", T_DOCUMENTED, "cuGetProcAddress finds itself, in the right form",
	 lookup_of_lookup},
	{"runtimes_beside_each_other", T_DOCUMENTED,
	 "cudaGetDriverEntryPoint of CUDA 11, 12 and 13 in one process",
	 runtimes_beside_each_other},
	{"runtime_by_version", T_DOCUMENTED, "cudaGetDriverEntryPointByVersion",
	 runtime_by_version},
};

T_BEHAVIOURS_MAIN(behaviours)
