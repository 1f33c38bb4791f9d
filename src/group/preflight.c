/*
 * What a capture needs is looked at and set aside before anything is touched: contexts, ring and threads, room on the
 * disk and in host memory. What does not fit is refused here, where all programs still run.
 */

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "driver/device.h"
#include "driver/report.h"
#include "group/capture.h"
#include "group/layout.h"

/* Leaves the machine something to live on. */
#define MEMORY_MARGIN_BYTES (64 * STASIS_MIB)

static int gpu_add(struct stasis_capture *capture, const struct stasis_gpu *gpu,
		   struct stasis_error *err)
{
	struct stasis_image_gpu entry = {
		.uuid = gpu->uuid,
		.ordinal = (uint32_t)gpu->ordinal,
		.capability_major = (uint32_t)gpu->capability_major,
		.capability_minor = (uint32_t)gpu->capability_minor,
		.bytes = gpu->total_bytes,
	};

	(void)snprintf(entry.name, sizeof(entry.name), "%s", gpu->name);
	(void)snprintf(entry.pci_bus_id, sizeof(entry.pci_bus_id), "%s", gpu->pci_bus_id);
	return stasis_image_writer_gpu_add(capture->writer, &entry, err);
}

static int gpus_add(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_device_list list;

	if (stasis_device_list_read(capture->group->driver, &list, err) != 0)
		return -1;
	for (unsigned int i = 0; i < list.count; i++) {
		struct stasis_gpu gpu;

		if (stasis_gpu_read(capture->group->driver, &list.devices[i], &gpu, err) != 0 ||
		    gpu_add(capture, &gpu, err) != 0)
			return -1;
	}
	return 0;
}

static int processes_add(struct stasis_capture *capture, struct stasis_error *err)
{
	for (size_t i = 0; i < capture->group->count; i++) {
		const struct stasis_group_process *process = &capture->group->processes[i];
		struct stasis_image_process entry = {
			.pid = process->target.process.pid,
			.start_ticks = process->start_ticks,
			.has_participant = process->is_participant,
			.participant = process->participant.greeting.participant,
		};
		uint32_t index = 0;
		char path[64];
		ssize_t bytes;

		(void)snprintf(path, sizeof(path), "/proc/%d/exe",
			       (int)process->target.process.pid);
		bytes = readlink(path, entry.executable, sizeof(entry.executable) - 1);
		entry.executable[bytes > 0 ? bytes : 0] = '\0';
		if (stasis_image_writer_process_add(capture->writer, &entry, &index, err) != 0)
			return -1;
	}
	return 0;
}

/* On every GPU that this process sees: those of the programs are among them, or they are refused later. */
static int engine_make(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_transfer_options options = capture->options->transfer;
	struct stasis_gpu_set all = {.count = 0};

	options.driver = capture->group->driver;
	options.chunk_bytes = capture->options->chunk_bytes;
	if (stasis_contexts_retain(capture->group->driver, &all, &capture->contexts, err) != 0 ||
	    stasis_transfer_new(&options, &capture->transfer, err) != 0)
		return -1;
	for (unsigned int i = 0; i < capture->contexts.count; i++) {
		const struct stasis_context *context = &capture->contexts.items[i];

		if (stasis_transfer_prepare(capture->transfer, context->context,
					    context->device.ordinal, err) != 0)
			return -1;
	}
	return 0;
}

static int disk_check(struct stasis_capture *capture, uint64_t content_bytes,
		      struct stasis_error *err)
{
	const struct stasis_image_reserve_info *reserve = &capture->reserve;
	uint64_t free_bytes = 0;
	uint64_t reserved_bytes = 0;
	char need[32];
	char free_text[32];

	stasis_image_writer_reserve_take(capture->writer, &capture->reserve);
	if (reserve->state == STASIS_IMAGE_RESERVE_READY)
		reserved_bytes = reserve->file_count * reserve->file_bytes;
	if (*reserve->why)
		stasis_group_event(capture->group->watch, "warning",
				   "the reserve beside '%s' is not used: %s",
				   capture->options->image_path, reserve->why);
	if (stasis_image_writer_room(capture->writer, &free_bytes, err) != 0)
		return -1;
	if (free_bytes >= content_bytes || free_bytes + reserved_bytes >= content_bytes)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "the shared memory takes %s, and the file system of '%s' has %s left; "
			   "--to names a place elsewhere",
			   stasis_format_bytes(content_bytes, need, sizeof(need)),
			   capture->options->image_path,
			   stasis_format_bytes(free_bytes, free_text, sizeof(free_text)));
}

/* What is in use on the GPUs and is not shared memory: a bound for what native brings into host memory. */
static int native_bound(const struct stasis_capture *capture, uint64_t content_bytes,
			uint64_t *ret_bytes, struct stasis_error *err)
{
	uint64_t used_bytes = 0;

	for (unsigned int i = 0; i < capture->contexts.count; i++) {
		const struct stasis_device *device = &capture->contexts.items[i].device;
		uint64_t free_bytes = 0;
		struct stasis_gpu gpu;
		CUresult result;

		if (stasis_gpu_read(capture->group->driver, device, &gpu, err) != 0)
			return -1;
		result = stasis_device_free_bytes(capture->group->driver, device, &free_bytes);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_REFUSED, result,
						"read the free memory of GPU %d", device->ordinal);
		used_bytes += gpu.total_bytes - stasis_min_u64(free_bytes, gpu.total_bytes);
	}
	*ret_bytes = used_bytes - stasis_min_u64(used_bytes, content_bytes);
	return 0;
}

static int memory_check(const struct stasis_capture *capture, uint64_t content_bytes,
			struct stasis_error *err)
{
	uint64_t bytes = 0;
	char need[32];
	char have[32];

	if (native_bound(capture, content_bytes, &bytes, err) != 0)
		return -1;
	if (capture->options->is_in_memory)
		bytes += content_bytes;
	if (bytes + MEMORY_MARGIN_BYTES <= capture->options->host_bytes)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "what is on the GPUs may take %s of host memory, and %s are available; "
			   "--assume-memory N says that there are N",
			   stasis_format_bytes(bytes, need, sizeof(need)),
			   stasis_format_bytes(capture->options->host_bytes, have, sizeof(have)));
}

uint64_t stasis_capture_content_bytes(const struct stasis_topology *topology)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < topology->object_count; i++) {
		const struct stasis_group_object *object = &topology->objects[i];

		if (object->is_ours && !object->is_multicast)
			bytes += object->bytes;
	}
	return bytes;
}

int stasis_capture_preflight(struct stasis_capture *capture, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = capture->group->watch;
	uint64_t content_bytes = stasis_capture_content_bytes(&capture->group->topology);

	if (watch->begin(watch->data, STASIS_GROUP_PREFLIGHT, err) != 0 ||
	    engine_make(capture, err) != 0 || memory_check(capture, content_bytes, err) != 0 ||
	    stasis_image_writer_open(capture->options->image_path, &capture->options->origin,
				     &capture->writer, err) != 0)
		return -1;
	watch->partial(watch->data, stasis_image_writer_partial_path(capture->writer));
	if (gpus_add(capture, err) != 0 || processes_add(capture, err) != 0)
		return -1;
	stasis_group_event(watch, "shared_bytes", "%" PRIu64, content_bytes);
	return disk_check(capture, content_bytes, err);
}
