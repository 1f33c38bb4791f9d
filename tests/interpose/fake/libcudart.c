/*
 * The lookups of a runtime library, built once for each FAKE_VERSION: they ask the libcuda that they open
 * themselves, as the real ones do, but on a way of their own, on which nothing is replaced.
 */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "driver/abi.h"

typedef CUresult proc_address_function(const char *, void **, int, cuuint64_t,
				       CUdriverProcAddressQueryResult *);

PUBLIC int fake_runtime_version(void);
PUBLIC int fake_runtime_version(void)
{
	return FAKE_VERSION;
}

static int entry_find(const char *name, void **ret_entry, int version, uint64_t flags,
		      int *ret_status)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	proc_address_function **own = libcuda ? dlsym(libcuda, "fake_proc_address") : NULL;
	proc_address_function *ask = own ? *own : NULL;

	*ret_entry = NULL;
	if (!ask)
		return 999;
	(void)ask(name, ret_entry, version, flags, &status);
	if (ret_status)
		*ret_status = (int)status;
	return *ret_entry ? 0 : 500;
}

#if FAKE_VERSION < 12000
PUBLIC int cudaGetDriverEntryPoint(const char *name, void **ret_entry, unsigned long long flags);
PUBLIC int cudaGetDriverEntryPoint(const char *name, void **ret_entry, unsigned long long flags)
{
	return entry_find(name, ret_entry, FAKE_VERSION, flags, NULL);
}
#else
PUBLIC int cudaGetDriverEntryPoint(const char *name, void **ret_entry, unsigned long long flags,
				   int *ret_status);
PUBLIC int cudaGetDriverEntryPoint(const char *name, void **ret_entry, unsigned long long flags,
				   int *ret_status)
{
	return entry_find(name, ret_entry, FAKE_VERSION, flags, ret_status);
}

PUBLIC int cudaGetDriverEntryPointByVersion(const char *name, void **ret_entry,
					    unsigned int version, unsigned long long flags,
					    int *ret_status);
PUBLIC int cudaGetDriverEntryPointByVersion(const char *name, void **ret_entry,
					    unsigned int version, unsigned long long flags,
					    int *ret_status)
{
	return entry_find(name, ret_entry, (int)version, flags, ret_status);
}
#endif
