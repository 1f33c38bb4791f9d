/*
 * An actor of share_random: one random step after the other, and in the end everything verified, given back and seen to
 * be free again.
 */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "device.h"
#include "kernels.h"
#include "reduce.h"
#include "share_random.h"

#define WAIT_US 2000

/* ---- memory of cuMemAlloc ---- */

static void native_step(struct actor *actor)
{
	struct native *native = &actor->natives[draw(actor, NATIVES_MAX)];

	if (native->address == 0) {
		*native = (struct native){.address = t_alloc(PIECE_BYTES)};
		piece_write(actor, &native->piece, native->address);
	} else if (draw(actor, 4) == 0) {
		piece_verify(actor, &native->piece, native->address);
		T_OK(cuMemFree_v2(native->address));
		native->address = 0;
	} else if (draw(actor, 2) == 0) {
		piece_write(actor, &native->piece, native->address);
	} else {
		piece_verify(actor, &native->piece, native->address);
	}
}

static void natives_free(struct actor *actor)
{
	for (size_t i = 0; i < NATIVES_MAX; i++) {
		if (actor->natives[i].address == 0)
			continue;
		piece_verify(actor, &actor->natives[i].piece, actor->natives[i].address);
		T_OK(cuMemFree_v2(actor->natives[i].address));
		actor->natives[i].address = 0;
	}
}

/* ---- steps ---- */

static void answers_check(struct actor *actor)
{
	handles_check(actor);
	spans_check(actor);
}

static void all_verify(struct actor *actor)
{
	if (draw(actor, 4) == 0)
		spans_verify(actor);
}

/* clang-format off: each as often as it stands there */
static void (*const steps[])(struct actor *) = {
	handle_create, handle_release, handle_send, handle_send, span_map,
	span_unmap,    span_access,    span_retain, span_write,  span_write,
	span_copy,     span_verify,    span_verify, all_verify,  answers_check,
	native_step,   native_step,    team_begin,  team_use,    team_use,
};
/* clang-format on */

static void step(struct actor *actor)
{
	mail_take(actor);
	team_serve(actor);
	steps[draw(actor, sizeof(steps) / sizeof(steps[0]))](actor);
	/* none that does nothing may go round while the others are held */
	T_OK(cuStreamGetFlags(actor->stream, &(unsigned int){0}));
	actor->model->rounds[actor->index]++;
}

/* ---- beginning and end ---- */

/* All have counted themselves; meanwhile the others may need something, and a team that is forming room. */
static void all_wait(struct actor *actor, atomic_uint *count)
{
	unsigned actors = actor->options->processes * THREADS;
	bool is_over;

	*count += 1;
	do {
		mail_take(actor);
		team_serve(actor);
		is_over = team_is_over(actor);
		if (!is_over) {
			handle_release(actor);
			span_unmap(actor);
		}
		(void)usleep(WAIT_US);
	} while (*count < actors || !is_over);
}

static size_t free_bytes(void)
{
	size_t found = 0;
	size_t total = 0;

	T_OK(cuMemGetInfo_v2(&found, &total));
	return found;
}

static void begin(struct actor *actor)
{
	CUmodule module = NULL;

	T_OK(cuCtxSetCurrent(actor->context));
	T_OK(cuModuleLoadData(&module, kernels_ptx));
	T_OK(cuModuleGetFunction(&actor->fill, module, "stasis_fill_u32"));
	T_OK(cuModuleGetFunction(&actor->add, module, "stasis_add_u32"));
	T_OK(cuModuleGetFunction(&actor->compare, module, "stasis_compare_u32"));
	if (actor->options->has_multicast) {
		T_OK(cuModuleLoadData(&module, reduce_ptx));
		T_OK(cuModuleGetFunction(&actor->reduce, module, "stasis_multimem_add_u32"));
	}
	actor->stream = t_stream(CU_STREAM_NON_BLOCKING);
	actor->scratch = t_alloc(PIECE_BYTES);
	actor->buffer = malloc(BLOCKS_MAX * BLOCK_BYTES);
	T_TRUE(actor->buffer != NULL);
	all_wait(actor, &actor->model->begun);
	actor->model->free_bytes[actor->process] = free_bytes();
	all_wait(actor, &actor->model->measured);
}

/* False: something is awaited elsewhere. */
static bool everything_free(struct actor *actor)
{
	bool is_free = spans_free(actor);

	for (size_t i = 0; i < HOLDS_MAX; i++)
		while (actor->holds[i].object && is_free)
			is_free = hold_release(actor, &actor->holds[i]);
	return is_free;
}

static void end(struct actor *actor)
{
	size_t found;

	all_wait(actor, &actor->model->at_rest);
	answers_check(actor);
	spans_verify(actor);
	do {
		(void)usleep(WAIT_US);
		mail_take(actor);
	} while (!everything_free(actor));
	natives_free(actor);
	all_wait(actor, &actor->model->empty);
	found = free_bytes();
	if (found < actor->model->free_bytes[actor->process])
		wrong(actor, "%zu bytes of device %d were free, and now that all is freed %zu",
		      actor->model->free_bytes[actor->process], actor->device, found);
	free(actor->buffer);
}

void actor_run(struct actor *actor)
{
	begin(actor);
	while (!actor->model->is_ending)
		step(actor);
	end(actor);
}
