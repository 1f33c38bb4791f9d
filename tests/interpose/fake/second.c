/*
 * Another tool's interposer: counts allocations and goes on to the next in the program's scope, or, with
 * SECOND_BY_HANDLE, to libcuda as it opened it.
 */

#include <dlfcn.h>
#include <stddef.h>

#include "base/compiler.h"
#include "driver/abi.h"

typedef CUresult alloc_function(CUdeviceptr *, size_t);

static int count;

PUBLIC int second_count(void);
PUBLIC int second_count(void)
{
	return count;
}

PUBLIC CUresult cuMemAlloc_v2(CUdeviceptr *ret_address, size_t bytes)
{
#ifdef SECOND_BY_HANDLE
	alloc_function *next =
		(alloc_function *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
#else
	alloc_function *next = (alloc_function *)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
#endif

	count++;
	return next ? next(ret_address, bytes) : CUDA_ERROR_NOT_FOUND;
}
