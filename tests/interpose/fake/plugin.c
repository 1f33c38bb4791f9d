/*
 * A library of the application that is linked with libcuda and is opened RTLD_LOCAL; its lookups of
 * RTLD_NEXT and RTLD_DEFAULT are made from a place of their own in the program's scope.
 */

#include <dlfcn.h>
#include <stddef.h>

#include "base/compiler.h"
#include "driver/abi.h"

PUBLIC int plugin_alloc(void);
PUBLIC int plugin_alloc(void)
{
	CUdeviceptr address = 0;

	if (cuMemAlloc_v2(&address, 77) != CUDA_SUCCESS)
		return -1;
	return address == 0x1000 ? 1 : 0;
}

PUBLIC void *plugin_next(const char *name);
PUBLIC void *plugin_next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	__asm__ volatile("" : "+r"(found)); /* no tail call: the caller is this library */
	return found;
}

PUBLIC void *plugin_default(const char *name);
PUBLIC void *plugin_default(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	__asm__ volatile("" : "+r"(found)); /* no tail call: the caller is this library */
	return found;
}
