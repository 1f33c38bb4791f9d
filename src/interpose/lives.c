/* See lives.h. */

#include "interpose/lives.h"

#include "base/cleanup.h"

struct stasis_stream_life stasis_life_of(const struct stasis_calls *calls, CUcontext context)
{
	struct stasis_stream_life life = {.context = context};

	if (context && calls->cuCtxGetId && calls->cuCtxGetId(context, &life.id) != CUDA_SUCCESS)
		life.id = 0;
	return life;
}

bool stasis_life_has_ended(const struct stasis_calls *calls, const struct stasis_stream_life *life)
{
	unsigned long long id = 0;
	CUresult result;

	if (!calls->cuCtxGetId)
		return false;
	result = calls->cuCtxGetId(life->context, &id);
	if (result == CUDA_SUCCESS)
		return id != life->id;
	/* Any other error may be one that the context's work left behind. */
	return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
}

static bool list_prune(const struct stasis_calls *calls, enum stasis_stream_list list)
{
	CLEANUP(free) struct stasis_stream_record *records = NULL;
	struct stasis_stream_life known = {.context = NULL};
	uint32_t count = 0;

	if (!stasis_streams_copy(list, &records, &count))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct stasis_stream_life *life = &records[i].life;

		/* Most streams are of the context that the one before was of. */
		if (life->context == known.context && life->id == known.id)
			continue;
		known = *life;
		if (stasis_life_has_ended(calls, life))
			stasis_streams_remove_life(life);
	}
	return true;
}

bool stasis_lives_prune(const struct stasis_calls *calls)
{
	bool is_whole = true;

	for (int list = 0; list < STASIS_STREAM_LIST_COUNT; list++)
		is_whole = list_prune(calls, (enum stasis_stream_list)list) && is_whole;
	return is_whole;
}
