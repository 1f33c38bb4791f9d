/*
 * CUDA set-up and contents for tests.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check.h"

void t_init_only(void)
{
	CUresult result = cuInit(0);
	int count = 0;

	if (result == CUDA_ERROR_NO_DEVICE)
		t_skip("needs gpu: there is no CUDA device");
	T_OK(result);
	T_OK(cuDeviceGetCount(&count));
	if (count == 0)
		t_skip("needs gpu: there is no CUDA device");
}

CUcontext t_cuda(void)
{
	CUcontext context = NULL;
	CUdevice device;

	t_init_only();
	T_OK(cuDeviceGet(&device, 0));
	T_OK(cuDevicePrimaryCtxRetain(&context, device));
	T_OK(cuCtxSetCurrent(context));
	return context;
}

void t_ask_devices(int count)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", count);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread yet */
	T_SYS(setenv("STASIS_SIM_DEVICES", text, 0));
}

void t_need_devices(int count)
{
	int present = 0;

	T_OK(cuDeviceGetCount(&present));
	if (present < count)
		t_skip("needs gpus: %d CUDA devices, there %s %d", count,
		       present == 1 ? "is" : "are", present);
}

void t_allow_multicast(void)
{
	/* NOLINTBEGIN(concurrency-mt-unsafe): there is no second thread yet */
	const char *driver = getenv("STASIS_TEST_DRIVER");
	const char *wanted = getenv("STASIS_TEST_MULTICAST");
	/* NOLINTEND(concurrency-mt-unsafe) */

	if ((driver == NULL || strcmp(driver, "sim") != 0) &&
	    (wanted == NULL || strcmp(wanted, "1") != 0))
		t_skip("multicast is left alone on hardware unless STASIS_TEST_MULTICAST=1");
}

void t_need_multicast(CUdevice device)
{
	int has_multicast = 0;

	T_OK(cuDeviceGetAttribute(&has_multicast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device));
	if (!has_multicast)
		t_skip("the devices have no multicast");
}

void *t_entry_or_null(const char *name, int version)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *entry = NULL;

	if (cuGetProcAddress_v2(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) !=
	    CUDA_SUCCESS)
		return NULL;
	return status == CU_GET_PROC_ADDRESS_SUCCESS ? entry : NULL;
}

void *t_entry(const char *name, int version)
{
	void *entry = t_entry_or_null(name, version);

	if (!entry)
		t_skip("needs driver: %s at CUDA version %d, which this driver has not", name,
		       version);
	return entry;
}

CUdeviceptr t_alloc(size_t bytes)
{
	CUdeviceptr address = 0;

	T_OK(cuMemAlloc_v2(&address, bytes));
	return address;
}

CUstream t_stream(unsigned int flags)
{
	CUstream stream = NULL;

	T_OK(cuStreamCreate(&stream, flags));
	return stream;
}

size_t t_free_bytes(void)
{
	size_t free_bytes = 0;
	size_t total_bytes = 0;

	T_OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	return free_bytes;
}

CUmemAllocationProp t_prop(CUmemAllocationHandleType handle_types)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = handle_types,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	};
}

CUmemAccessDesc t_access(CUmemAccess_flags flags)
{
	return (CUmemAccessDesc){
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
		.flags = flags,
	};
}

CUdeviceptr t_reserve(size_t bytes)
{
	CUdeviceptr address = 0;

	T_OK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
	return address;
}

CUdeviceptr t_map(CUmemGenericAllocationHandle handle, size_t bytes)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr address = t_reserve(bytes);

	T_OK(cuMemMap(address, bytes, 0, handle, 0));
	T_OK(cuMemSetAccess(address, bytes, &access, 1));
	return address;
}

struct t_vmm t_vmm(size_t bytes, CUmemAllocationHandleType handle_types)
{
	CUmemAllocationProp prop = t_prop(handle_types);
	struct t_vmm vmm = {.bytes = bytes};

	T_OK(cuMemCreate(&vmm.handle, bytes, &prop, 0));
	vmm.address = t_map(vmm.handle, bytes);
	return vmm;
}

void t_vmm_release(struct t_vmm *vmm)
{
	T_OK(cuMemUnmap(vmm->address, vmm->bytes));
	T_OK(cuMemRelease(vmm->handle));
}

int t_export(CUmemGenericAllocationHandle handle)
{
	int fd = -1;

	T_OK(cuMemExportToShareableHandle(&fd, handle, T_FD_TYPE, 0));
	T_TRUE(fd >= 0);
	return fd;
}

CUmemGenericAllocationHandle t_import(int fd)
{
	CUmemGenericAllocationHandle handle = 0;

	T_OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, T_FD_TYPE));
	return handle;
}

CUipcMemHandle t_ipc_handle(CUdeviceptr address)
{
	CUipcMemHandle handle = {0};

	T_OK(cuIpcGetMemHandle(&handle, address));
	return handle;
}

uint32_t t_word(uint32_t seed, size_t index)
{
	uint32_t word = seed * 2654435761U + (uint32_t)index * 2246822519U;

	word ^= word >> 15;
	word *= 3266489917U;
	return word ^ (word >> 13);
}

void t_fill(CUdeviceptr address, size_t bytes, uint32_t seed)
{
	CLEANUP(free) uint32_t *words = malloc(bytes);

	T_TRUE(words != NULL);
	for (size_t i = 0; i < bytes / 4; i++)
		words[i] = t_word(seed, i);
	T_OK(cuMemcpyHtoD_v2(address, words, bytes));
}

/* The offset of the first wrong byte's word, or `bytes` where all is right. */
static size_t first_wrong(CUdeviceptr address, size_t bytes, uint32_t seed, uint32_t *ret_got)
{
	CLEANUP(free) uint32_t *words = malloc(bytes);

	T_TRUE(words != NULL);
	T_OK(cuMemcpyDtoH_v2(words, address, bytes));
	for (size_t i = 0; i < bytes / 4; i++) {
		if (words[i] == t_word(seed, i))
			continue;
		*ret_got = words[i];
		return i * 4;
	}
	return bytes;
}

void t_verify(CUdeviceptr address, size_t bytes, uint32_t seed)
{
	uint32_t got = 0;
	size_t offset = first_wrong(address, bytes, seed, &got);

	if (offset < bytes)
		t_fail("bytes at 0x%llx: the word at offset %zu of %zu should be 0x%08x, is 0x%08x",
		       address, offset, bytes, t_word(seed, offset / 4), got);
}

bool t_matches(CUdeviceptr address, size_t bytes, uint32_t seed)
{
	uint32_t got = 0;

	return first_wrong(address, bytes, seed, &got) == bytes;
}
