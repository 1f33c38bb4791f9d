/* See loader.h. */

#include "loader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

void *loader_open(const char *name, int flags)
{
	const char *folder = getenv("STASIS_TEST_FAKE");
	char path[4096];
	void *handle;

	T_TRUE(folder);
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	handle = dlopen(path, flags);
	if (!handle)
		t_fail("%s", dlerror());
	return handle;
}

void *loader_find(void *handle, const char *name)
{
	void *address;

	(void)dlerror();
	address = dlsym(handle, name);
	if (!address)
		t_fail("dlsym '%s': %s", name, dlerror());
	/* As programs ask that do not trust a NULL. */
	T_TRUE(!dlerror());
	return address;
}

bool loader_is_ours(const void *address)
{
	Dl_info info;
	const char *slash;

	if (dladdr(address, &info) == 0)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return slash && strcmp(slash, "/libstasis-interpose.so") == 0;
}

void loader_called(void *libcuda, const char *name, unsigned long first)
{
	unsigned long arguments[8];
	fake_call_function *call = (fake_call_function *)loader_find(libcuda, "fake_call");
	const char *called = call(arguments);

	if (strcmp(called, name) != 0)
		t_fail("expected a call of '%s', the driver saw '%s'", name, called);
	T_EQ(arguments[0], first);
}

void loader_allocate(void *libcuda, void *entry)
{
	CUdeviceptr address = 0;

	T_OK(((alloc_function *)entry)(&address, 4096));
	T_EQ(address, 0x1000);
	loader_called(libcuda, "cuMemAlloc_v2", 4096);
}

/* The checks ask for names of results; these programs are linked with no driver that knows them. */
CUresult cuGetErrorName(CUresult result, const char **ret_name)
{
	(void)result;
	*ret_name = "a result";
	return CUDA_SUCCESS;
}
