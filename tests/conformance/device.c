/*
 * Description: devices, their identity and attributes.
 */
#include <string.h>

#include "behaviour.h"
#include "check.h"
#include "child.h"
#include "device.h"

static void device_ordinals(void)
{
	CUdevice device = -1;
	int count = 0;

	t_init_only();
	T_OK(cuDeviceGetCount(&count));
	T_OK(cuDeviceGet(&device, count - 1));
	T_IS(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
	T_IS(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

static int attribute(CUdevice_attribute wanted)
{
	int value = -1;

	T_OK(cuDeviceGetAttribute(&value, wanted, 0));
	return value;
}

static void device_abilities(void)
{
	t_init_only();
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED), 1);
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED), 1);
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), 1);
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), 1);
}

static void device_shape(void)
{
	t_init_only();
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
	T_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
	T_TRUE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) > 0);
	T_TRUE(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 7);
}

static void attribute_unknown(void)
{
	int value = 0;

	t_init_only();
	T_IS(cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
	     CUDA_ERROR_INVALID_VALUE);
}

static void attribute_device(void)
{
	int value = 0;
	int count = 0;

	t_init_only();
	T_OK(cuDeviceGetCount(&count));
	T_IS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count),
	     CUDA_ERROR_INVALID_DEVICE);
}

static void tell_uuid(int fd, void *unused)
{
	CUuuid uuid;

	(void)unused;
	t_init_only();
	T_OK(cuDeviceGetUuid_v2(&uuid, 0));
	t_send(fd, &uuid, sizeof(uuid));
}

static void uuid_is_identity(void)
{
	static const CUuuid zero;
	struct t_child child = t_child_start(tell_uuid, NULL);
	CUuuid ours = {0};
	CUuuid theirs;

	t_init_only();
	T_OK(cuDeviceGetUuid_v2(&ours, 0));
	T_TRUE(memcmp(&ours, &zero, sizeof(zero)) != 0);
	t_receive(child.fd, &theirs, sizeof(theirs));
	T_TRUE(!memcmp(&ours, &theirs, sizeof(ours)));
	t_child_join(&child);
}

static void pci_bus_id(void)
{
	CUdevice device = -1;
	char id[32] = "";

	t_init_only();
	T_OK(cuDeviceGetPCIBusId(id, sizeof(id), 0));
	T_EQ(strlen(id), strlen("0000:00:00.0"));
	T_OK(cuDeviceGetByPCIBusId(&device, id));
	T_EQ(device, 0);
}

static void total_memory(void)
{
	size_t total = 0;
	size_t free_bytes = 0;
	size_t info_total = 0;

	(void)t_cuda();
	T_OK(cuDeviceTotalMem_v2(&total, 0));
	T_OK(cuMemGetInfo_v2(&free_bytes, &info_total));
	T_EQ(info_total, total);
	T_TRUE(free_bytes < total);
}

static void uuids_differ(void)
{
	CUuuid first = {0};
	CUuuid second = {0};

	t_ask_devices(2);
	t_init_only();
	t_need_devices(2);
	T_OK(cuDeviceGetUuid_v2(&first, 0));
	T_OK(cuDeviceGetUuid_v2(&second, 1));
	T_TRUE(memcmp(&first, &second, sizeof(first)) != 0);
}

static const struct t_behaviour behaviours[] = {
	{"device_ordinals", T_DOCUMENTED, "an ordinal out of range is INVALID_DEVICE",
	 device_ordinals},
	{"device_abilities", T_DOCUMENTED,
	 "unified addresses, VMM, POSIX descriptors, pools and managed memory are there",
	 device_abilities},
	{"device_shape", T_DOCUMENTED, "warps of 32, blocks of up to 1024 threads", device_shape},
	{"attribute_unknown", T_DOCUMENTED, "an unknown attribute is INVALID_VALUE",
	 attribute_unknown},
	{"attribute_device", T_DOCUMENTED, "an attribute of no device is INVALID_DEVICE",
	 attribute_device},
	{"uuid_is_identity", T_DOCUMENTED, "every process sees the same UUID of a device",
	 uuid_is_identity},
	{"uuids_differ", T_DOCUMENTED, "two devices have two UUIDs", uuids_differ},
	{"pci_bus_id", T_DOCUMENTED, "a device is found by its own PCI bus id", pci_bus_id},
	{"total_memory", T_REPORTED, "cuMemGetInfo's total is cuDeviceTotalMem's", total_memory},
};

T_BEHAVIOURS_MAIN(behaviours)
