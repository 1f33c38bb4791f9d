/*
 * See ring.h.
 */

#include "transfer/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/log.h"
#include "base/number.h"
#include "transfer/thread.h"

/* Polling a device sleeps for tens of microseconds: the default slack of 50 would double that. */
#define TIMER_SLACK_NS 2000UL

static int slots_init(struct stasis_transfer_worker *worker, struct stasis_error *err)
{
	const struct stasis_transfer_ring *ring = worker->ring;
	CUresult result;

	for (size_t i = 0; i < STASIS_TRANSFER_SLOTS; i++) {
		worker->slots[i].buffer = worker->pinned.base + i * ring->slot_bytes;
		result = ring->driver->cuEventCreate(&worker->slots[i].event,
						     CU_EVENT_DISABLE_TIMING);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_REFUSED, result,
						"GPU %d: create an event", ring->ordinal);
	}
	return 0;
}

static int pinned_allocate(struct stasis_transfer_worker *worker, struct stasis_error *err)
{
	const struct stasis_transfer_ring *ring = worker->ring;
	size_t bytes = (size_t)ring->slot_bytes * STASIS_TRANSFER_SLOTS;
	CUresult result = stasis_transfer_pinned_alloc(ring->driver, bytes, &worker->pinned);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"GPU %d: pin %zu bytes of host memory", ring->ordinal,
					bytes);
	return 0;
}

static int worker_init(struct stasis_transfer_worker *worker, struct stasis_error *err)
{
	const struct stasis_transfer_ring *ring = worker->ring;
	CUresult result = ring->driver->cuCtxSetCurrent(ring->context);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"GPU %d: make its context current", ring->ordinal);
	result = ring->driver->cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "GPU %d: create a stream",
					ring->ordinal);
	if (pinned_allocate(worker, err) != 0)
		return -1;
	return slots_init(worker, err);
}

/* In the worker's thread, where the context is current. A retired worker's things are in use. */
static void worker_fini(struct stasis_transfer_worker *worker)
{
	const struct stasis_driver *driver = worker->ring->driver;
	CUresult result;

	if (worker->is_retired)
		return;
	for (size_t i = 0; i < STASIS_TRANSFER_SLOTS; i++) {
		if (worker->slots[i].event)
			(void)driver->cuEventDestroy(worker->slots[i].event);
		worker->slots[i].event = NULL;
	}
	result = stasis_transfer_pinned_free(driver, &worker->pinned);
	if (result != CUDA_SUCCESS)
		stasis_log_warn("transfer: GPU %d: a ring stays pinned: %s (%d)",
				worker->ring->ordinal, stasis_cuda_result_name(result),
				(int)result);
	if (worker->stream)
		(void)driver->cuStreamDestroy(worker->stream);
	worker->stream = NULL;
	(void)driver->cuCtxSetCurrent(NULL);
}

/* Waits for work of a higher number; false: the ring closes. */
static bool worker_wait(struct stasis_transfer_ring *ring, uint64_t *io_number,
			struct stasis_transfer_work *ret_work)
{
	bool is_closing;

	stasis_mutex_lock(&ring->mutex);
	while (!ring->is_closing && ring->work_number == *io_number)
		(void)pthread_cond_wait(&ring->wake, &ring->mutex.native);
	is_closing = ring->is_closing;
	*io_number = ring->work_number;
	*ret_work = ring->work;
	stasis_mutex_unlock(&ring->mutex);
	return !is_closing;
}

static void *worker_main(void *data)
{
	struct stasis_transfer_worker *worker = data;
	struct stasis_transfer_work work;
	uint64_t number = 0;

	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	worker->is_ready = worker_init(worker, &worker->init_error) == 0;
	if (!worker->is_ready)
		worker_fini(worker);
	stasis_transfer_control_leave(worker->start);
	if (!worker->is_ready)
		return NULL;
	while (worker_wait(worker->ring, &number, &work)) {
		if (!worker->is_retired)
			stasis_transfer_worker_run(worker, &work);
		stasis_transfer_control_leave(work.control);
	}
	worker_fini(worker);
	return NULL;
}

/* Starts the threads and waits until each has what it needs or has said why not. */
static int workers_start(struct stasis_transfer_ring *ring, struct stasis_transfer_control *start,
			 struct stasis_error *err)
{
	struct stasis_transfer_result unused = {0};
	int code = 0;

	stasis_transfer_control_enter(start, ring->worker_count);
	for (uint32_t i = 0; i < ring->worker_count; i++) {
		struct stasis_transfer_worker *worker = &ring->workers[i];

		worker->ring = ring;
		worker->start = start;
		/* After a first refusal the system is not asked again. */
		if (!code)
			code = stasis_transfer_thread_start(&worker->thread, worker_main, worker);
		worker->has_thread = code == 0;
		if (code)
			stasis_transfer_control_leave(start);
	}
	if (stasis_transfer_control_wait(start, &unused, err) != 0)
		return -1;
	if (!ring->workers[0].has_thread)
		return stasis_fail_code(err, STASIS_REFUSED, code, "GPU %d: start a thread",
					ring->ordinal);
	return 0;
}

/*
 * Want of memory makes a ring smaller, down to one worker; any other failure, or none ready, refuses it. The
 * error of a worker with memory enough tells more than that of one without.
 */
static int workers_check(struct stasis_transfer_ring *ring, struct stasis_error *err)
{
	uint32_t ready = stasis_transfer_ring_ready_count(ring);

	for (uint32_t i = 0; i < ring->worker_count; i++) {
		const struct stasis_error *error = &ring->workers[i].init_error;

		if (stasis_error_is_set(error) &&
		    (ready == 0 || error->cuda_result != CUDA_ERROR_OUT_OF_MEMORY)) {
			stasis_error_take(err, error);
			return -1;
		}
	}
	if (ready < ring->worker_count)
		stasis_log_warn("transfer: GPU %d: went on with %u of %u workers, for want of "
				"memory or threads",
				ring->ordinal, ready, ring->worker_count);
	return 0;
}

static int ring_start(struct stasis_transfer_ring *ring, struct stasis_error *err)
{
	struct stasis_transfer_control start;
	int status;

	if (stasis_transfer_control_init(&start, NULL, "prepare", 0, err) != 0)
		return -1;
	status = workers_start(ring, &start, err);
	stasis_transfer_control_fini(&start);
	return status == 0 ? workers_check(ring, err) : -1;
}

static uint32_t worker_count_of(const struct stasis_transfer_ring_options *options)
{
	uint64_t slots_bytes = options->chunk_bytes * STASIS_TRANSFER_SLOTS;
	uint64_t count = options->workers ? options->workers : stasis_transfer_processor_count();

	count = stasis_min_u64(count, options->pinned_bytes / slots_bytes);
	return (uint32_t)stasis_min_u64(count, STASIS_TRANSFER_WORKERS_MAX);
}

int stasis_transfer_ring_new(const struct stasis_transfer_ring_options *options,
			     struct stasis_transfer_ring **ret_ring, struct stasis_error *err)
{
	struct stasis_transfer_ring *ring;
	uint32_t worker_count = worker_count_of(options);

	if (worker_count == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "GPU %d: two chunks of %llu bytes exceed the limit of %llu "
				   "bytes of pinned memory",
				   options->ordinal, (unsigned long long)options->chunk_bytes,
				   (unsigned long long)options->pinned_bytes);
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return stasis_fail_errno(err, STASIS_REFUSED, "GPU %d: make a ring",
					 options->ordinal);
	ring->driver = options->driver;
	ring->context = options->context;
	ring->ordinal = options->ordinal;
	ring->slot_bytes = options->chunk_bytes;
	ring->drain_ns = options->drain_ns;
	ring->worker_count = worker_count;
	ring->mutex = (struct stasis_mutex)STASIS_MUTEX_INITIALIZER;
	ring->wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	if (ring_start(ring, err) != 0) {
		stasis_transfer_ring_free(ring);
		return -1;
	}
	*ret_ring = ring;
	return 0;
}

void stasis_transfer_ring_free(struct stasis_transfer_ring *ring)
{
	uint64_t leaked;

	if (!ring)
		return;
	stasis_mutex_lock(&ring->mutex);
	ring->is_closing = true;
	(void)pthread_cond_broadcast(&ring->wake);
	stasis_mutex_unlock(&ring->mutex);
	for (uint32_t i = 0; i < ring->worker_count; i++) {
		if (ring->workers[i].has_thread)
			(void)pthread_join(ring->workers[i].thread, NULL);
		stasis_transfer_packing_fini(&ring->workers[i].packing);
	}
	leaked = stasis_transfer_ring_leaked_bytes(ring);
	if (leaked > 0)
		stasis_log_warn("transfer: GPU %d: %llu bytes stay pinned, since a device copy may "
				"still be using them",
				ring->ordinal, (unsigned long long)leaked);
	free(ring);
}

int stasis_transfer_ring_pack(struct stasis_transfer_ring *ring, struct stasis_error *err)
{
	for (uint32_t i = 0; i < ring->worker_count; i++) {
		struct stasis_transfer_worker *worker = &ring->workers[i];
		int code = 0;

		if (worker->is_ready && !worker->packing.buffer)
			code = stasis_transfer_packing_init(&worker->packing,
							    (size_t)ring->slot_bytes);
		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code,
						"GPU %d: get memory to compress chunks of %llu "
						"bytes",
						ring->ordinal,
						(unsigned long long)ring->slot_bytes);
	}
	return 0;
}

uint32_t stasis_transfer_ring_ready_count(const struct stasis_transfer_ring *ring)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ring->worker_count; i++)
		count += ring->workers[i].is_ready && !ring->workers[i].is_retired;
	return count;
}

uint32_t stasis_transfer_ring_thread_count(const struct stasis_transfer_ring *ring)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ring->worker_count; i++)
		count += ring->workers[i].is_ready;
	return count;
}

uint64_t stasis_transfer_ring_pinned_bytes(const struct stasis_transfer_ring *ring)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ring->worker_count; i++) {
		if (ring->workers[i].is_ready)
			bytes += ring->slot_bytes * STASIS_TRANSFER_SLOTS;
	}
	return bytes;
}

uint64_t stasis_transfer_ring_leaked_bytes(const struct stasis_transfer_ring *ring)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ring->worker_count; i++) {
		if (ring->workers[i].is_retired)
			bytes += ring->slot_bytes * STASIS_TRANSFER_SLOTS;
	}
	return bytes;
}

void stasis_transfer_ring_start(struct stasis_transfer_ring *ring,
				const struct stasis_transfer_work *work)
{
	stasis_mutex_lock(&ring->mutex);
	ring->work = *work;
	ring->work_number++;
	(void)pthread_cond_broadcast(&ring->wake);
	stasis_mutex_unlock(&ring->mutex);
}
