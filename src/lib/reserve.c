/*
 * What a capture needs is set aside before the workload is paused: contexts, ring and threads, room on the
 * disk, and host memory that takes the bytes if the disk fails all the same. What does not fit is refused
 * here, where the workload still runs.
 */

#include <inttypes.h>

#include "base/clock.h"
#include "base/number.h"
#include "lib/host_memory.h"
#include "lib/round.h"

/*
 * An extent holds more than the program's own memory: context, code, workspaces. About 645 MiB of them were
 * measured; what the device has in use is a bound too, but counts other processes.
 */
#define BESIDE_BYTES STASIS_GIB
#define STATE_BYTES (64 * STASIS_MIB) /* what the driver may add to what is in use */

/* Leaves the machine something to live on. */
#define MEMORY_MARGIN_BYTES (64 * STASIS_MIB)

_Static_assert((int)STASIS_FILE_STORE_AUTO == (int)STASIS_TRANSFER_STORE_AUTO &&
		       (int)STASIS_FILE_STORE_STRIPES == (int)STASIS_TRANSFER_STORE_STRIPES &&
		       (int)STASIS_FILE_STORE_MAPPING == (int)STASIS_TRANSFER_STORE_MAPPING &&
		       (int)STASIS_FILE_STORE_DIRECT == (int)STASIS_TRANSFER_STORE_DIRECT &&
		       (int)STASIS_FILE_STORE_PLAIN == (int)STASIS_TRANSFER_STORE_PLAIN,
	       "one list of stores");

static int contexts_open(struct stasis_lib_round *round, struct stasis_error *err)
{
	struct stasis_transfer_options options = {
		.driver = &round->hands.driver,
		.store = (enum stasis_transfer_store)round->options->file_store,
		.chunk_bytes = round->options->chunk_bytes,
		.workers = round->options->workers,
		.codec = stasis_lib_round_codec(round),
	};
	struct stasis_gpu_set set = {.uuids = &round->gpu.uuid, .count = 1};

	if (stasis_contexts_retain(&round->hands.driver, &set, &round->contexts, err) != 0 ||
	    stasis_transfer_new(&options, &round->hands.transfer, err) != 0)
		return -1;
	return stasis_transfer_prepare(round->hands.transfer, round->contexts.items[0].context,
				       round->contexts.items[0].device.ordinal, err);
}

static int extent_bound(struct stasis_lib_round *round, uint64_t *ret_bytes,
			struct stasis_error *err)
{
	uint64_t free_bytes = 0;
	uint64_t used_bytes;
	uint64_t own_bytes;
	CUresult result = stasis_device_free_bytes(&round->hands.driver,
						   &round->contexts.items[0].device, &free_bytes);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"read the free memory of GPU %d", round->gpu.ordinal);
	used_bytes = round->gpu.total_bytes - stasis_min_u64(free_bytes, round->gpu.total_bytes);
	if (!stasis_add_u64(round->options->bytes, BESIDE_BYTES, &own_bytes))
		own_bytes = UINT64_MAX;
	*ret_bytes = stasis_min_u64(used_bytes + STATE_BYTES, own_bytes);
	return 0;
}

/* What was reserved on the disk by the user; bytes of it. */
static uint64_t reserve_take(struct stasis_lib_round *round)
{
	struct stasis_image_reserve_info info;
	uint64_t bytes;

	stasis_image_writer_reserve_take(round->writer, &info);
	bytes = info.state == STASIS_IMAGE_RESERVE_READY ? info.file_count * info.file_bytes : 0;
	if (bytes > 0) {
		round->reserve_file_count = info.file_count;
		round->reserve_file_bytes = info.file_bytes;
		stasis_lib_event(round->sink, "reserved_bytes", "%" PRIu64, bytes);
	}
	if (*info.why)
		stasis_lib_event(round->sink, "warning", "the reserve beside '%s' is not used: %s",
				 round->options->artifact_dir, info.why);
	return bytes;
}

static int disk_check(struct stasis_lib_round *round, uint64_t bound_bytes,
		      struct stasis_error *err)
{
	char free_text[32];
	char need_text[32];
	uint64_t reserved_bytes = reserve_take(round);
	uint64_t free_bytes = 0;

	if (stasis_image_writer_room(round->writer, &free_bytes, err) != 0)
		return -1;
	if (free_bytes >= bound_bytes || free_bytes + reserved_bytes >= bound_bytes)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "the capture may need %s, and the file system of '%s' has %s left",
			   stasis_format_bytes(bound_bytes, need_text, sizeof(need_text)),
			   round->options->artifact_dir,
			   stasis_format_bytes(free_bytes, free_text, sizeof(free_text)));
}

static int memory_open(struct stasis_lib_round *round, uint64_t bound_bytes,
		       struct stasis_error *err)
{
	struct stasis_lib_host_memory host;
	uint64_t bytes = stasis_transfer_reserve_bytes(bound_bytes,
						       stasis_lib_round_chunk_bytes(round), 1, 0);
	char free_text[32];
	char need_text[32];

	if (stasis_lib_host_memory_read(&host, err) != 0)
		return -1;
	if (host.available_bytes < bytes + MEMORY_MARGIN_BYTES)
		return stasis_fail(
			err, STASIS_REFUSED,
			"to be safe against a failing disk the capture needs %s of host memory, "
			"and %s are available; --no-fallback does without, at the risk of losing "
			"the program",
			stasis_format_bytes(bytes, need_text, sizeof(need_text)),
			stasis_format_bytes(host.available_bytes, free_text, sizeof(free_text)));
	return stasis_transfer_memory_open(bytes, &round->reserve, err);
}

int stasis_lib_round_reserve(struct stasis_lib_round *round, struct stasis_error *err)
{
	uint64_t bound_bytes = 0;

	if (stasis_lib_phase_begin(round->hands.channel, STASIS_LIB_RESERVE, err) != 0)
		return -1;
	/* The native store needs none of it: the driver keeps the bytes in the workload. */
	if (!round->is_custom)
		return 0;
	if (contexts_open(round, err) != 0 || extent_bound(round, &bound_bytes, err) != 0 ||
	    disk_check(round, bound_bytes, err) != 0)
		return -1;
	if (!round->options->is_without_fallback && memory_open(round, bound_bytes, err) != 0)
		return -1;
	stasis_lib_event(round->sink, "fallback_bytes", "%" PRIu64, round->reserve.bytes);
	return 0;
}
