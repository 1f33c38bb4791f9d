/*
 * What is done to files with no device: every digest checked, every stripe brought to the disk.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/number.h"
#include "transfer/chunk.h"
#include "transfer/plan.h"
#include "transfer/thread.h"

#define SYNC_THREADS_MAX 16

/* For the buffers of all threads together. */
#define VERIFY_BUFFERS_BYTES (UINT64_C(128) << 20)

struct verify_work {
	struct stasis_transfer_control *control;
	struct stasis_transfer_ready_plan *plan;
	bool is_packed;
};

static void fail_memory(struct stasis_transfer_control *control)
{
	struct stasis_transfer_failure failure = {.side = STASIS_TRANSFER_NO_SIDE};
	struct stasis_error error = STASIS_ERROR_INIT;

	(void)stasis_fail_code(&error, STASIS_REFUSED, ENOMEM, "verify: allocate a buffer");
	stasis_transfer_control_fail(control, 0, &failure, &error);
}

static int chunk_verify(struct stasis_transfer_control *control,
			const struct stasis_transfer_job *job, uint8_t *buffer,
			struct stasis_transfer_packing *packing)
{
	const char *fault = stasis_transfer_chunk_fault(job);
	struct stasis_transfer_failure failure = stasis_transfer_damage_at(job);
	struct stasis_error error = STASIS_ERROR_INIT;

	if (fault) {
		stasis_transfer_damage_say(job, fault, &error);
		stasis_transfer_control_fail(control, job->order, &failure, &error);
		return -1;
	}
	return stasis_transfer_chunk_load(control, job, buffer, packing, true,
					  &control->is_abandoned);
}

/*
 * Jobs are handed out in order. After a failure nobody takes another, but each ends the one it has: all that
 * come before the damage found are among those, so that the first of all damage is found.
 */
static void verify_main(void *data)
{
	struct verify_work *work = data;
	size_t buffer_bytes = (size_t)work->plan->devices[0].chunk_bytes;
	CLEANUP(transfer_packing) struct stasis_transfer_packing packing = {0};
	CLEANUP(free) uint8_t *buffer = NULL;
	struct stasis_transfer_job job;

	if (stasis_fault_point("transfer_buffer") == 0)
		buffer = aligned_alloc(STASIS_STORED_ALIGNMENT, buffer_bytes);
	if (!buffer ||
	    (work->is_packed && stasis_transfer_packing_init(&packing, buffer_bytes) != 0)) {
		fail_memory(work->control);
		return;
	}
	while (!stasis_transfer_control_is_stopped(work->control) &&
	       stasis_transfer_plan_take(work->plan, 0, &job)) {
		if (chunk_verify(work->control, &job, buffer, &packing) != 0)
			return;
		stasis_transfer_control_count(&work->control->done_bytes, job.bytes);
	}
}

static uint32_t verify_thread_count(const struct stasis_transfer_ready_plan *ready)
{
	const struct stasis_transfer_device_plan *device = &ready->devices[0];
	uint64_t count = stasis_transfer_processor_count();

	if (device->job_count == 0)
		return 0;
	count = stasis_min_u64(count, device->job_count);
	count = stasis_min_u64(count, VERIFY_BUFFERS_BYTES / device->chunk_bytes);
	return (uint32_t)stasis_min_u64(count, STASIS_TRANSFER_WORKERS_MAX);
}

static int verify_ready(struct stasis_transfer_ready_plan *ready,
			const struct stasis_transfer_watch *watch,
			struct stasis_transfer_result *result, struct stasis_error *err)
{
	struct stasis_transfer_control control;
	struct verify_work work = {
		.control = &control,
		.plan = ready,
		.is_packed = stasis_transfer_plan_is_packed(ready),
	};
	int status;

	for (size_t i = 0; i < ready->extent_count; i++) {
		struct stasis_transfer_extent_plan *extent_plan = &ready->extents[i];

		/* Through the page cache, where a load that follows finds the bytes again. */
		if (stasis_transfer_files_open(&extent_plan->files, extent_plan->extent,
					       extent_plan->extent->memory
						       ? STASIS_TRANSFER_STORE_AUTO
						       : STASIS_TRANSFER_STORE_PLAIN,
					       false, err) != 0) {
			result->failed_side = STASIS_TRANSFER_FILE_SIDE;
			return -1;
		}
		if (i == 0)
			result->store = extent_plan->files.store;
	}
	if (stasis_transfer_control_init(&control, watch, "verify", ready->total_bytes, err) != 0)
		return -1;
	status = stasis_transfer_crew_run(&control, verify_thread_count(ready), verify_main, &work,
					  result, err);
	stasis_transfer_control_fini(&control);
	return status;
}

int stasis_transfer_verify(const struct stasis_transfer_extent *extents, size_t extent_count,
			   const struct stasis_transfer_watch *watch,
			   struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_ready_plan ready;
	int status;

	*ret_result = (struct stasis_transfer_result){.failed_side = STASIS_TRANSFER_NO_SIDE};
	status = stasis_transfer_plan_init_files(&ready, extents, extent_count, err);
	if (status == 0)
		status = verify_ready(&ready, watch, ret_result, err);
	stasis_transfer_plan_fini(&ready);
	return status;
}

struct sync_work {
	struct stasis_transfer_control *control;
	const struct stasis_transfer_extent *extents;
	size_t extent_count;
	atomic_uint_fast64_t next_file;
};

static uint64_t sync_file_count(const struct stasis_transfer_extent *extents, size_t extent_count)
{
	uint64_t count = 0;

	for (size_t i = 0; i < extent_count; i++)
		count += extents[i].memory ? 0 : extents[i].stripe_count;
	return count;
}

static int file_sync(int fd)
{
	int code = stasis_fault_point("transfer_sync");

	if (code && code != EINTR)
		return code;
	while (fdatasync(fd) != 0) {
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

static void stripe_sync(struct stasis_transfer_control *control,
			const struct stasis_transfer_extent *extent, uint64_t stripe)
{
	struct stasis_transfer_failure failure = {.side = STASIS_TRANSFER_FILE_SIDE};
	struct stasis_error error = STASIS_ERROR_INIT;
	const char *name =
		extent->stripe_names[stripe] ? extent->stripe_names[stripe] : extent->name;
	int code = file_sync(extent->stripe_fds[stripe]);

	if (code) {
		(void)stasis_fail_code(
			&error, STASIS_REFUSED, code,
			"bring '%s' to the disk, where some of it may be missing now", name);
		stasis_transfer_control_fail(control, 0, &failure, &error);
		return;
	}
	stasis_transfer_control_count(&control->done_bytes, extent->stripe_bytes[stripe]);
}

static void sync_main(void *data)
{
	struct sync_work *work = data;

	while (!stasis_transfer_control_is_stopped(work->control)) {
		uint64_t number =
			atomic_fetch_add_explicit(&work->next_file, 1, memory_order_relaxed);
		size_t i = 0;

		while (i < work->extent_count &&
		       (work->extents[i].memory || number >= work->extents[i].stripe_count)) {
			number -= work->extents[i].memory ? 0 : work->extents[i].stripe_count;
			i++;
		}
		if (i == work->extent_count)
			return;
		stripe_sync(work->control, &work->extents[i], number);
	}
}

int stasis_transfer_sync(const struct stasis_transfer_extent *extents, size_t extent_count,
			 const struct stasis_transfer_watch *watch,
			 struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_control control;
	struct sync_work work = {
		.control = &control,
		.extents = extents,
		.extent_count = extent_count,
	};
	uint64_t file_count = sync_file_count(extents, extent_count);
	uint64_t total_bytes = 0;
	int status;

	*ret_result = (struct stasis_transfer_result){.failed_side = STASIS_TRANSFER_NO_SIDE};
	for (size_t i = 0; i < extent_count; i++) {
		for (uint32_t s = 0; s < extents[i].stripe_count && !extents[i].memory; s++)
			total_bytes += extents[i].stripe_bytes[s];
	}
	if (stasis_transfer_control_init(&control, watch, "sync", total_bytes, err) != 0)
		return -1;
	status = stasis_transfer_crew_run(&control,
					  (uint32_t)stasis_min_u64(file_count, SYNC_THREADS_MAX),
					  sync_main, &work, ret_result, err);
	stasis_transfer_control_fini(&control);
	return status;
}
