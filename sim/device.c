/* The simulated GPUs as an application sees them: all alike, told apart by UUID and PCI bus id. */

#include "core.h"
#include "machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct attribute {
	CUdevice_attribute attribute;
	int value;
};

/* clang-format off */
static const struct attribute attributes[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
	{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4 },
	{ CU_DEVICE_ATTRIBUTE_INTEGRATED, 0 },
	{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
	{ CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1 },
	{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000 },
	{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144 },
	{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560 },
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
	{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
	{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0 },
	{ CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
	{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR },
	{ CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1 },
	{ CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 0 },
};
/* clang-format on */

#define BUS_ID_BYTES 13 /* "0000:10:00.0" and its end */

static int bus_number(CUdevice device)
{
	return 0x10 + sim_core.devices[device].physical;
}

static CUresult device_get(CUdevice *ret_device, int ordinal)
{
	if (ret_device == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = ordinal;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGet(CUdevice *ret_device, int ordinal)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, device_get(ret_device, ordinal));
}

static CUresult device_count(int *ret_count)
{
	if (ret_count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_count = sim_core.device_count;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetCount(int *ret_count)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, device_count(ret_count));
}

static CUresult device_name(char *ret_name, int length, CUdevice device)
{
	if (ret_name == NULL || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	(void)snprintf(ret_name, (size_t)length, "Simulated GPU");
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetName(char *ret_name, int length, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       device_name(ret_name, length, device));
}

/* The same GPU of the simulated machine has the same UUID in every process. */
void sim_device_uuid(int physical, CUuuid *ret_uuid)
{
	static const char base[16] = {0x51, 0x3d, 0x0c, 0x2e, 0x7a, 0x41, 0x4f, 0x6b,
				      0x1d, 0x35, 0x62, 0x18, 0x70, 0x29, 0x5c, 0x00};

	memcpy(ret_uuid->bytes, base, sizeof(base));
	ret_uuid->bytes[15] = (char)(sim_breaks("uuids_differ") ? 1 : physical + 1);
	if (sim_breaks("uuid_is_identity"))
		ret_uuid->bytes[14] = (char)(getpid() & 0x7f);
}

/* The older form tells the whole GPU, the newer one a MIG instance of it. */
static CUresult device_uuid(CUuuid *ret_uuid, CUdevice device, bool is_instance)
{
	if (ret_uuid == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	sim_device_uuid(sim_core.devices[device].physical, ret_uuid);
	if (is_instance && sim_config()->is_mig)
		ret_uuid->bytes[0] = (char)~ret_uuid->bytes[0];
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetUuid(CUuuid *ret_uuid, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, device_uuid(ret_uuid, device, false));
}

SIM_API CUresult cuDeviceGetUuid_v2(CUuuid *ret_uuid, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, device_uuid(ret_uuid, device, true));
}

static CUresult total_memory(size_t *ret_bytes, CUdevice device)
{
	if (ret_bytes == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_bytes = sim_machine_total_bytes(sim_core.devices[device].physical);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceTotalMem_v2(size_t *ret_bytes, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, total_memory(ret_bytes, device));
}

static int attribute_value(const struct attribute *attribute)
{
	if (attribute->attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY &&
	    sim_breaks("device_abilities"))
		return 0;
	if (attribute->attribute == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED &&
	    !sim_config()->has_multicast)
		return 0;
	if (attribute->attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE && sim_breaks("device_shape"))
		return 64;
	if (attribute->attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
		return sim_config()->compute_mode;
	return attribute->value;
}

static CUresult device_attribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
	if (ret_value == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
		*ret_value = bus_number(device);
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < ARRAY_COUNT(attributes); i++) {
		if (attributes[i].attribute != attribute)
			continue;
		*ret_value = attribute_value(&attributes[i]);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuDeviceGetAttribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       device_attribute(ret_value, attribute, device));
}

static CUresult bus_id(char *ret_id, int length, CUdevice device)
{
	if (ret_id == NULL || length < BUS_ID_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	(void)snprintf(ret_id, (size_t)length, "0000:%02X:00.0", (unsigned)bus_number(device));
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetPCIBusId(char *ret_id, int length, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, bus_id(ret_id, length, device));
}

static CUresult by_bus_id(CUdevice *ret_device, const char *id)
{
	char candidate[16];

	if (ret_device == NULL || id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (int device = 0; device < sim_core.device_count; device++) {
		(void)bus_id(candidate, (int)sizeof(candidate), device);
		if (strcasecmp(id, candidate) != 0 && strcasecmp(id, candidate + 5) != 0)
			continue;
		*ret_device = device;
		return CUDA_SUCCESS;
	}
	return strchr(id, ':') != NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuDeviceGetByPCIBusId(CUdevice *ret_device, const char *id)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, by_bus_id(ret_device, id));
}

static CUresult can_access_peer(int *ret_can, CUdevice device, CUdevice peer)
{
	if (ret_can == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device) || !sim_device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_can = device != peer;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceCanAccessPeer(int *ret_can, CUdevice device, CUdevice peer)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       can_access_peer(ret_can, device, peer));
}

static CUresult p2p_attribute(int *ret_value, CUdevice_P2PAttribute attribute, CUdevice source,
			      CUdevice destination)
{
	if (ret_value == NULL || (int)attribute < 1 || (int)attribute > 5)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(source) || !sim_device_valid(destination) || source == destination)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_value = attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
		     attribute != CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetP2PAttribute(int *ret_value, CUdevice_P2PAttribute attribute,
					 CUdevice source, CUdevice destination)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       p2p_attribute(ret_value, attribute, source, destination));
}
