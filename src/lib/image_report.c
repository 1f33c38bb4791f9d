/*
 * What needs an image and no driver: inspect and verify. They report by events.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "image/image.h"
#include "lib/hands.h"
#include "lib/library.h"

static int options_take(const char *what, const struct stasis_image_options *theirs,
			struct stasis_image_options *ours, struct stasis_error *err)
{
	*ours = (struct stasis_image_options)STASIS_IMAGE_OPTIONS_INIT;
	if (stasis_lib_options_copy(what, theirs, ours, sizeof(*ours), err) != 0)
		return -1;
	if (!ours->path || !*ours->path)
		return stasis_fail(err, STASIS_USAGE, "%s: the path is missing", what);
	return 0;
}

static void gpus_report(const struct stasis_lib_sink *sink,
			const struct stasis_image_manifest *manifest)
{
	char uuid[STASIS_UUID_TEXT_BYTES];

	for (size_t i = 0; i < manifest->gpu_count; i++) {
		const struct stasis_image_gpu *gpu = &manifest->gpus[i];

		stasis_lib_event_of(sink, "gpu", i, "uuid", "%s",
				    stasis_uuid_format(&gpu->uuid, uuid));
		stasis_lib_event_of(sink, "gpu", i, "name", "%s", gpu->name);
		stasis_lib_event_of(sink, "gpu", i, "capability", "%u.%u", gpu->capability_major,
				    gpu->capability_minor);
		stasis_lib_event_of(sink, "gpu", i, "bytes", "%" PRIu64, gpu->bytes);
		stasis_lib_event_of(sink, "gpu", i, "ordinal", "%u", gpu->ordinal);
		stasis_lib_event_of(sink, "gpu", i, "pci_bus_id", "%s", gpu->pci_bus_id);
	}
}

static void processes_report(const struct stasis_lib_sink *sink,
			     const struct stasis_image_manifest *manifest)
{
	char id[STASIS_ID_TEXT_BYTES];

	for (size_t i = 0; i < manifest->process_count; i++) {
		const struct stasis_image_process *process = &manifest->processes[i];

		stasis_lib_event_of(sink, "process", i, "pid", "%d", process->pid);
		stasis_lib_event_of(sink, "process", i, "executable", "%s", process->executable);
		if (process->has_participant)
			stasis_lib_event_of(sink, "process", i, "participant", "%s",
					    stasis_id_format(&process->participant, id));
	}
}

static void extents_report(const struct stasis_lib_sink *sink,
			   const struct stasis_image_manifest *manifest)
{
	char stem[STASIS_IMAGE_STEM_BYTES];

	for (size_t i = 0; i < manifest->extent_count; i++) {
		const struct stasis_image_extent *extent = &manifest->extents[i];

		stasis_lib_event_of(sink, "extent", i, "name", "gpu/%s",
				    stasis_image_extent_stem(extent, stem));
		stasis_lib_event_of(sink, "extent", i, "process", "%u", extent->process_index);
		stasis_lib_event_of(sink, "extent", i, "gpu", "%u", extent->gpu_index);
		stasis_lib_event_of(sink, "extent", i, "store", "%s",
				    stasis_image_store_name(extent->store));
		stasis_lib_event_of(sink, "extent", i, "bytes", "%" PRIu64, extent->logical_bytes);
		stasis_lib_event_of(sink, "extent", i, "stored_bytes", "%" PRIu64,
				    extent->stored_bytes);
		stasis_lib_event_of(sink, "extent", i, "chunk_bytes", "%" PRIu64,
				    extent->chunk_bytes);
		stasis_lib_event_of(sink, "extent", i, "files", "%u", extent->stripe_count);
	}
}

static void phases_report(const struct stasis_lib_sink *sink,
			  const struct stasis_image_manifest *manifest)
{
	for (size_t i = 0; i < manifest->phase_count; i++) {
		const struct stasis_image_phase *phase = &manifest->phases[i];

		stasis_lib_event_of(sink, "timing", i, "phase", "%s", phase->name);
		stasis_lib_event_of(sink, "timing", i, "seconds", "%.6f",
				    stasis_seconds(phase->duration_ns));
		stasis_lib_event_of(sink, "timing", i, "bytes", "%" PRIu64, phase->bytes);
	}
	for (size_t i = 0; i < manifest->option_count; i++) {
		stasis_lib_event_of(sink, "option", i, "name", "%s", manifest->options[i].name);
		stasis_lib_event_of(sink, "option", i, "value", "%s", manifest->options[i].value);
	}
}

static void manifest_report(const struct stasis_lib_sink *sink,
			    const struct stasis_image_manifest *manifest)
{
	char id[STASIS_ID_TEXT_BYTES];

	stasis_lib_event(sink, "capture_id", "%s", stasis_id_format(&manifest->capture_id, id));
	stasis_lib_event(sink, "created", "%s", manifest->created);
	stasis_lib_event(sink, "store", "%s", stasis_image_store_name(manifest->store));
	stasis_lib_event(sink, "tool_version", "%s", manifest->tool_version);
	stasis_lib_event(sink, "kernel", "%s", manifest->kernel);
	stasis_lib_event(sink, "driver_version", "%s",
			 *manifest->driver_version ? manifest->driver_version : "unknown");
	stasis_lib_event(sink, "cuda_version", "%u.%u", manifest->cuda_version / 1000,
			 manifest->cuda_version % 1000 / 10);
	gpus_report(sink, manifest);
	processes_report(sink, manifest);
	extents_report(sink, manifest);
	if (manifest->shared.bytes > 0)
		stasis_lib_event(sink, "shared_file_bytes", "%" PRIu64, manifest->shared.bytes);
	phases_report(sink, manifest);
}

static int image_open(const struct stasis_image_options *options, struct stasis_image **ret_image,
		      struct stasis_error *err)
{
	const struct stasis_image_open_options open_options = {.is_trusted = options->is_trusted};

	return stasis_image_open(options->path, &open_options, ret_image, err);
}

enum stasis_status stasis_library_inspect(struct stasis_library *library,
					  const struct stasis_image_options *options)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	struct stasis_error *err = stasis_lib_begin(library);
	struct stasis_image_options ours;

	if (options_take("inspect", options, &ours, err) != 0 ||
	    image_open(&ours, &image, err) != 0)
		return stasis_lib_end(library, -1);
	stasis_lib_event(&library->sink, "image", "%s", ours.path);
	manifest_report(&library->sink, stasis_image_manifest(image));
	return stasis_lib_end(library, 0);
}

static void verify_progress(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	stasis_lib_event(data, "progress", "verify %" PRIu64 " %" PRIu64, done_bytes, total_bytes);
}

static void damage_report(const struct stasis_lib_sink *sink,
			  const struct stasis_lib_source *source,
			  const struct stasis_transfer_result *result)
{
	const struct stasis_transfer_extent *extent;

	if (!result->has_damage)
		return;
	extent = &source->extents[result->damage_extent_index];
	stasis_lib_event(sink, "damage_file", "%s",
			 extent->stripe_names[result->damage_chunk_index % extent->stripe_count]);
	stasis_lib_event(sink, "damage_chunk", "%" PRIu64, result->damage_chunk_index);
	stasis_lib_event(sink, "damage_offset", "%" PRIu64, result->damage_file_offset);
}

enum stasis_status stasis_library_verify(struct stasis_library *library,
					 const struct stasis_image_options *options)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	CLEANUP(free) struct stasis_lib_source *source = NULL;
	struct stasis_error *err = stasis_lib_begin(library);
	struct stasis_transfer_watch watch = {
		.progress = verify_progress,
		.progress_data = &library->sink,
		.deadline_ns = STASIS_NO_DEADLINE,
	};
	struct stasis_transfer_result result = {0};
	struct stasis_image_options ours;

	if (options_take("verify", options, &ours, err) != 0 ||
	    image_open(&ours, &image, err) != 0 ||
	    stasis_lib_source_of_image(image, &source, err) != 0)
		return stasis_lib_end(library, -1);
	stasis_lib_event(&library->sink, "image", "%s", ours.path);
	if (stasis_transfer_verify(source->extents, source->count, &watch, &result, err) != 0) {
		damage_report(&library->sink, source, &result);
		return stasis_lib_end(library, -1);
	}
	stasis_lib_event(&library->sink, "extents", "%zu", source->count);
	stasis_lib_event(&library->sink, "bytes", "%" PRIu64, result.logical_bytes);
	stasis_lib_event(&library->sink, "stored_bytes", "%" PRIu64, result.stored_bytes);
	stasis_lib_event(&library->sink, "verify_seconds", "%.6f",
			 stasis_seconds(result.elapsed_ns));
	stasis_lib_event(&library->sink, "verify", "passed");
	return stasis_lib_end(library, 0);
}
