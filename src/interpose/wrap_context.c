/*
 * The handlers that keep account of the contexts that the application creates, and of the end of any: its streams and
 * captures end with it. See streams.h. A primary context ends when it is reset, or released as often as retained.
 */

#include "interpose/calls.h"
#include "interpose/handlers.h"
#include "interpose/lives.h"
#include "interpose/streams.h"

static struct stasis_stream_life life_of(CUcontext context)
{
	const struct stasis_calls *calls = stasis_calls_get();

	if (!calls)
		return (struct stasis_stream_life){.context = context};
	return stasis_life_of(calls, context);
}

static CUresult context_made(CUresult result, struct stasis_stream_node *room,
			     const CUcontext *context)
{
	struct stasis_stream_record record = {.begun_by = 0};

	if (result != CUDA_SUCCESS) {
		stasis_streams_drop(room);
		return result;
	}
	record.life = life_of(*context);
	record.context = *context;
	record.key.stream = (CUstream)(void *)*context;
	stasis_streams_add(STASIS_CONTEXTS, room, &record);
	return result;
}

/* The work of a context that we do not know could not be waited for. */
#define CONTEXT_CREATE(elf, parameters, ...)                                                       \
	CUresult stasis_handle_##elf parameters                                                    \
	{                                                                                          \
		struct stasis_stream_node *room = stasis_streams_room();                           \
                                                                                                   \
		if (!room)                                                                         \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		return context_made(target(__VA_ARGS__), room, ret_context);                       \
	}

CONTEXT_CREATE(cuCtxCreate,
	       (__typeof__(cuCtxCreate_v2) *target, CUcontext *ret_context, unsigned int flags,
		CUdevice device),
	       ret_context, flags, device)
CONTEXT_CREATE(cuCtxCreate_v2,
	       (__typeof__(cuCtxCreate_v2) *target, CUcontext *ret_context, unsigned int flags,
		CUdevice device),
	       ret_context, flags, device)
CONTEXT_CREATE(cuCtxCreate_v3,
	       (CUresult(*target)(CUcontext *, void *, int, unsigned int, CUdevice),
		CUcontext *ret_context, void *affinity, int count, unsigned int flags,
		CUdevice device),
	       ret_context, affinity, count, flags, device)
CONTEXT_CREATE(cuCtxCreate_v4,
	       (__typeof__(cuCtxCreate_v4) *target, CUcontext *ret_context,
		CUctxCreateParams *parameters, unsigned int flags, CUdevice device),
	       ret_context, parameters, flags, device)

/*
 * What is removed afterwards is of this life alone: by then another thread may have been given the same handle for a
 * context of its own. A call that fails may have ended the context all the same, and one that detaches may not
 * have ended it yet.
 */
static CUresult context_leave(CUresult (*target)(CUcontext), CUcontext context, bool ends_always)
{
	const struct stasis_calls *calls = stasis_calls_get();
	struct stasis_stream_life life = life_of(context);
	CUresult result = target(context);

	if (!context)
		return result;
	if ((result == CUDA_SUCCESS && ends_always) ||
	    (calls && stasis_life_has_ended(calls, &life)))
		stasis_streams_remove_life(&life);
	return result;
}

CUresult stasis_handle_cuCtxDestroy(__typeof__(cuCtxDestroy_v2) *target, CUcontext context)
{
	return context_leave(target, context, true);
}

CUresult stasis_handle_cuCtxDestroy_v2(__typeof__(cuCtxDestroy_v2) *target, CUcontext context)
{
	return context_leave(target, context, true);
}

/* Ends the context with the last use of it: one of its making, and one each time that it was attached to. */
CUresult stasis_handle_cuCtxDetach(__typeof__(cuCtxDestroy_v2) *target, CUcontext context)
{
	return context_leave(target, context, false);
}

/* ---- primary contexts, and green ones ---- */

/* Which context the device's is, or was, nobody tells: those of all records are asked. */
static CUresult primary_left(CUresult result, CUdevice device)
{
	const struct stasis_calls *calls = stasis_calls_get();
	unsigned int flags;
	int is_active = 0;

	if (!calls ||
	    (calls->cuDevicePrimaryCtxGetState(device, &flags, &is_active) == CUDA_SUCCESS &&
	     is_active))
		return result;
	/* What there is no memory to look through is looked through again before anything is asked. */
	(void)stasis_lives_prune(calls);
	return result;
}

/* Its streams answer nothing from then on (measured on driver 580). */
CUresult stasis_handle_cuGreenCtxDestroy(CUresult (*target)(CUgreenCtx), CUgreenCtx green)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUresult result = target(green);

	if (calls)
		(void)stasis_lives_prune(calls);
	return result;
}

#define PRIMARY_LEAVE(elf)                                                                         \
	CUresult stasis_handle_##elf(CUresult (*target)(CUdevice), CUdevice device)                \
	{                                                                                          \
		return primary_left(target(device), device);                                       \
	}

PRIMARY_LEAVE(cuDevicePrimaryCtxRelease)
PRIMARY_LEAVE(cuDevicePrimaryCtxRelease_v2)
PRIMARY_LEAVE(cuDevicePrimaryCtxReset)
PRIMARY_LEAVE(cuDevicePrimaryCtxReset_v2)
