/*
 * Description: contexts, primary and created, and which one is current.
 */
#include "behaviour.h"
#include "check.h"
#include "device.h"
#include "gate.h"

static void context_needed(void)
{
	CUdeviceptr address = 0;
	CUdevice device;

	t_init_only();
	T_IS(cuMemAlloc_v2(&address, 4096), CUDA_ERROR_INVALID_CONTEXT);
	T_IS(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
	T_IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

static void current_starts_empty(void)
{
	CUcontext context = (CUcontext)&context;

	t_init_only();
	T_OK(cuCtxGetCurrent(&context));
	T_TRUE(context == NULL);
}

static void primary_is_one(void)
{
	CUcontext first = t_cuda();
	CUcontext second = NULL;

	T_OK(cuDevicePrimaryCtxRetain(&second, 0));
	T_TRUE(first == second);
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void primary_releases(void)
{
	(void)t_cuda();
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
	T_IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void primary_state(void)
{
	unsigned int flags = 0;
	int is_active = -1;
	CUcontext context = NULL;

	t_init_only();
	T_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
	T_EQ(is_active, 0);
	T_OK(cuDevicePrimaryCtxRetain(&context, 0));
	T_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
	T_EQ(is_active, 1);
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
	T_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
	T_EQ(is_active, 0);
}

static void primary_flags(void)
{
	unsigned int flags = 0;
	int is_active = -1;

	t_init_only();
	T_OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
	T_OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
	T_EQ(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
	T_IS(cuDevicePrimaryCtxSetFlags_v2(0, 0x10000), CUDA_ERROR_INVALID_VALUE);
}

static void primary_release_frees(void)
{
	CUmemorytype type;
	CUcontext context = t_cuda();
	CUdeviceptr address = t_alloc(4 * T_MIB);

	T_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
	T_OK(cuDevicePrimaryCtxRetain(&context, 0));
	T_OK(cuCtxSetCurrent(context));
	T_IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
	     CUDA_ERROR_INVALID_VALUE);
}

static void context_stack(void)
{
	CUcontext context = t_cuda();
	CUcontext current = NULL;
	CUcontext popped = NULL;

	T_OK(cuCtxSetCurrent(NULL));
	T_OK(cuCtxPushCurrent_v2(context));
	T_OK(cuCtxGetCurrent(&current));
	T_TRUE(current == context);
	T_OK(cuCtxPopCurrent_v2(&popped));
	T_TRUE(popped == context);
	T_OK(cuCtxGetCurrent(&current));
	T_TRUE(current == NULL);
	T_IS(cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

static CUresult read_current(void *argument)
{
	return cuCtxGetCurrent(argument);
}

static void current_is_per_thread(void)
{
	CUcontext context = t_cuda();
	CUcontext theirs = context;
	struct t_task task;

	t_task_start(&task, read_current, &theirs);
	T_OK(t_task_join(&task));
	T_TRUE(theirs == context); /* the task took it over */
	T_OK(cuCtxSetCurrent(NULL));
	theirs = context;
	t_task_start(&task, read_current, &theirs);
	T_OK(cuCtxSetCurrent(context));
	T_OK(t_task_join(&task));
	T_TRUE(theirs == NULL);
}

static void created_is_current(void)
{
	CUcontext primary = t_cuda();
	CUcontext created = NULL;
	CUcontext current = NULL;

	T_OK(cuCtxCreate_v2(&created, 0, 0));
	T_TRUE(created != primary);
	T_OK(cuCtxGetCurrent(&current));
	T_TRUE(current == created);
	T_OK(cuCtxDestroy_v2(created));
	T_OK(cuCtxGetCurrent(&current));
	T_TRUE(current == primary);
}

static void context_device(void)
{
	CUdevice device = -1;

	(void)t_cuda();
	T_OK(cuCtxGetDevice(&device));
	T_EQ(device, 0);
}

/* A primary context has one handle, life after life. */
static void context_id(void)
{
	CUcontext context = t_cuda();
	unsigned long long first = 0;
	unsigned long long second = 0;

	T_OK(cuCtxGetId(context, &first));
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
	T_IS(cuCtxGetId(context, &second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	T_OK(cuCtxSetCurrent(context));
	T_OK(cuDevicePrimaryCtxRetain(&context, 0));
	T_OK(cuCtxGetId(context, &second));
	T_TRUE(first != second);
	T_OK(cuDevicePrimaryCtxReset_v2(0));
	T_IS(cuCtxGetId(context, &second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static void context_limits(void)
{
	size_t bytes = 0;

	(void)t_cuda();
	T_OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	T_OK(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
	T_EQ(bytes, 4096);
	T_REFUSED(cuCtxGetLimit(&bytes, (CUlimit)1000));
}

static const struct t_behaviour behaviours[] = {
	{"context_needed", T_DOCUMENTED, "without a current context calls answer INVALID_CONTEXT",
	 context_needed},
	{"current_starts_empty", T_DOCUMENTED, "a thread starts with no current context",
	 current_starts_empty},
	{"primary_is_one", T_DOCUMENTED, "every retain of a device gives the same primary context",
	 primary_is_one},
	{"primary_releases", T_DOCUMENTED,
	 "a primary context that nobody retains cannot be released: INVALID_CONTEXT",
	 primary_releases},
	{"primary_state", T_DOCUMENTED,
	 "a primary context is active from its first retain to its last release", primary_state},
	{"primary_flags", T_DOCUMENTED, "flags of a primary context are kept; unknown ones refused",
	 primary_flags},
	{"primary_release_frees", T_DOCUMENTED,
	 "memory of a primary context is gone with its last release", primary_release_frees},
	{"context_stack", T_DOCUMENTED,
	 "contexts are pushed and popped; an empty stack is INVALID_CONTEXT", context_stack},
	{"current_is_per_thread", T_DOCUMENTED, "each thread has its own current context",
	 current_is_per_thread},
	{"created_is_current", T_DOCUMENTED,
	 "a created context becomes current, and destroying it uncovers the one before",
	 created_is_current},
	{"context_device", T_DOCUMENTED, "cuCtxGetDevice names the current context's device",
	 context_device},
	{"context_id", T_MEASURED,
	 "a context that has ended has no id; its handle may come again, its id does not",
	 context_id},
	{"context_limits", T_DOCUMENTED, "a limit that was set can be read; unknown ones fail",
	 context_limits},
};

T_BEHAVIOURS_MAIN(behaviours)
