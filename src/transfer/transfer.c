/*
 * See transfer.h. Here: the engine as its caller sees it. Order of a run: check the plan, open the files, hold
 * chunk tables against them, make what rings are missing; only then does the first byte move.
 */

#include "transfer/transfer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"
#include "transfer/plan.h"
#include "transfer/ring.h"

#define DRAIN_NS_DEFAULT (5 * STASIS_NS_PER_S)

struct stasis_transfer {
	struct stasis_transfer_options options;
	struct stasis_transfer_ring **rings; /* one a device */
	size_t ring_count;
};

int stasis_transfer_new(const struct stasis_transfer_options *options,
			struct stasis_transfer **ret_transfer, struct stasis_error *err)
{
	struct stasis_transfer *transfer = calloc(1, sizeof(*transfer));

	if (!transfer)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a transfer engine");
	transfer->options = *options;
	if (!transfer->options.chunk_bytes)
		transfer->options.chunk_bytes = STASIS_CHUNK_BYTES_DEFAULT;
	if (!transfer->options.pinned_bytes)
		transfer->options.pinned_bytes = STASIS_TRANSFER_PINNED_BYTES_MAX;
	transfer->options.pinned_bytes =
		stasis_min_u64(transfer->options.pinned_bytes, STASIS_TRANSFER_PINNED_BYTES_MAX);
	if (!transfer->options.drain_ns)
		transfer->options.drain_ns = DRAIN_NS_DEFAULT;
	*ret_transfer = transfer;
	return 0;
}

void stasis_transfer_free(struct stasis_transfer *transfer)
{
	if (!transfer)
		return;
	for (size_t i = 0; i < transfer->ring_count; i++)
		stasis_transfer_ring_free(transfer->rings[i]);
	free(transfer->rings);
	free(transfer);
}

/* The place of a context's ring; a new, empty place where there is none. */
static struct stasis_transfer_ring **ring_place(struct stasis_transfer *transfer, CUcontext context,
						struct stasis_error *err)
{
	struct stasis_transfer_ring **rings;

	for (size_t i = 0; i < transfer->ring_count; i++) {
		if (transfer->rings[i] && transfer->rings[i]->context == context)
			return &transfer->rings[i];
	}
	for (size_t i = 0; i < transfer->ring_count; i++) {
		if (!transfer->rings[i])
			return &transfer->rings[i];
	}
	rings = realloc(transfer->rings,
			(transfer->ring_count + 1) * sizeof(struct stasis_transfer_ring *));
	if (!rings) {
		(void)stasis_fail_errno(err, STASIS_REFUSED, "make a ring");
		return NULL;
	}
	rings[transfer->ring_count] = NULL;
	transfer->rings = rings;
	return &rings[transfer->ring_count++];
}

/* A ring with slots for chunks of this size; one with smaller slots is replaced. */
static int ring_get(struct stasis_transfer *transfer, CUcontext context, int ordinal,
		    uint64_t chunk_bytes, struct stasis_transfer_ring **ret_ring,
		    struct stasis_error *err)
{
	const struct stasis_transfer_options *options = &transfer->options;
	struct stasis_transfer_ring **place = ring_place(transfer, context, err);
	struct stasis_transfer_ring_options wanted = {
		.driver = options->driver,
		.context = context,
		.ordinal = ordinal,
		.chunk_bytes =
			chunk_bytes > options->chunk_bytes ? chunk_bytes : options->chunk_bytes,
		.pinned_bytes = options->pinned_bytes,
		.drain_ns = options->drain_ns,
		.workers = options->workers,
	};

	if (!place)
		return -1;
	if (*place && (*place)->slot_bytes < wanted.chunk_bytes) {
		stasis_transfer_ring_free(*place);
		*place = NULL;
	}
	if (!*place && stasis_transfer_ring_new(&wanted, place, err) != 0)
		return -1;
	if (stasis_transfer_ring_ready_count(*place) == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "GPU %d: no worker is left: device copies did not end", ordinal);
	*ret_ring = *place;
	return 0;
}

int stasis_transfer_prepare(struct stasis_transfer *transfer, CUcontext context, int device_ordinal,
			    struct stasis_error *err)
{
	struct stasis_transfer_ring *ring;

	if (ring_get(transfer, context, device_ordinal, 0, &ring, err) != 0)
		return -1;
	return transfer->options.codec ? stasis_transfer_ring_pack(ring, err) : 0;
}

static int extent_check_chunks(struct stasis_transfer_extent_plan *extent_plan,
			       struct stasis_transfer_result *result, struct stasis_error *err)
{
	for (uint64_t i = 0; i < extent_plan->chunk_count; i++) {
		struct stasis_transfer_job job = stasis_transfer_job_of(extent_plan, i);
		const char *fault = stasis_transfer_chunk_fault(&job);

		if (!fault)
			continue;
		result->has_damage = true;
		result->damage_extent_index = extent_plan->index;
		result->damage_chunk_index = i;
		result->damage_file_offset = job.chunk->stored_offset;
		stasis_transfer_damage_say(&job, fault, err);
		return -1;
	}
	return 0;
}

static int codec_take(const struct stasis_transfer *transfer,
		      struct stasis_transfer_extent_plan *extent_plan, struct stasis_error *err)
{
	const struct stasis_transfer_extent *extent = extent_plan->extent;

	extent_plan->codec = transfer->options.codec;
	if (extent_plan->codec && extent->chunk_bytes > STASIS_TRANSFER_PACKED_CHUNK_BYTES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "extent '%s': chunks of %llu bytes are too large to be "
				   "compressed; at most %llu",
				   extent->name, (unsigned long long)extent->chunk_bytes,
				   (unsigned long long)STASIS_TRANSFER_PACKED_CHUNK_BYTES_MAX);
	return 0;
}

static int files_prepare(const struct stasis_transfer *transfer,
			 struct stasis_transfer_ready_plan *ready,
			 struct stasis_transfer_result *result, struct stasis_error *err)
{
	for (size_t i = 0; i < ready->extent_count; i++) {
		struct stasis_transfer_extent_plan *extent_plan = &ready->extents[i];
		bool is_saving = extent_plan->extent->direction == STASIS_TRANSFER_SAVE;

		if (stasis_transfer_files_open(&extent_plan->files, extent_plan->extent,
					       transfer->options.store, is_saving, err) != 0 ||
		    (!is_saving && extent_check_chunks(extent_plan, result, err) != 0)) {
			result->failed_side = STASIS_TRANSFER_FILE_SIDE;
			return -1;
		}
		if (is_saving && codec_take(transfer, extent_plan, err) != 0)
			return -1;
		if (i == 0)
			result->store = extent_plan->files.store;
	}
	return 0;
}

static int rings_prepare(struct stasis_transfer *transfer,
			 const struct stasis_transfer_ready_plan *ready,
			 struct stasis_transfer_ring **rings, struct stasis_transfer_result *result,
			 struct stasis_error *err)
{
	bool is_packed = stasis_transfer_plan_is_packed(ready);

	for (size_t i = 0; i < ready->device_count; i++) {
		const struct stasis_transfer_device_plan *device = &ready->devices[i];

		if (ring_get(transfer, device->context, device->ordinal, device->chunk_bytes,
			     &rings[i], err) != 0 ||
		    (is_packed && stasis_transfer_ring_pack(rings[i], err) != 0)) {
			result->failed_side = STASIS_TRANSFER_DEVICE_SIDE;
			return -1;
		}
		result->worker_count += stasis_transfer_ring_ready_count(rings[i]);
		result->pinned_peak_bytes += stasis_transfer_ring_pinned_bytes(rings[i]);
	}
	return 0;
}

static const char *plan_verb(const struct stasis_transfer_plan *plan)
{
	return plan->extent_count > 0 && plan->extents[0].direction == STASIS_TRANSFER_LOAD
		       ? "load"
		       : "save";
}

static int move_all(struct stasis_transfer_ready_plan *ready, struct stasis_transfer_ring **rings,
		    const struct stasis_transfer_watch *watch, const char *verb,
		    struct stasis_transfer_result *result, struct stasis_error *err)
{
	struct stasis_transfer_control control;
	uint32_t threads = 0;
	int status;

	if (stasis_transfer_control_init(&control, watch, verb, ready->total_bytes, err) != 0)
		return -1;
	for (size_t i = 0; i < ready->device_count; i++)
		threads += stasis_transfer_ring_thread_count(rings[i]);
	stasis_transfer_control_enter(&control, threads);
	for (size_t i = 0; i < ready->device_count; i++) {
		struct stasis_transfer_work work = {&control, ready, i};

		stasis_transfer_ring_start(rings[i], &work);
	}
	status = stasis_transfer_control_wait(&control, result, err);
	stasis_transfer_control_fini(&control);
	for (size_t i = 0; i < ready->device_count; i++)
		result->pinned_leaked_bytes += stasis_transfer_ring_leaked_bytes(rings[i]);
	return status;
}

static int files_finish(struct stasis_transfer_ready_plan *ready,
			const struct stasis_transfer_plan *plan,
			struct stasis_transfer_result *result, struct stasis_error *err)
{
	for (size_t i = 0; i < ready->extent_count; i++) {
		struct stasis_transfer_extent *extent = &plan->extents[i];

		if (extent->direction == STASIS_TRANSFER_SAVE &&
		    stasis_transfer_files_finish(&ready->extents[i].files, extent->stripe_bytes,
						 err) != 0) {
			result->failed_side = STASIS_TRANSFER_FILE_SIDE;
			return -1;
		}
	}
	return 0;
}

static int run_ready(struct stasis_transfer *transfer, struct stasis_transfer_ready_plan *ready,
		     const struct stasis_transfer_plan *plan,
		     const struct stasis_transfer_watch *watch,
		     struct stasis_transfer_result *result, struct stasis_error *err)
{
	struct stasis_transfer_ring **rings;
	int status;

	rings = calloc(ready->device_count + 1, sizeof(struct stasis_transfer_ring *));
	if (!rings)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a plan");
	status = files_prepare(transfer, ready, result, err);
	if (status == 0)
		status = rings_prepare(transfer, ready, rings, result, err);
	if (status == 0)
		status = move_all(ready, rings, watch, plan_verb(plan), result, err);
	if (status == 0)
		status = files_finish(ready, plan, result, err);
	free(rings);
	return status;
}

int stasis_transfer_run(struct stasis_transfer *transfer, const struct stasis_transfer_plan *plan,
			const struct stasis_transfer_watch *watch,
			struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_ready_plan ready;
	int status;

	*ret_result = (struct stasis_transfer_result){.failed_side = STASIS_TRANSFER_NO_SIDE};
	status = stasis_transfer_plan_init(&ready, plan, err);
	if (status == 0)
		status = run_ready(transfer, &ready, plan, watch, ret_result, err);
	stasis_transfer_plan_fini(&ready);
	return status;
}
