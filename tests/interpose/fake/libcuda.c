/*
 * A driver that does nothing but say who was called with what: enough of libcuda.so.1 for the tests of the
 * interposer's lookups. fake_call() tells of the last call.
 */

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "driver/abi.h"

static _Thread_local const char *called = "";
static _Thread_local unsigned long seen[8];

PUBLIC const char *fake_call(unsigned long ret_arguments[8]);
PUBLIC const char *fake_call(unsigned long ret_arguments[8])
{
	const char *name = called;

	memcpy(ret_arguments, seen, sizeof(seen));
	called = "";
	return name;
}

static CUresult note(const char *name, unsigned long a, unsigned long b, unsigned long c,
		     unsigned long d, unsigned long e)
{
	called = name;
	seen[0] = a;
	seen[1] = b;
	seen[2] = c;
	seen[3] = d;
	seen[4] = e;
	seen[5] = 0;
	seen[6] = 0;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuInit(unsigned int flags)
{
	return note("cuInit", flags, 0, 0, 0, 0);
}

PUBLIC CUresult cuDriverGetVersion(int *ret_version)
{
	*ret_version = 13040;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemAlloc_v2(CUdeviceptr *ret_address, size_t bytes)
{
	*ret_address = 0x1000;
	return note("cuMemAlloc_v2", bytes, 0, 0, 0, 0);
}

PUBLIC CUresult cuMemAlloc(unsigned int *ret_address, unsigned int bytes);
PUBLIC CUresult cuMemAlloc(unsigned int *ret_address, unsigned int bytes)
{
	*ret_address = 0x2000;
	return note("cuMemAlloc", bytes, 0, 0, 0, 0);
}

PUBLIC CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
				   CUmemGenericAllocationHandle memory, size_t memory_offset,
				   size_t bytes, unsigned long long flags)
{
	(void)note("cuMulticastBindMem", object, offset, memory, memory_offset, bytes);
	seen[5] = flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

PUBLIC CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device,
				      size_t offset, CUmemGenericAllocationHandle memory,
				      size_t memory_offset, size_t bytes, unsigned long long flags)
{
	(void)note("cuMulticastBindMem_v2", object, (unsigned long)device, offset, memory,
		   memory_offset);
	seen[5] = bytes;
	seen[6] = flags;
	return CUDA_ERROR_NOT_PERMITTED;
}

PUBLIC CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret_address, CUipcMemHandle handle,
				      unsigned int flags)
{
	*ret_address = 0x3000;
	return note("cuIpcOpenMemHandle_v2", (unsigned char)handle.reserved[0],
		    (unsigned char)handle.reserved[63], flags, 0, 0);
}

PUBLIC CUresult cuTexRefSetMipmapLevelClamp(void *reference, float low, float high);
PUBLIC CUresult cuTexRefSetMipmapLevelClamp(void *reference, float low, float high)
{
	return note("cuTexRefSetMipmapLevelClamp", (unsigned long)reference,
		    (unsigned long)(low * 4), (unsigned long)(high * 4), 0, 0);
}

/* In libcuda, and in nobody's list. */
PUBLIC CUresult cuBrandNew(int value);
PUBLIC CUresult cuBrandNew(int value)
{
	return note("cuBrandNew", (unsigned long)value, 0, 0, 0, 0);
}

static const struct {
	const char *name;
	int version;
	void *address;
} entries[] = {
	{"cuInit", 2000, (void *)cuInit},
	{"cuDriverGetVersion", 2020, (void *)cuDriverGetVersion},
	{"cuMemAlloc", 3020, (void *)cuMemAlloc_v2},
	{"cuMemAlloc", 2000, (void *)cuMemAlloc},
	{"cuMulticastBindMem", 13010, (void *)cuMulticastBindMem_v2},
	{"cuMulticastBindMem", 12010, (void *)cuMulticastBindMem},
	{"cuGetProcAddress", 12000, (void *)cuGetProcAddress_v2},
	{"cuGetProcAddress", 11030, (void *)cuGetProcAddress},
	{"cuBrandNew", 2000, (void *)cuBrandNew},
};

PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **ret_entry, int version,
				    cuuint64_t flags, CUdriverProcAddressQueryResult *ret_status)
{
	*ret_entry = NULL;
	*ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (size_t i = 0; i < ARRAY_COUNT(entries); i++) {
		if (strcmp(entries[i].name, name) != 0 || entries[i].version > version)
			continue;
		*ret_entry = entries[i].address;
		*ret_status = CU_GET_PROC_ADDRESS_SUCCESS;
		break;
	}
	return note("cuGetProcAddress_v2", flags, 0, 0, 0, 0);
}

PUBLIC CUresult cuGetProcAddress(const char *name, void **ret_entry, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;

	(void)cuGetProcAddress_v2(name, ret_entry, version, flags, &status);
	(void)note("cuGetProcAddress", flags, 0, 0, 0, 0);
	return *ret_entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* For the runtime library, which is to get entries as they are. */
typedef CUresult proc_address_function(const char *, void **, int, cuuint64_t,
				       CUdriverProcAddressQueryResult *);
PUBLIC extern proc_address_function *const fake_proc_address;
PUBLIC proc_address_function *const fake_proc_address = cuGetProcAddress_v2;
