/* See interpose_rig.h. */

#include "interpose_rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct rig_driver fake;

static bool fails(void)
{
	return fake.fail_at > 0 && --fake.fail_at == 0;
}

CUresult fake_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)bytes;
	(void)flags;
	if (fails())
		return CUDA_ERROR_OUT_OF_MEMORY;
	fake.last_types = prop->requestedHandleTypes;
	*ret_handle = ++fake.last_handle;
	fake.handles++;
	fake.created++;
	return CUDA_SUCCESS;
}

CUresult fake_release(CUmemGenericAllocationHandle handle)
{
	assert_true(handle > 0 && handle <= fake.last_handle);
	fake.handles--;
	return CUDA_SUCCESS;
}

CUresult fake_map(CUdeviceptr address, size_t bytes, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)address;
	(void)bytes;
	(void)offset;
	(void)flags;
	assert_true(handle > 0 && handle <= fake.last_handle);
	if (fails())
		return CUDA_ERROR_INVALID_VALUE;
	fake.maps++;
	return CUDA_SUCCESS;
}

CUresult fake_unmap(CUdeviceptr address, size_t bytes)
{
	(void)address;
	if (fails())
		return CUDA_ERROR_INVALID_VALUE;
	fake.maps -= (int)(bytes / BLOCK);
	return CUDA_SUCCESS;
}

CUresult fake_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	(void)address;
	(void)bytes;
	(void)access;
	if (fails())
		return CUDA_ERROR_INVALID_VALUE;
	fake.grants += (int)count;
	return CUDA_SUCCESS;
}

CUresult fake_export(void *ret_fd, CUmemGenericAllocationHandle handle,
		     CUmemAllocationHandleType type, unsigned long long flags)
{
	(void)handle;
	fake.exported++;
	(void)type;
	(void)flags;
	*(int *)ret_fd = open("/dev/null", O_RDONLY);
	return CUDA_SUCCESS;
}

CUresult fake_import(CUmemGenericAllocationHandle *ret_handle, void *shareable,
		     CUmemAllocationHandleType type)
{
	(void)shareable;
	(void)type;
	if (fails())
		return CUDA_ERROR_INVALID_VALUE;
	*ret_handle = ++fake.last_handle;
	fake.handles++;
	fake.imported++;
	return CUDA_SUCCESS;
}

CUresult fake_properties(CUmemAllocationProp *ret_prop, CUmemGenericAllocationHandle handle)
{
	/* Of an import, as drivers tell it: it has no handle types. */
	(void)handle;
	*ret_prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	return CUDA_SUCCESS;
}

CUresult fake_retain(CUmemGenericAllocationHandle *ret_handle, void *address)
{
	(void)ret_handle;
	(void)address;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_uuid(CUuuid *ret_uuid, CUdevice device)
{
	memset(ret_uuid, 0x40 + device, sizeof(*ret_uuid));
	return CUDA_SUCCESS;
}

/* Fails, or writes the word down. */
__attribute__((format(printf, 1, 2))) static CUresult multicast_note(const char *format, ...)
{
	size_t at = strlen(fake.multicast);
	va_list arguments;

	if (fails())
		return CUDA_ERROR_UNKNOWN;
	va_start(arguments, format);
	(void)vsnprintf(fake.multicast + at, sizeof(fake.multicast) - at, format, arguments);
	va_end(arguments);
	return CUDA_SUCCESS;
}

CUresult fake_multicast_create(CUmemGenericAllocationHandle *ret_handle,
			       const CUmulticastObjectProp *prop)
{
	CUresult result;

	/* The driver does so, too. */
	*ret_handle = 0;
	result = multicast_note("create(%u,%zu) ", prop->numDevices, (size_t)(prop->size / BLOCK));
	if (result == CUDA_SUCCESS) {
		*ret_handle = ++fake.last_handle;
		fake.handles++;
	}
	return result;
}

CUresult fake_multicast_add(CUmemGenericAllocationHandle object, CUdevice device)
{
	assert_true(object > 0 && object <= fake.last_handle);
	return multicast_note("add%d ", device);
}

static CUresult bound(CUresult result)
{
	fake.bound += result == CUDA_SUCCESS;
	return result;
}

CUresult fake_multicast_bind(CUmemGenericAllocationHandle object, size_t offset,
			     CUmemGenericAllocationHandle memory, size_t memory_offset,
			     size_t bytes, unsigned long long flags)
{
	assert_true(object > 0 && object <= fake.last_handle && flags == 0);
	assert_true(memory > 0 && bytes == BLOCK);
	return bound(multicast_note("bind(%zu,%zu) ", offset / BLOCK, memory_offset / BLOCK));
}

CUresult fake_multicast_bind2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
			      CUmemGenericAllocationHandle memory, size_t memory_offset,
			      size_t bytes, unsigned long long flags)
{
	assert_true(object > 0 && object <= fake.last_handle && flags == 0);
	assert_true(memory > 0 && bytes == BLOCK);
	return bound(multicast_note("bind2(%d,%zu,%zu) ", device, offset / BLOCK,
				    memory_offset / BLOCK));
}

CUresult fake_multicast_address(CUmemGenericAllocationHandle object, size_t offset,
				CUdeviceptr address, size_t bytes, unsigned long long flags)
{
	assert_true(object > 0 && object <= fake.last_handle && flags == 0 && bytes == BLOCK);
	return bound(
		multicast_note("address(%zu,%llu) ", offset / BLOCK, (address - BASE) / BLOCK));
}

CUresult fake_multicast_address2(CUmemGenericAllocationHandle object, CUdevice device,
				 size_t offset, CUdeviceptr address, size_t bytes,
				 unsigned long long flags)
{
	assert_true(object > 0 && object <= fake.last_handle && flags == 0 && bytes == BLOCK);
	return bound(multicast_note("address2(%d,%zu,%llu) ", device, offset / BLOCK,
				    (address - BASE) / BLOCK));
}

CUresult fake_multicast_unbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
			       size_t bytes)
{
	CUresult result;

	assert_true(object > 0 && object <= fake.last_handle && bytes > 0);
	result = multicast_note("unbind(%d,%zu) ", device, offset / BLOCK);
	fake.bound -= result == CUDA_SUCCESS;
	return result;
}

static CUresult fake_pointer_attribute(void *ret_value, CUpointer_attribute attribute,
				       CUdeviceptr address)
{
	(void)address;
	assert_int_equal(attribute, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
	if (fake.pointer_device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)ret_value = fake.pointer_device;
	return CUDA_SUCCESS;
}

static const struct stasis_calls fake_calls = {
	.cuDeviceGetUuid_v2 = fake_uuid,
	.cuMemCreate = fake_create,
	.cuMemRelease = fake_release,
	.cuMemMap = fake_map,
	.cuMemUnmap = fake_unmap,
	.cuMemSetAccess = fake_access,
	.cuMemExportToShareableHandle = fake_export,
	.cuMemImportFromShareableHandle = fake_import,
	.cuMemGetAllocationPropertiesFromHandle = fake_properties,
	.cuMulticastCreate = fake_multicast_create,
	.cuMulticastAddDevice = fake_multicast_add,
	.cuMulticastBindMem = fake_multicast_bind,
	.cuMulticastBindMem_v2 = fake_multicast_bind2,
	.cuMulticastBindAddr = fake_multicast_address,
	.cuMulticastBindAddr_v2 = fake_multicast_address2,
	.cuMulticastUnbind = fake_multicast_unbind,
	.cuPointerGetAttribute = fake_pointer_attribute,
};

const struct stasis_calls *stasis_calls_get(void)
{
	return &fake_calls;
}

void stasis_control_start(void)
{
}

int stasis_peer_ensure(struct stasis_error *err)
{
	(void)err;
	return 0;
}

uint64_t peer_bytes;

int stasis_peer_fetch(const struct stasis_id *participant, const struct stasis_id *object,
		      uint64_t deadline_ns, int *ret_fd, uint64_t *ret_bytes,
		      struct stasis_error *err)
{
	(void)participant;
	(void)object;
	(void)deadline_ns;
	if (peer_bytes == 0)
		return stasis_fail(err, STASIS_REFUSED, "no such peer");
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	*ret_bytes = peer_bytes;
	return 0;
}

CUmemAllocationProp rig_prop_of(CUmemLocationType type, CUmemAllocationHandleType types)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = types,
				     .location = {.type = type}};
}

CUmemGenericAllocationHandle rig_create(size_t bytes)
{
	CUmemAllocationProp prop =
		rig_prop_of(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CUmemGenericAllocationHandle handle = 0;

	assert_int_equal(stasis_handle_cuMemCreate(fake_create, &handle, bytes, &prop, 0),
			 CUDA_SUCCESS);
	assert_true(stasis_handle_is_virtual(handle));
	return handle;
}

void rig_map(uint64_t address, size_t bytes, CUmemGenericAllocationHandle handle)
{
	assert_int_equal(stasis_handle_cuMemMap(fake_map, address, bytes, 0, handle, 0),
			 CUDA_SUCCESS);
}

void rig_unmap(uint64_t address, size_t bytes)
{
	assert_int_equal(stasis_handle_cuMemUnmap(fake_unmap, address, bytes), CUDA_SUCCESS);
}

void rig_release(CUmemGenericAllocationHandle handle)
{
	assert_int_equal(stasis_handle_cuMemRelease(fake_release, handle), CUDA_SUCCESS);
}

void rig_grant(uint64_t address, size_t bytes, int device, CUmemAccess_flags flags)
{
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
				  .flags = flags};

	assert_int_equal(stasis_handle_cuMemSetAccess(fake_access, address, bytes, &access, 1),
			 CUDA_SUCCESS);
}

int rig_ticket_of(CUmemGenericAllocationHandle handle)
{
	int fd = -1;

	assert_int_equal(
		stasis_handle_cuMemExportToShareableHandle(
			fake_export, &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_SUCCESS);
	return fd;
}

int rig_foreign_ticket(uint64_t bytes)
{
	struct stasis_wire_ticket ticket = {.kind = STASIS_WIRE_TICKET_ALLOCATION,
					    .participant = {{1}},
					    .object = {{2}},
					    .bytes = bytes};
	int fd;

	assert_int_equal(stasis_wire_ticket_create(&ticket, &fd, NULL), 0);
	return fd;
}

CUresult rig_import(int fd, CUmemGenericAllocationHandle *ret_handle)
{
	return stasis_handle_cuMemImportFromShareableHandle(
		fake_import, ret_handle, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

int rig_begin(void **state)
{
	(void)state;
	stasis_registry_forget();
	memset(&fake, 0, sizeof(fake));
	peer_bytes = 0;
	return 0;
}

/* Nothing of a test is left, neither here nor in the driver. */
int rig_end(void **state)
{
	(void)state;
	assert_int_equal(stasis_registry.object_count, 0);
	assert_int_equal(fake.handles, 0);
	assert_int_equal(fake.maps, 0);
	return 0;
}
