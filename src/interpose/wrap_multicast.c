/*
 * The handlers of multicast. Its objects pass through with the driver's own handles and are not recorded: a process
 * that made one is refused at INSPECT. What is ours, members above all, is translated, so that multicast
 * works in a program that is not captured.
 */

#include "interpose/handlers.h"
#include "interpose/multicast.h"
#include "interpose/objects.h"
#include "interpose/registry.h"

struct translation {
	struct stasis_use use;
	bool is_used;
	CUmemGenericAllocationHandle driver_handle;
};

static bool translate(uint64_t handle, struct translation *ret_translation)
{
	*ret_translation = (struct translation){.driver_handle = handle};
	if (!stasis_handle_is_virtual(handle))
		return true;
	if (!stasis_use_begin(handle, &ret_translation->use))
		return false;
	ret_translation->is_used = true;
	ret_translation->driver_handle = ret_translation->use.driver_handle;
	return true;
}

static void translation_end(struct translation *translation)
{
	if (translation->is_used)
		stasis_use_end(&translation->use);
}

CUresult stasis_handle_cuMulticastCreate(__typeof__(cuMulticastCreate) *target,
					 CUmemGenericAllocationHandle *ret_handle,
					 const CUmulticastObjectProp *prop)
{
	CUresult result = target(ret_handle, prop);

	if (result == CUDA_SUCCESS)
		stasis_multicast_add();
	return result;
}

CUresult stasis_handle_cuMulticastAddDevice(__typeof__(cuMulticastAddDevice) *target,
					    CUmemGenericAllocationHandle handle, CUdevice device)
{
	struct translation object;
	CUresult result;

	if (!translate(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device);
	translation_end(&object);
	return result;
}

/* A call on an object and a member; `call` uses object.driver_handle and member.driver_handle. */
#define WITH_MEMBER(handle, member_handle, call)                                                   \
	{                                                                                          \
		struct translation object;                                                         \
		struct translation member;                                                         \
		CUresult result = CUDA_ERROR_INVALID_VALUE;                                        \
                                                                                                   \
		if (!translate(handle, &object))                                                   \
			return result;                                                             \
		if (translate(member_handle, &member)) {                                           \
			result = call;                                                             \
			translation_end(&member);                                                  \
		}                                                                                  \
		translation_end(&object);                                                          \
		return result;                                                                     \
	}

CUresult stasis_handle_cuMulticastBindMem(__typeof__(cuMulticastBindMem) *target,
					  CUmemGenericAllocationHandle handle, size_t offset,
					  CUmemGenericAllocationHandle member_handle,
					  size_t member_offset, size_t bytes,
					  unsigned long long flags)
	WITH_MEMBER(handle, member_handle,
		    target(object.driver_handle, offset, member.driver_handle, member_offset, bytes,
			   flags))

	/* The driver's signature. NOLINTNEXTLINE(readability-function-size) */
	CUresult stasis_handle_cuMulticastBindMem_v2(__typeof__(cuMulticastBindMem_v2) *target,
						     CUmemGenericAllocationHandle handle,
						     CUdevice device, size_t offset,
						     CUmemGenericAllocationHandle member_handle,
						     size_t member_offset, size_t bytes,
						     unsigned long long flags)
		WITH_MEMBER(handle, member_handle,
			    target(object.driver_handle, device, offset, member.driver_handle,
				   member_offset, bytes, flags))

			CUresult
	stasis_handle_cuMulticastBindAddr(__typeof__(cuMulticastBindAddr) *target,
					  CUmemGenericAllocationHandle handle, size_t offset,
					  CUdeviceptr address, size_t bytes,
					  unsigned long long flags)
{
	struct translation object;
	CUresult result;

	if (!translate(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, offset, address, bytes, flags);
	translation_end(&object);
	return result;
}

CUresult stasis_handle_cuMulticastBindAddr_v2(__typeof__(cuMulticastBindAddr_v2) *target,
					      CUmemGenericAllocationHandle handle, CUdevice device,
					      size_t offset, CUdeviceptr address, size_t bytes,
					      unsigned long long flags)
{
	struct translation object;
	CUresult result;

	if (!translate(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device, offset, address, bytes, flags);
	translation_end(&object);
	return result;
}

CUresult stasis_handle_cuMulticastUnbind(__typeof__(cuMulticastUnbind) *target,
					 CUmemGenericAllocationHandle handle, CUdevice device,
					 size_t offset, size_t bytes)
{
	struct translation object;
	CUresult result;

	if (!translate(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device, offset, bytes);
	translation_end(&object);
	return result;
}
