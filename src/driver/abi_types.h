#ifndef STASIS_DRIVER_ABI_TYPES_H
#define STASIS_DRIVER_ABI_TYPES_H

/*
 * The CUDA driver's structures and handles, laid out as in NVIDIA's public header cuda.h (x86-64).
 * Type and member names are CUDA's own, so that a program may be compiled against either. What 13.4
 * added to the checkpoint arguments lies in what older headers call reserved and demand to be zero:
 * always zero the whole structure. abi_layout.h asserts the sizes and offsets at compile time;
 * tests/abi compares them with every cuda.h at hand.
 */

#include <stddef.h>
#include <stdint.h>

#include "driver/abi_enums.h"

#define CU_IPC_HANDLE_SIZE 64
#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04
#define CU_MEMHOSTREGISTER_PORTABLE 0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02
#define CU_MEMHOSTREGISTER_READ_ONLY 0x08
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

typedef uint64_t cuuint64_t;

typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

typedef int CUdevice;

typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef struct CUctx_st *CUcontext;

/* Left opaque: we only ever pass NULL for it. */
typedef struct CUctxCreateParams_st CUctxCreateParams;

typedef unsigned long long CUdeviceptr;

typedef struct CUstream_st *CUstream;

typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes;
	size_t srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	size_t srcPitch;
	size_t dstXInBytes;
	size_t dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	size_t dstPitch;
	size_t WidthInBytes;
	size_t Height;
} CUDA_MEMCPY2D;

typedef struct CUipcEventHandle_st {
	char reserved[64];
} CUipcEventHandle;

typedef struct CUevent_st *CUevent;

typedef struct CUipcMemHandle_st {
	char reserved[64];
} CUipcMemHandle;

typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct CUmemLocation_st {
	CUmemLocationType type;
	int id;
} CUmemLocation;

typedef struct CUmemAllocationProp_st {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc_st {
	CUmemLocation location;
	CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps_st {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char gpuDirectRDMACapable;
	unsigned char reserved[53];
} CUmemPoolProps;

typedef struct CUmemPoolPtrExportData_st {
	unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef struct CUmulticastObjectProp_st {
	unsigned int numDevices;
	size_t size;
	unsigned long long handleTypes;
	unsigned long long flags;
} CUmulticastObjectProp;

typedef void (*CUstreamCallback)(CUstream, CUresult, void *);

typedef struct CUgraph_st *CUgraph;

typedef struct CUgraphNode_st *CUgraphNode;

typedef struct CUgraphEdgeData_st {
	unsigned char from_port;
	unsigned char to_port;
	unsigned char type;
	unsigned char reserved[5];
} CUgraphEdgeData;

typedef struct CUgreenCtx_st *CUgreenCtx;

typedef void (*CUhostFn)(void *);

typedef uint32_t cuuint32_t;

typedef struct CUmod_st *CUmodule;

typedef struct CUfunc_st *CUfunction;

/* One launch attribute; all that we read of it is the cooperative flag. */
typedef union CUlaunchAttributeValue_union {
	char pad[64];
	int cooperative;
	int priority;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
	CUlaunchAttributeID id;
	char pad[4];
	CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUgraphExec_st *CUgraphExec;

typedef struct CUkern_st *CUkernel;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct CUcheckpointLockArgs_st {
	unsigned int timeoutMs;
	unsigned int reserved0;
	cuuint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct CUIcheckpointOperation_st *CUcheckpointOperationHandle;

typedef struct CUcheckpointCustomStoragePerDeviceData_st {
	CUdeviceptr devPtr;
	size_t size;
	CUstream stream;
} CUcheckpointCustomStoragePerDeviceData;

typedef struct CUcheckpointCustomStorageInfo_st {
	CUcheckpointOperationHandle handle;
	CUcheckpointCustomStoragePerDeviceData *perDeviceData;
	unsigned int deviceCount;
} CUcheckpointCustomStorageInfo;

typedef struct CUcheckpointCheckpointArgs_st {
	CUcheckpointCustomStorageInfo **customStorageInfo_out;
	char reserved[56];
} CUcheckpointCheckpointArgs;

typedef struct CUcheckpointGpuPair_st {
	CUuuid oldUuid;
	CUuuid newUuid;
} CUcheckpointGpuPair;

typedef struct CUcheckpointRestoreArgs_st {
	CUcheckpointGpuPair *gpuPairs;
	unsigned int gpuPairsCount;
	unsigned int padding0;
	CUcheckpointCustomStorageInfo **customStorageInfo_out;
	char reserved[40];
} CUcheckpointRestoreArgs;

typedef struct CUcheckpointUnlockArgs_st {
	cuuint64_t reserved[8];
} CUcheckpointUnlockArgs;

#endif
