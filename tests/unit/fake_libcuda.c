/*
 * A library that looks like a CUDA driver to a loader: it answers every entry that is not newer than its
 * version, which the test sets in the environment (FAKE_LIBCUDA_VERSION).
 */

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "driver/abi.h"

static CUresult entry_call(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

PUBLIC CUresult cuDriverGetVersion(int *version)
{
	const char *text = secure_getenv("FAKE_LIBCUDA_VERSION");

	if (!text)
		return CUDA_ERROR_STUB_LIBRARY;
	*version = (int)strtol(text, NULL, 10);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **address, int version, cuuint64_t flags,
				    CUdriverProcAddressQueryResult *status)
{
	__typeof__(&entry_call) entry = entry_call;
	int own = 0;

	(void)name;
	(void)flags;
	*address = NULL;
	*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	if (cuDriverGetVersion(&own) != CUDA_SUCCESS || version > own)
		return CUDA_SUCCESS;
	memcpy(address, &entry, sizeof(entry));
	*status = CU_GET_PROC_ADDRESS_SUCCESS;
	return CUDA_SUCCESS;
}
