/* Multicast is not simulated: the devices say so, and every call answers so. */

#include "core.h"

#define UNSUPPORTED SIM_CALL(SIM_CALL_HELD, SIM_NEEDS_INIT, CUDA_ERROR_NOT_SUPPORTED)

SIM_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *ret_handle,
				   const CUmulticastObjectProp *properties)
{
	(void)ret_handle;
	(void)properties;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle multicast, CUdevice device)
{
	(void)multicast;
	(void)device;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
				    CUmemGenericAllocationHandle memory, size_t memory_offset,
				    size_t bytes, unsigned long long flags)
{
	(void)multicast;
	(void)offset;
	(void)memory;
	(void)memory_offset;
	(void)bytes;
	(void)flags;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
				       size_t offset, CUmemGenericAllocationHandle memory,
				       size_t memory_offset, size_t bytes, unsigned long long flags)
{
	(void)multicast;
	(void)device;
	(void)offset;
	(void)memory;
	(void)memory_offset;
	(void)bytes;
	(void)flags;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
				     CUdeviceptr address, size_t bytes, unsigned long long flags)
{
	(void)multicast;
	(void)offset;
	(void)address;
	(void)bytes;
	(void)flags;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
					size_t offset, CUdeviceptr address, size_t bytes,
					unsigned long long flags)
{
	(void)multicast;
	(void)device;
	(void)offset;
	(void)address;
	(void)bytes;
	(void)flags;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device,
				   size_t offset, size_t bytes)
{
	(void)multicast;
	(void)device;
	(void)offset;
	(void)bytes;
	return UNSUPPORTED;
}

SIM_API CUresult cuMulticastGetGranularity(size_t *ret_bytes,
					   const CUmulticastObjectProp *properties,
					   CUmulticastGranularity_flags option)
{
	(void)ret_bytes;
	(void)properties;
	(void)option;
	return UNSUPPORTED;
}
