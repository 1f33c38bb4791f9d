/*
 * The beginning of a round trip: driver and store are chosen, the artifact directory is checked, the
 * workload is started before this process initialises CUDA, and found RUNNING.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "lib/places.h"
#include "lib/round.h"

static int store_choose(struct stasis_lib_round *round, struct stasis_error *err)
{
	const struct stasis_driver *driver = &round->hands.driver;
	bool has_custom = stasis_driver_has_custom_storage(driver);
	char why[STASIS_DRIVER_WHY_BYTES];

	if (!stasis_driver_has_checkpoint(driver))
		return stasis_fail(err, STASIS_REFUSED, "the driver cannot checkpoint: %s",
				   stasis_driver_why_no_checkpoint(driver, why));
	(void)stasis_driver_why_no_custom_storage(driver, why);
	if (round->options->store == STASIS_STORE_CUSTOM && !has_custom)
		return stasis_fail(err, STASIS_REFUSED,
				   "the driver has no CustomStorage: %s; --store native needs none",
				   why);
	round->is_custom = has_custom && round->options->store != STASIS_STORE_NATIVE;
	if (!round->is_custom && round->options->damage != STASIS_DAMAGE_NONE)
		return stasis_fail(err, STASIS_REFUSED,
				   "the driver has no CustomStorage (%s), and the native store has "
				   "no files to damage",
				   why);
	if (!round->is_custom && round->options->compress != STASIS_COMPRESS_NONE)
		return stasis_fail(err, STASIS_REFUSED,
				   "the driver has no CustomStorage (%s), and the native store has "
				   "no files to compress",
				   why);
	stasis_lib_event(round->sink, "store", "%s", round->is_custom ? "custom" : "native");
	if (!has_custom)
		stasis_lib_event(round->sink, "store_why", "%s", why);
	return 0;
}

static int artifact_open(struct stasis_lib_round *round, struct stasis_error *err)
{
	const struct stasis_transfer_codec *codec;
	char version[STASIS_VERSION_BYTES];
	struct stasis_image_origin origin = {
		.store = round->is_custom ? STASIS_IMAGE_STORE_CUSTOM : STASIS_IMAGE_STORE_NATIVE,
		.tool_version = stasis_version(),
		.cuda_version = (uint32_t)round->hands.driver.cuda_version,
	};

	if (!round->is_simulated && *stasis_kernel_module_version(version))
		origin.driver_version = version;
	if (stasis_image_writer_open(round->options->artifact_dir, &origin, &round->writer, err) !=
	    0)
		return -1;
	stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_PARTIAL,
				stasis_image_writer_partial_path(round->writer));
	codec = stasis_lib_round_codec(round);
	return codec ? stasis_image_writer_option_set(round->writer, "compress", codec->name, err)
		     : 0;
}

int stasis_lib_round_prepare(struct stasis_lib_round *round, struct stasis_error *err)
{
	const struct stasis_driver *driver = &round->hands.driver;

	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_PREPARE, err) != 0 ||
	    stasis_lib_driver_choose(round->sink, &round->hands.driver, &round->is_simulated,
				     err) != 0)
		return -1;
	stasis_lib_calls_note(&round->hands.driver, round->hands.channel->call_word);
	stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_LIBCUDA, driver->path);
	stasis_lib_event(round->sink, "driver", "%s", round->is_simulated ? "simulated" : "nvidia");
	stasis_lib_event(round->sink, "libcuda", "%s", driver->path);
	stasis_lib_event(round->sink, "cuda_version", "%d.%d", driver->cuda_version / 1000,
			 driver->cuda_version % 1000 / 10);
	if (store_choose(round, err) != 0)
		return -1;
	if (!round->is_custom)
		stasis_lib_channel_fact(round->hands.channel, STASIS_LIB_FACT_NATIVE, "");
	return artifact_open(round, err);
}

static int workload_start(struct stasis_lib_round *round, struct stasis_error *err)
{
	char program[STASIS_LIB_PATH_BYTES];
	struct stasis_lib_workload_plan plan = {
		.program = program,
		.libcuda = round->hands.driver.path,
		.bytes = round->options->bytes,
		.device = round->options->device,
		.tracer = round->work->supervisor_pid,
	};
	struct stasis_id random;

	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_START_WORKLOAD, err) != 0 ||
	    stasis_lib_workload_path(program, err) != 0 || stasis_id_random(&random, err) != 0)
		return -1;
	memcpy(&round->seed, random.bytes, sizeof(round->seed));
	plan.seed = round->seed;
	if (stasis_lib_workload_start(&plan, &round->workload, err) != 0)
		return -1;
	stasis_lib_channel_workload(round->hands.channel, round->workload.pid);
	stasis_lib_event(round->sink, "workload_pid", "%d", (int)round->workload.pid);
	return 0;
}

static int workload_fill(struct stasis_lib_round *round, struct stasis_error *err)
{
	uint64_t pointer;
	uint64_t bytes;

	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_FILL_WORKLOAD, err) != 0 ||
	    stasis_lib_workload_ready(&round->workload, round->hands.channel, &pointer, &bytes,
				      err) != 0)
		return -1;
	if (bytes != round->options->bytes)
		return stasis_fail(err, STASIS_INTERNAL,
				   "the workload holds %" PRIu64 " bytes, not %" PRIu64, bytes,
				   round->options->bytes);
	stasis_lib_event(round->sink, "application_pointer", "0x%" PRIx64, pointer);
	stasis_lib_event(round->sink, "application_bytes", "%" PRIu64, bytes);
	return 0;
}

static int gpu_add(struct stasis_lib_round *round, const struct stasis_gpu *gpu,
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
	return stasis_image_writer_gpu_add(round->writer, &entry, err);
}

/* Every GPU that the workload saw goes into the image; the one that it uses is kept. */
static int gpus_read(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_device_list list;

	if (stasis_device_list_read(&round->hands.driver, &list, err) != 0)
		return -1;
	for (unsigned int i = 0; i < list.count; i++) {
		struct stasis_gpu gpu;

		if (stasis_gpu_read(&round->hands.driver, &list.devices[i], &gpu, err) != 0 ||
		    gpu_add(round, &gpu, err) != 0)
			return -1;
		if (list.devices[i].ordinal == (int)round->options->device)
			round->gpu = gpu;
	}
	if (!*round->gpu.name)
		return stasis_fail(err, STASIS_REFUSED,
				   "there is no device %u; this machine has %u of them",
				   round->options->device, list.count);
	stasis_lib_event(round->sink, "device_name", "%s", round->gpu.name);
	return 0;
}

/* Into the image, and into the record by which gc knows whose partial it is. */
static int process_add(struct stasis_lib_round *round, struct stasis_error *err)
{
	const struct stasis_process *target = &round->hands.target.process;
	struct stasis_image_process process = {
		.pid = target->pid,
		.start_ticks = target->start_ticks,
	};
	char path[64];
	ssize_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	bytes = readlink(path, process.executable, sizeof(process.executable) - 1);
	process.executable[bytes > 0 ? bytes : 0] = '\0';
	return stasis_image_writer_process_add(round->writer, &process, &round->process_index, err);
}

int stasis_lib_round_start(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_lib_hands *hands = &round->hands;

	if (workload_start(round, err) != 0 || workload_fill(round, err) != 0)
		return -1;
	if (stasis_lib_phase_begin(hands->channel, STASIS_LIB_OPEN_DRIVER, err) != 0 ||
	    stasis_driver_start(&hands->driver, err) != 0 || gpus_read(round, err) != 0 ||
	    stasis_target_open(&hands->driver, round->workload.pid, &hands->target, err) != 0 ||
	    process_add(round, err) != 0)
		return -1;
	if (stasis_lib_phase_begin(hands->channel, STASIS_LIB_CONFIRM_RUNNING, err) != 0)
		return -1;
	return stasis_lib_hands_confirm(hands, CU_PROCESS_STATE_RUNNING, err);
}
