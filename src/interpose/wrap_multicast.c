/*
 * The handlers of multicast. Its objects pass through with the driver's own handles and are not recorded: a process
 * that made one is refused at INSPECT. What is ours, members above all, is translated, so that multicast
 * works in a program that is not captured.
 */

#include "interpose/handlers.h"
#include "interpose/multicast.h"
#include "interpose/objects.h"

/* A multicast object and a member of it. */
struct pair {
	struct stasis_use object;
	struct stasis_use member;
};

static bool pair_begin(CUmemGenericAllocationHandle handle,
		       CUmemGenericAllocationHandle member_handle, struct pair *ret_pair)
{
	if (!stasis_use_begin(handle, &ret_pair->object))
		return false;
	if (stasis_use_begin(member_handle, &ret_pair->member))
		return true;
	stasis_use_end(&ret_pair->object);
	return false;
}

static void pair_end(struct pair *pair)
{
	stasis_use_end(&pair->member);
	stasis_use_end(&pair->object);
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
	struct stasis_use object;
	CUresult result;

	if (!stasis_use_begin(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device);
	stasis_use_end(&object);
	return result;
}

CUresult stasis_handle_cuMulticastBindMem(__typeof__(cuMulticastBindMem) *target,
					  CUmemGenericAllocationHandle handle, size_t offset,
					  CUmemGenericAllocationHandle member_handle,
					  size_t member_offset, size_t bytes,
					  unsigned long long flags)
{
	struct pair pair;
	CUresult result;

	if (!pair_begin(handle, member_handle, &pair))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(pair.object.driver_handle, offset, pair.member.driver_handle, member_offset,
			bytes, flags);
	pair_end(&pair);
	return result;
}

/* The driver's signature. NOLINTNEXTLINE(readability-function-size) */
CUresult stasis_handle_cuMulticastBindMem_v2(__typeof__(cuMulticastBindMem_v2) *target,
					     CUmemGenericAllocationHandle handle, CUdevice device,
					     size_t offset,
					     CUmemGenericAllocationHandle member_handle,
					     size_t member_offset, size_t bytes,
					     unsigned long long flags)
{
	struct pair pair;
	CUresult result;

	if (!pair_begin(handle, member_handle, &pair))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(pair.object.driver_handle, device, offset, pair.member.driver_handle,
			member_offset, bytes, flags);
	pair_end(&pair);
	return result;
}

CUresult stasis_handle_cuMulticastBindAddr(__typeof__(cuMulticastBindAddr) *target,
					   CUmemGenericAllocationHandle handle, size_t offset,
					   CUdeviceptr address, size_t bytes,
					   unsigned long long flags)
{
	struct stasis_use object;
	CUresult result;

	if (!stasis_use_begin(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, offset, address, bytes, flags);
	stasis_use_end(&object);
	return result;
}

CUresult stasis_handle_cuMulticastBindAddr_v2(__typeof__(cuMulticastBindAddr_v2) *target,
					      CUmemGenericAllocationHandle handle, CUdevice device,
					      size_t offset, CUdeviceptr address, size_t bytes,
					      unsigned long long flags)
{
	struct stasis_use object;
	CUresult result;

	if (!stasis_use_begin(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device, offset, address, bytes, flags);
	stasis_use_end(&object);
	return result;
}

CUresult stasis_handle_cuMulticastUnbind(__typeof__(cuMulticastUnbind) *target,
					 CUmemGenericAllocationHandle handle, CUdevice device,
					 size_t offset, size_t bytes)
{
	struct stasis_use object;
	CUresult result;

	if (!stasis_use_begin(handle, &object))
		return CUDA_ERROR_INVALID_VALUE;
	result = target(object.driver_handle, device, offset, bytes);
	stasis_use_end(&object);
	return result;
}
