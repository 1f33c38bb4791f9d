/*
 * Description: virtual memory management: create, reserve, map, access, unmap, release.
 */
#include "behaviour.h"
#include "check.h"
#include "device.h"

static void granularity(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	size_t minimum = 0;
	size_t recommended = 0;

	t_init_only();
	T_OK(cuMemGetAllocationGranularity(&minimum, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	T_OK(cuMemGetAllocationGranularity(&recommended, &prop,
					   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	T_EQ(minimum, T_BLOCK_BYTES);
	T_EQ(recommended % minimum, 0);
}

static void create_steps(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;

	(void)t_cuda();
	T_IS(cuMemCreate(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemCreate(&handle, T_BLOCK_BYTES + 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	T_OK(cuMemRelease(handle));
}

static void create_flags(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;

	(void)t_cuda();
	T_IS(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemCreate(&handle, T_BLOCK_BYTES, NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static void create_type(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;

	(void)t_cuda();
	prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	T_REFUSED(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
}

static void create_too_much(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;
	size_t total = 0;

	(void)t_cuda();
	T_OK(cuDeviceTotalMem_v2(&total, 0));
	T_IS(cuMemCreate(&handle, (total / T_BLOCK_BYTES + 1) * T_BLOCK_BYTES, &prop, 0),
	     CUDA_ERROR_OUT_OF_MEMORY);
}

static void reserve_zero(void)
{
	CUdeviceptr address = 0;

	(void)t_cuda();
	T_IS(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

static void reserve_takes_no_memory(void)
{
	size_t before;

	(void)t_cuda();
	before = t_free_bytes();
	T_TRUE(t_reserve((size_t)64 << 30) != 0);
	T_TRUE(t_free_bytes() + 64 * T_MIB >= before);
}

static void address_free_exact(void)
{
	CUdeviceptr address;

	(void)t_cuda();
	address = t_reserve(4 * T_BLOCK_BYTES);
	T_IS(cuMemAddressFree(address, 2 * T_BLOCK_BYTES), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemAddressFree(address, 4 * T_BLOCK_BYTES));
}

static void map_sizes(void)
{
	struct t_vmm vmm;
	CUdeviceptr address;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	address = t_reserve(4 * T_BLOCK_BYTES);
	T_IS(cuMemMap(address, 2 * T_BLOCK_BYTES, 0, vmm.handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	T_IS(cuMemMap(address, 4096, 0, vmm.handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	T_OK(cuMemMap(address, T_BLOCK_BYTES, 0, vmm.handle, 0));
}

static void map_occupied(void)
{
	struct t_vmm first;
	struct t_vmm second;

	(void)t_cuda();
	first = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	second = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_REFUSED(cuMemMap(first.address, T_BLOCK_BYTES, 0, second.handle, 0));
	t_fill(first.address, T_BLOCK_BYTES, 5);
	t_verify(first.address, T_BLOCK_BYTES, 5);
}

static void map_unreserved(void)
{
	struct t_vmm vmm;
	CUdeviceptr address;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	address = t_reserve(T_BLOCK_BYTES);
	T_OK(cuMemAddressFree(address, T_BLOCK_BYTES));
	T_IS(cuMemMap(address, T_BLOCK_BYTES, 0, vmm.handle, 0), CUDA_ERROR_INVALID_VALUE);
}

static void access_needed(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemLocation location = prop.location;
	CUmemGenericAllocationHandle handle = 0;
	unsigned long long flags = 99;
	CUdeviceptr address;

	(void)t_cuda();
	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	address = t_reserve(T_BLOCK_BYTES);
	T_OK(cuMemMap(address, T_BLOCK_BYTES, 0, handle, 0));
	T_OK(cuMemGetAccess(&flags, &location, address));
	T_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	if (cuMemsetD8_v2(address, 1, 4096) == CUDA_SUCCESS)
		T_REFUSED(cuCtxSynchronize());
}

static void access_is_kept(void)
{
	CUmemAccessDesc none = t_access(CU_MEM_ACCESS_FLAGS_PROT_NONE);
	unsigned long long flags = 99;
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(2 * T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_OK(cuMemGetAccess(&flags, &none.location, vmm.address + T_MIB));
	T_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	T_OK(cuMemSetAccess(vmm.address, vmm.bytes, &none, 1));
	T_OK(cuMemGetAccess(&flags, &none.location, vmm.address));
	T_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

static void access_of_part(void)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(3 * T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_IS(cuMemSetAccess(vmm.address, T_BLOCK_BYTES, &access, 1), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemSetAccess(vmm.address + T_BLOCK_BYTES, T_BLOCK_BYTES, &access, 1),
	     CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemSetAccess(vmm.address + 2 * T_BLOCK_BYTES, T_BLOCK_BYTES, &access, 1),
	     CUDA_ERROR_INVALID_VALUE);
}

static void access_unmapped(void)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	(void)t_cuda();
	T_IS(cuMemSetAccess(t_reserve(T_BLOCK_BYTES), T_BLOCK_BYTES, &access, 1),
	     CUDA_ERROR_INVALID_VALUE);
}

/* Two allocations side by side in one reservation, not yet accessible. */
static CUdeviceptr adjacent_pair(void)
{
	CUmemAllocationProp prop = t_prop(CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = t_reserve(3 * T_BLOCK_BYTES);

	T_OK(cuMemCreate(&handle, T_BLOCK_BYTES, &prop, 0));
	T_OK(cuMemMap(address, T_BLOCK_BYTES, 0, handle, 0));
	T_OK(cuMemCreate(&handle, 2 * T_BLOCK_BYTES, &prop, 0));
	T_OK(cuMemMap(address + T_BLOCK_BYTES, 2 * T_BLOCK_BYTES, 0, handle, 0));
	return address;
}

static void access_of_several(void)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	unsigned long long flags = 0;
	CUdeviceptr address;

	(void)t_cuda();
	address = adjacent_pair();
	T_OK(cuMemSetAccess(address, 3 * T_BLOCK_BYTES, &access, 1));
	T_OK(cuMemGetAccess(&flags, &access.location, address + 2 * T_BLOCK_BYTES));
	T_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static void copy_across_mappings(void)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUdeviceptr address;
	CUdeviceptr copy;

	(void)t_cuda();
	address = adjacent_pair();
	copy = t_alloc(2 * T_BLOCK_BYTES);
	T_OK(cuMemSetAccess(address, 3 * T_BLOCK_BYTES, &access, 1));
	T_OK(cuMemsetD8_v2(address, 3, 3 * T_BLOCK_BYTES));
	t_fill(address + T_MIB, 2 * T_BLOCK_BYTES, 7);
	T_OK(cuMemcpyDtoD_v2(copy, address + T_MIB, 2 * T_BLOCK_BYTES));
	t_verify(copy, 2 * T_BLOCK_BYTES, 7);
}

static void unmap_part(void)
{
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(2 * T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_IS(cuMemUnmap(vmm.address, T_BLOCK_BYTES), CUDA_ERROR_INVALID_VALUE);
	T_OK(cuMemUnmap(vmm.address, 2 * T_BLOCK_BYTES));
}

static void unmap_several(void)
{
	CUdeviceptr address;

	(void)t_cuda();
	address = adjacent_pair();
	T_OK(cuMemUnmap(address, 3 * T_BLOCK_BYTES));
	T_OK(cuMemAddressFree(address, 3 * T_BLOCK_BYTES));
}

static void mapping_holds_memory(void)
{
	struct t_vmm vmm;
	size_t before;

	(void)t_cuda();
	before = t_free_bytes();
	vmm = t_vmm(64 * T_MIB, CU_MEM_HANDLE_TYPE_NONE);
	t_fill(vmm.address, T_BLOCK_BYTES, 9);
	T_OK(cuMemRelease(vmm.handle));
	t_verify(vmm.address, T_BLOCK_BYTES, 9);
	T_TRUE(t_free_bytes() <= before - 64 * T_MIB);
	T_OK(cuMemUnmap(vmm.address, vmm.bytes));
	T_TRUE(t_free_bytes() >= before - T_SLACK_BYTES);
}

static void mapped_twice(void)
{
	struct t_vmm vmm;
	CUdeviceptr alias;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE);
	alias = t_map(vmm.handle, T_BLOCK_BYTES);
	T_TRUE(alias != vmm.address);
	t_fill(vmm.address, T_BLOCK_BYTES, 11);
	t_verify(alias, T_BLOCK_BYTES, 11);
}

static void properties_of_handle(void)
{
	CUmemAllocationProp prop = {0};
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	T_OK(cuMemGetAllocationPropertiesFromHandle(&prop, vmm.handle));
	T_EQ(prop.type, CU_MEM_ALLOCATION_TYPE_PINNED);
	T_EQ(prop.requestedHandleTypes, T_FD_TYPE);
	T_EQ(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	T_EQ(prop.location.id, 0);
}

static const struct t_behaviour behaviours[] = {
	{"granularity", T_MEASURED, "device memory comes in steps of 2 MiB", granularity},
	{"create_steps", T_DOCUMENTED,
	 "a size that is not a multiple of the granularity is refused", create_steps},
	{"create_flags", T_DOCUMENTED, "cuMemCreate refuses flags and missing properties",
	 create_flags},
	{"create_type", T_DOCUMENTED, "cuMemCreate refuses an invalid allocation type",
	 create_type},
	{"create_too_much", T_DOCUMENTED, "more than the device has is OUT_OF_MEMORY",
	 create_too_much},
	{"reserve_zero", T_DOCUMENTED, "a reservation of no bytes is INVALID_VALUE", reserve_zero},
	{"reserve_takes_no_memory", T_DOCUMENTED, "a reservation takes no device memory",
	 reserve_takes_no_memory},
	{"address_free_exact", T_DOCUMENTED, "a reservation is freed whole or not at all",
	 address_free_exact},
	{"map_sizes", T_MEASURED,
	 "a mapping of more or less than the whole allocation is NOT_SUPPORTED", map_sizes},
	{"map_occupied", T_DOCUMENTED, "nothing is mapped over a mapping", map_occupied},
	{"map_unreserved", T_DOCUMENTED, "nothing is mapped outside a reservation", map_unreserved},
	{"access_needed", T_DOCUMENTED, "a fresh mapping grants no access", access_needed},
	{"access_is_kept", T_DOCUMENTED, "cuMemGetAccess gives what cuMemSetAccess set",
	 access_is_kept},
	{"access_of_part", T_REPORTED, "access of a part of a mapping cannot be set",
	 access_of_part},
	{"access_unmapped", T_DOCUMENTED, "access of addresses without a mapping cannot be set",
	 access_unmapped},
	{"access_of_several", T_MEASURED, "one call sets the access of adjacent mappings",
	 access_of_several},
	{"copy_across_mappings", T_MEASURED, "copies and memsets run across adjacent mappings",
	 copy_across_mappings},
	{"unmap_part", T_DOCUMENTED, "a part of a mapping cannot be unmapped", unmap_part},
	{"unmap_several", T_DOCUMENTED, "one call unmaps adjacent mappings", unmap_several},
	{"mapping_holds_memory", T_DOCUMENTED,
	 "a mapping keeps memory alive whose handle was released", mapping_holds_memory},
	{"mapped_twice", T_DOCUMENTED, "two mappings of a handle show the same bytes",
	 mapped_twice},
	{"properties_of_handle", T_DOCUMENTED, "a handle tells the properties it was created with",
	 properties_of_handle},
};

T_BEHAVIOURS_MAIN(behaviours)
