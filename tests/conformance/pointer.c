/*
 * Description: pointer attributes of native and mapped memory.
 */
#include <stdbool.h>
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "device.h"

static unsigned long long attribute(CUpointer_attribute wanted, CUdeviceptr address)
{
	unsigned long long value = 0;

	T_OK(cuPointerGetAttribute(&value, wanted, address));
	return value;
}

/* Native and exportable memory have these values of a flag. */
static void flag_is(CUpointer_attribute wanted, unsigned int native, unsigned int mapped)
{
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(2 * T_BLOCK_BYTES, T_FD_TYPE);
	T_EQ(attribute(wanted, t_alloc(4 * T_MIB)) & 0xff, native);
	T_EQ(attribute(wanted, vmm.address) & 0xff, mapped);
}

static void pointer_context(void)
{
	CUcontext context = t_cuda();
	struct t_vmm vmm = t_vmm(2 * T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	CUcontext theirs = NULL;

	T_OK(cuPointerGetAttribute(&theirs, CU_POINTER_ATTRIBUTE_CONTEXT, t_alloc(4096)));
	T_TRUE(theirs == context);
	T_OK(cuPointerGetAttribute(&theirs, CU_POINTER_ATTRIBUTE_CONTEXT, vmm.address));
	T_TRUE(theirs == NULL);
}

static void pointer_ipc_capable(void)
{
	flag_is(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 1, 0);
}

static void pointer_handle_types(void)
{
	flag_is(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 0, 1);
}

static void pointer_rdma(void)
{
	flag_is(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 1, 0);
}

static void pointer_rdma_flagged(void)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle handle = 0;

	(void)t_cuda();
	prop.allocFlags.gpuDirectRDMACapable = 1;
	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	T_EQ(attribute(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
		       t_map(handle, T_BLOCK_BYTES)) &
		     0xff,
	     1);
}

static void pointer_decompress(void)
{
	flag_is(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 1, 0);
}

static void range_of_native(void)
{
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(1000);
	T_EQ(attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 10), address);
	T_EQ(attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 10), 1000);
}

/* Two allocations side by side; gives the start of the reservation that holds them. */
static CUdeviceptr reserved_pair(void)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = t_reserve(8 * T_BLOCK_BYTES);

	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	T_OK(cuMemMap(address, T_BLOCK_BYTES, 0, handle, 0));
	T_OK(cuMemCreate(&handle, 3 * T_BLOCK_BYTES, &prop, 0));
	T_OK(cuMemMap(address + T_BLOCK_BYTES, 3 * T_BLOCK_BYTES, 0, handle, 0));
	T_OK(cuMemSetAccess(address, 4 * T_BLOCK_BYTES, &access, 1));
	return address;
}

static void range_of_mapping(void)
{
	CUdeviceptr address;
	CUdeviceptr inside;

	(void)t_cuda();
	address = reserved_pair();
	inside = address + T_BLOCK_BYTES + T_MIB;
	T_EQ(attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside), address);
	T_EQ(attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside), 8 * T_BLOCK_BYTES);
}

static void address_range_of_mapping(void)
{
	CUdeviceptr address;
	CUdeviceptr base = 0;
	size_t bytes = 0;

	(void)t_cuda();
	address = reserved_pair();
	T_OK(cuMemGetAddressRange_v2(&base, &bytes, address + T_BLOCK_BYTES + T_MIB));
	T_EQ(base, address + T_BLOCK_BYTES);
	T_EQ(bytes, 3 * T_BLOCK_BYTES);
}

static void sync_memops(void)
{
	CUmemAllocationProp prop = t_prop(T_FD_TYPE);
	CUmemGenericAllocationHandle handle = 0;
	unsigned int on = 1;

	(void)t_cuda();
	T_OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, t_alloc(4 * T_MIB)));
	prop.allocFlags.gpuDirectRDMACapable = 1;
	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	T_IS(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
				   t_map(handle, T_BLOCK_BYTES)),
	     CUDA_ERROR_NOT_SUPPORTED);
}

/* Two native and two mapped allocations have four different values. */
static void identity_is(CUpointer_attribute wanted)
{
	unsigned long long ids[4];

	(void)t_cuda();
	ids[0] = attribute(wanted, t_alloc(4 * T_MIB));
	ids[1] = attribute(wanted, t_alloc(4 * T_MIB));
	ids[2] = attribute(wanted, t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE).address);
	ids[3] = attribute(wanted, t_vmm(T_BLOCK_BYTES, T_FD_TYPE).address);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			T_TRUE(ids[i] != ids[j]);
}

static void buffer_ids(void)
{
	identity_is(CU_POINTER_ATTRIBUTE_BUFFER_ID);
}

static void block_ids(void)
{
	identity_is(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
}

static void pointer_memory_types(void)
{
	void *memory = NULL;

	(void)t_cuda();
	T_EQ((uint32_t)attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, t_alloc(4096) + 100),
	     CU_MEMORYTYPE_DEVICE);
	T_OK(cuMemHostAlloc(&memory, 4096, 0));
	T_EQ((uint32_t)attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)memory),
	     CU_MEMORYTYPE_HOST);
}

static void pointer_unknown(void)
{
	CUmemorytype type;
	int local = 0;

	(void)t_cuda();
	T_IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				   (CUdeviceptr)(uintptr_t)&local),
	     CUDA_ERROR_INVALID_VALUE);
}

static void pointer_attributes_unknown(void)
{
	CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_CONTEXT,
					CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
	CUcontext context = (CUcontext)&context;
	unsigned int type = 99;
	void *values[] = {&context, &type};
	int local = 0;

	(void)t_cuda();
	T_OK(cuPointerGetAttributes(2, wanted, values, (CUdeviceptr)(uintptr_t)&local));
	T_TRUE(context == NULL);
	T_EQ(type, 0);
}

static void pointer_ordinal(void)
{
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_EQ((int)attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, t_alloc(4096)), 0);
	T_EQ((int)attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, vmm.address), 0);
	T_EQ(attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, vmm.address) & 0xff, 0);
}

static const struct t_behaviour behaviours[] = {
	{"pointer_context", T_MEASURED, "native memory names its context, mapped memory none",
	 pointer_context},
	{"pointer_ipc_capable", T_MEASURED, "native memory can be shared by legacy IPC, mapped not",
	 pointer_ipc_capable},
	{"pointer_handle_types", T_MEASURED, "allowed handle types: native 0, exportable 1",
	 pointer_handle_types},
	{"pointer_rdma", T_MEASURED, "RDMA: native memory can, mapped memory cannot", pointer_rdma},
	{"pointer_rdma_flagged", T_MEASURED, "RDMA: mapped memory created for it can",
	 pointer_rdma_flagged},
	{"pointer_decompress", T_MEASURED, "hardware decompression: native can, mapped cannot",
	 pointer_decompress},
	{"range_of_native", T_MEASURED, "a native pointer's range is the exact request",
	 range_of_native},
	{"range_of_mapping", T_MEASURED, "a mapped pointer's range is the whole reservation",
	 range_of_mapping},
	{"address_range_of_mapping", T_MEASURED,
	 "cuMemGetAddressRange of a mapped pointer is its mapping", address_range_of_mapping},
	{"sync_memops", T_MEASURED,
	 "SYNC_MEMOPS can be set on native memory; mapped memory: NOT_SUPPORTED", sync_memops},
	{"buffer_ids", T_MEASURED, "every allocation has a buffer id of its own", buffer_ids},
	{"block_ids", T_MEASURED, "large allocations have memory block ids of their own",
	 block_ids},
	{"pointer_memory_types", T_DOCUMENTED, "a pointer tells device from host memory",
	 pointer_memory_types},
	{"pointer_unknown", T_DOCUMENTED, "an attribute of an unknown pointer is INVALID_VALUE",
	 pointer_unknown},
	{"pointer_attributes_unknown", T_DOCUMENTED,
	 "cuPointerGetAttributes of an unknown pointer succeeds with zeros",
	 pointer_attributes_unknown},
	{"pointer_ordinal", T_DOCUMENTED, "a pointer names its device and is not managed",
	 pointer_ordinal},
};

T_BEHAVIOURS_MAIN(behaviours)
