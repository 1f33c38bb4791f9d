/*
 * What a worker does: it goes round its two slots. At each it first finishes the chunk that is there, then
 * takes the next one and sets its link side going, so that this side runs while the other slot is finished.
 *
 *     save   begin: device to slot, enqueued                finish: wait, digest, write
 *     load   begin: read, verify, slot to device, enqueued  finish: wait
 *
 * The device is polled, never waited for: a copy that does not end must not hold up the end of a transfer.
 */

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "transfer/chunk.h"
#include "transfer/ring.h"

#define PAUSE_NS_MIN 10000L
#define PAUSE_NS_MAX 40000L

static void fail_device(struct stasis_transfer_worker *worker,
			const struct stasis_transfer_work *work,
			const struct stasis_transfer_job *job, CUresult result)
{
	struct stasis_transfer_failure failure = {.side = STASIS_TRANSFER_DEVICE_SIDE};
	const struct stasis_transfer_extent *extent = job->extent_plan->extent;
	bool is_save = extent->direction == STASIS_TRANSFER_SAVE;
	struct stasis_error error = STASIS_ERROR_INIT;

	(void)stasis_fail_cuda(&error, STASIS_REFUSED, result,
			       "GPU %d: copy chunk %llu of extent '%s' %s the device",
			       worker->ring->ordinal, (unsigned long long)job->chunk_index,
			       extent->name, is_save ? "from" : "to");
	stasis_transfer_control_fail(work->control, job->order, &failure, &error);
}

/* Yields at first, then sleeps, longer each time. */
static void poll_pause(uint32_t round)
{
	long pause_ns = PAUSE_NS_MIN;
	struct timespec pause = {0};

	if (round < 4) {
		(void)sched_yield();
		return;
	}
	for (uint32_t i = 4; i < round && pause_ns < PAUSE_NS_MAX; i++)
		pause_ns *= 2;
	pause.tv_nsec = pause_ns;
	(void)nanosleep(&pause, NULL);
}

/* Enqueues one piece of a job; `buffer` holds what is at device address `at`. */
static CUresult piece_move(const struct stasis_transfer_worker *worker,
			   const struct stasis_transfer_job *job, uint8_t *buffer, CUdeviceptr at,
			   size_t bytes)
{
	const struct stasis_driver *driver = worker->ring->driver;

	if (job->extent_plan->extent->direction == STASIS_TRANSFER_SAVE)
		return driver->cuMemcpyDtoHAsync(buffer, at, bytes, worker->stream);
	if (job->chunk->flags & STASIS_CHUNK_ZERO)
		return driver->cuMemsetD8Async(at, 0, bytes, worker->stream);
	return driver->cuMemcpyHtoDAsync(at, buffer, bytes, worker->stream);
}

/* Enqueues all pieces of the slot's job and the event behind them. */
static int link_begin(struct stasis_transfer_worker *worker,
		      const struct stasis_transfer_work *work, struct stasis_transfer_slot *slot)
{
	const struct stasis_transfer_job *job = &slot->job;
	const struct stasis_transfer_piece *piece = stasis_transfer_plan_piece(work->plan, job);
	uint64_t into = job->extent_offset - piece->extent_offset;
	CUresult result = CUDA_SUCCESS;

	slot->is_busy = true;
	for (uint64_t moved = 0; moved < job->bytes && result == CUDA_SUCCESS; piece++) {
		uint64_t bytes = stasis_min_u64(piece->bytes - into, job->bytes - moved);

		result = piece_move(worker, job, slot->buffer + moved, piece->device_pointer + into,
				    (size_t)bytes);
		moved += bytes;
		into = 0;
	}
	if (result == CUDA_SUCCESS)
		result = worker->ring->driver->cuEventRecord(slot->event, worker->stream);
	if (result == CUDA_SUCCESS)
		return 0;
	fail_device(worker, work, job, result);
	return -1;
}

/* Waits for the slot's event; -1: failed or stopped, and the slot stays busy. */
static int link_wait(struct stasis_transfer_worker *worker, const struct stasis_transfer_work *work,
		     struct stasis_transfer_slot *slot)
{
	const struct stasis_driver *driver = worker->ring->driver;

	for (uint32_t round = 0;; round++) {
		CUresult result = driver->cuEventQuery(slot->event);

		if (result == CUDA_SUCCESS)
			break;
		if (result != CUDA_ERROR_NOT_READY) {
			fail_device(worker, work, &slot->job, result);
			return -1;
		}
		if (stasis_transfer_control_is_stopped(work->control))
			return -1;
		poll_pause(round);
	}
	slot->is_busy = false;
	return 0;
}

static int slot_begin(struct stasis_transfer_worker *worker,
		      const struct stasis_transfer_work *work, struct stasis_transfer_slot *slot)
{
	struct stasis_transfer_control *control = work->control;

	if (slot->job.extent_plan->extent->direction == STASIS_TRANSFER_LOAD &&
	    stasis_transfer_chunk_load(control, &slot->job, slot->buffer, &worker->packing,
				       work->plan->verify, &control->is_stopped) != 0)
		return -1;
	return link_begin(worker, work, slot);
}

static int slot_finish(struct stasis_transfer_worker *worker,
		       const struct stasis_transfer_work *work, struct stasis_transfer_slot *slot)
{
	struct stasis_transfer_control *control = work->control;

	if (link_wait(worker, work, slot) != 0)
		return -1;
	if (slot->job.extent_plan->extent->direction == STASIS_TRANSFER_SAVE)
		return stasis_transfer_chunk_save(control, &slot->job, slot->buffer,
						  &worker->packing);
	stasis_transfer_control_count(&control->done_bytes, slot->job.bytes);
	return 0;
}

static bool worker_is_busy(const struct stasis_transfer_worker *worker)
{
	for (size_t i = 0; i < STASIS_TRANSFER_SLOTS; i++) {
		if (worker->slots[i].is_busy)
			return true;
	}
	return false;
}

/* After a failure or a stop: waits until the link uses no slot any more, or retires the worker. */
static void worker_drain(struct stasis_transfer_worker *worker)
{
	const struct stasis_transfer_ring *ring = worker->ring;
	uint64_t deadline_ns = stasis_deadline_after_ns(ring->drain_ns);
	CUresult result = CUDA_ERROR_NOT_READY;

	for (uint32_t round = 0;; round++) {
		result = ring->driver->cuStreamQuery(worker->stream);
		if (result != CUDA_ERROR_NOT_READY || stasis_deadline_passed(deadline_ns))
			break;
		poll_pause(round);
	}
	if (result != CUDA_SUCCESS) {
		worker->is_retired = true;
		stasis_log_warn("transfer: GPU %d: gave up a worker whose device copy did not end: "
				"%s (%d)",
				ring->ordinal, stasis_cuda_result_name(result), (int)result);
		return;
	}
	for (size_t i = 0; i < STASIS_TRANSFER_SLOTS; i++)
		worker->slots[i].is_busy = false;
}

void stasis_transfer_worker_run(struct stasis_transfer_worker *worker,
				const struct stasis_transfer_work *work)
{
	bool has_more = true;

	for (size_t turn = 0; !stasis_transfer_control_is_stopped(work->control); turn++) {
		struct stasis_transfer_slot *slot = &worker->slots[turn % STASIS_TRANSFER_SLOTS];

		if (slot->is_busy && slot_finish(worker, work, slot) != 0)
			break;
		if (has_more)
			has_more = stasis_transfer_plan_take(work->plan, work->device_index,
							     &slot->job);
		if (has_more && slot_begin(worker, work, slot) != 0)
			break;
		if (!has_more && !worker_is_busy(worker))
			break;
	}
	if (worker_is_busy(worker))
		worker_drain(worker);
}
