/* Contexts: their life, the stack of each thread, peer access and limits; see context.h. */

#include "context.h"

#include "allocation.h"
#include "capture.h"
#include "event.h"
#include "machine.h"
#include "module.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

__thread struct sim_thread sim_thread;

struct sim_context *sim_context_current(void)
{
	if (sim_thread.depth == 0 && sim_breaks("current_is_per_thread"))
		return sim_core.devices[0].primary;
	return sim_thread.depth > 0 ? sim_thread.stack[sim_thread.depth - 1] : NULL;
}

CUresult sim_context_check(const struct sim_context *context)
{
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context->is_alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return sim_context_error(context);
}

CUresult sim_context_get(CUcontext handle, struct sim_context **ret_context)
{
	struct sim_context *context = (struct sim_context *)(void *)handle;

	if (handle == NULL)
		context = sim_context_current();
	else if (!sim_set_has(&sim_core.contexts, context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_context = context;
	return context->is_alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult context_new(int device, bool is_primary, struct sim_context **ret_context)
{
	struct sim_context *context = calloc(1, sizeof(*context));

	if (context == NULL || !sim_set_add(&sim_core.contexts, context)) {
		free(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context->device = device;
	context->is_primary = is_primary;
	*ret_context = context;
	return CUDA_SUCCESS;
}

static bool has_context(int device)
{
	for (size_t i = 0; i < sim_core.contexts.count; i++) {
		const struct sim_context *context = sim_core.contexts.items[i];

		if (context->device == device && context->is_alive)
			return true;
	}
	return false;
}

/* Whoever has a context on a GPU has memory of it. */
static CUresult mode_check(int physical)
{
	uint64_t used_bytes = sim_machine_total_bytes(physical) - sim_machine_free_bytes(physical);
	int mode = sim_config()->compute_mode;

	if (mode == CU_COMPUTEMODE_PROHIBITED || (mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS &&
						  used_bytes > sim_machine_own_bytes(physical)))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	return CUDA_SUCCESS;
}

/* A context takes memory of its device for as long as it lives. */
static CUresult context_start(struct sim_context *context)
{
	int physical = sim_core.devices[context->device].physical;
	CUresult result = sim_context_error(context);

	if (result == CUDA_SUCCESS)
		result = mode_check(physical);
	if (result == CUDA_SUCCESS)
		result = sim_machine_take(physical, sim_config()->context_bytes);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_stream_new(context, CU_STREAM_DEFAULT, 0, &context->legacy_stream);
	if (result != CUDA_SUCCESS) {
		sim_machine_give(physical, sim_config()->context_bytes);
		return result;
	}
	context->legacy_stream->is_legacy = true;
	context->is_alive = true;
	/* A primary context has one handle, and an id of its own in each life. */
	if (context->id == 0 || !sim_breaks("context_id"))
		context->id = sim_core_new_id_locked();
	memset(context->peer_access, 0, sizeof(context->peer_access));
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	return CUDA_SUCCESS;
}

/* Ends all that belongs to it, waiting for queued work first. */
static void context_end(struct sim_context *context)
{
	context->is_alive = false;
	sim_capture_context_dropped(context);
	sim_stream_drop_context(context);
	sim_event_drop_context(context);
	sim_module_drop_context(context);
	sim_allocation_free_context(context);
	if (!has_context(context->device))
		sim_core.devices[context->device].error = CUDA_SUCCESS;
	sim_machine_give(sim_core.devices[context->device].physical, sim_config()->context_bytes);
}

static CUresult push(struct sim_context *context)
{
	if (sim_thread.depth == SIM_CONTEXT_STACK_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_thread.stack[sim_thread.depth++] = context;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *ret_context, unsigned flags, CUdevice device)
{
	struct sim_context *context = NULL;
	CUresult result;

	if (ret_context == NULL || (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = context_new(device, false, &context);
	if (result != CUDA_SUCCESS)
		return result;
	context->flags = flags;
	result = context_start(context);
	if (result == CUDA_SUCCESS && !sim_breaks("created_is_current"))
		result = push(context);
	if (result == CUDA_SUCCESS)
		*ret_context = sim_context_handle(context);
	return result;
}

SIM_API CUresult cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, create(ret_context, flags, device));
}

SIM_API CUresult cuCtxCreate_v4(CUcontext *ret_context, CUctxCreateParams *params,
				unsigned int flags, CUdevice device)
{
	/* Execution affinity and the like are not simulated. */
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       params != NULL ? CUDA_ERROR_NOT_SUPPORTED
					      : create(ret_context, flags, device));
}

static CUresult destroy(CUcontext handle)
{
	struct sim_context *context = NULL;
	CUresult result;

	if (handle == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_context_get(handle, &context);
	if (context != NULL && context->is_primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (result != CUDA_SUCCESS)
		return result;
	if (sim_context_current() == context)
		sim_thread.depth--;
	context_end(context);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxDestroy_v2(CUcontext context)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, destroy(context));
}

SIM_API CUresult cuCtxDestroy(CUcontext context)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, destroy(context));
}

static CUresult retain(CUcontext *ret_context, CUdevice device)
{
	struct sim_context **primary;
	CUresult result = CUDA_SUCCESS;

	if (ret_context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary = &sim_core.devices[device].primary;
	if (*primary == NULL)
		result = context_new(device, true, primary);
	if (result == CUDA_SUCCESS && !(*primary)->is_alive)
		result = context_start(*primary);
	if (result != CUDA_SUCCESS)
		return result;
	(*primary)->retained++;
	*ret_context = sim_context_handle(*primary);
	if ((*primary)->retained > 1 && sim_breaks("primary_is_one"))
		*ret_context = (CUcontext)(void *)&sim_core;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, retain(ret_context, device));
}

static CUresult release(CUdevice device)
{
	struct sim_context *primary;

	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary = sim_core.devices[device].primary;
	if (primary == NULL || primary->retained == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--primary->retained == 0 && primary->is_alive && !sim_breaks("primary_release_frees"))
		context_end(primary);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, release(device));
}

SIM_API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, release(device));
}

static CUresult reset(CUdevice device)
{
	struct sim_context *primary;

	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary = sim_core.devices[device].primary;
	if (primary != NULL && primary->is_alive)
		context_end(primary);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, reset(device));
}

SIM_API CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, reset(device));
}

static CUresult primary_state(CUdevice device, unsigned *ret_flags, int *ret_active)
{
	const struct sim_context *primary;

	if (ret_flags == NULL || ret_active == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary = sim_core.devices[device].primary;
	*ret_flags = primary != NULL ? primary->flags : 0;
	*ret_active = (primary != NULL && primary->is_alive) || sim_breaks("primary_state");
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *ret_flags,
					    int *ret_active)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT,
			       primary_state(device, ret_flags, ret_active));
}

static CUresult primary_set_flags(CUdevice device, unsigned flags)
{
	struct sim_context **primary;
	CUresult result = CUDA_SUCCESS;

	if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	primary = &sim_core.devices[device].primary;
	if (*primary == NULL)
		result = context_new(device, true, primary);
	if (result == CUDA_SUCCESS && !sim_breaks("primary_flags"))
		(*primary)->flags = flags;
	return result;
}

SIM_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, primary_set_flags(device, flags));
}

static CUresult push_handle(CUcontext handle)
{
	struct sim_context *context = NULL;
	CUresult result =
		handle != NULL ? sim_context_get(handle, &context) : CUDA_ERROR_INVALID_VALUE;

	return result == CUDA_SUCCESS ? push(context) : result;
}

SIM_API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, push_handle(context));
}

static CUresult pop(CUcontext *ret_context)
{
	if (sim_thread.depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ret_context != NULL)
		*ret_context = sim_context_handle(sim_context_current());
	if (!sim_breaks("context_stack"))
		sim_thread.depth--;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxPopCurrent_v2(CUcontext *ret_context)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, pop(ret_context));
}

/* Replaces the top of the stack; NULL takes it away. One that has ended is taken, and answers nothing. */
static CUresult set_current(CUcontext handle)
{
	struct sim_context *context = NULL;
	CUresult result = CUDA_SUCCESS;

	if (handle != NULL)
		result = sim_context_get(handle, &context);
	if (handle != NULL && context == NULL)
		return result;
	if (sim_thread.depth > 0)
		sim_thread.depth--;
	return context != NULL ? push(context) : CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetCurrent(CUcontext context)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, set_current(context));
}

static CUresult get_current(CUcontext *ret_context)
{
	if (ret_context == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_context = sim_context_handle(sim_context_current());
	if (*ret_context == NULL && sim_breaks("current_starts_empty"))
		*ret_context = (CUcontext)(void *)&sim_core;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxGetCurrent(CUcontext *ret_context)
{
	return SIM_CALL_LOCKED(SIM_CALL_PURE, SIM_NEEDS_INIT, get_current(ret_context));
}
