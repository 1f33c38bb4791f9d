/*
 * Description: CustomStorage brings a process on three GPUs through two round trips; extents are found by
 * stream and UUID, come in no order to rely on, keep their size, and hold the application's bytes in
 * pieces; the caller's own memory does not grow with them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

#define DEVICES 3
#define LOAD_BYTES (24 * T_MIB)
#define PIECE_WORDS ((size_t)(2 * T_MIB) / sizeof(uint32_t))
#define STATE_BYTES (8 * T_MIB)
#define GROWTH_MAX_KIB 4096

/* The byte offset of the word at 'index' of the workload's memory, which stands at a start of 4 KiB. */
static size_t find_word(const struct t_extent *extent, int device, size_t index)
{
	for (size_t at = 0; at + 4096 <= extent->bytes; at += 4096) {
		bool is_here = true;

		for (size_t i = 0; i < 64 && is_here; i++) {
			uint32_t word = t_load_word(device, index + i);

			is_here = memcmp(extent->copy + at + i * sizeof(word), &word,
					 sizeof(word)) == 0;
		}
		if (is_here)
			return at;
	}
	t_fail("word %zu of GPU %d's memory is nowhere in its extent", index, device);
}

/* All bytes are there, but nowhere near in their own order. */
static void check_pieces(const struct t_extent *extent, int device)
{
	size_t in_place = 0;
	size_t start = find_word(extent, device, 0);
	size_t pieces = 0;

	T_EQ(extent->bytes, LOAD_BYTES + STATE_BYTES);
	for (size_t index = 0; index * sizeof(uint32_t) < LOAD_BYTES; index += PIECE_WORDS) {
		size_t at = find_word(extent, device, index);

		in_place += at == start + index * sizeof(uint32_t);
		pieces++;
	}
	T_TRUE(in_place < pieces);
}

static int device_of(const struct t_extent *extent)
{
	for (int i = 0; i < DEVICES; i++) {
		CUuuid uuid;

		T_OK(cuDeviceGetUuid_v2(&uuid, i));
		if (memcmp(&uuid, &extent->uuid, sizeof(uuid)) == 0)
			return i;
	}
	t_fail("an extent has the UUID of no GPU");
}

static void check_store(const struct t_store *store)
{
	bool is_by_ordinal = true;

	T_EQ(store->count, DEVICES);
	for (size_t i = 0; i < store->count; i++) {
		int device = device_of(&store->extents[i]);

		is_by_ordinal = is_by_ordinal && device == (int)i;
		check_pieces(&store->extents[i], device);
	}
	T_TRUE(!is_by_ordinal);
}

/* While begun: the witness sees it, others are refused, and views cost no memory of ours. */
static void check_begun(pid_t pid, uint64_t anonymous_before_kib)
{
	uint64_t anonymous_kib = 0;
	CUcheckpointCustomStorageInfo *info = NULL;

	T_TRUE(stasis_process_status_kib(getpid(), "RssAnon:", &anonymous_kib));
	T_TRUE(anonymous_kib < anonymous_before_kib + GROWTH_MAX_KIB);
	T_WITNESS(pid, "OPERATING");
	T_EQ(t_state(pid), CU_PROCESS_STATE_CHECKPOINTING);
	T_IS(t_lock(pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_unlock(pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_checkpoint(pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_restore(pid), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_custom_begin_checkpoint(pid, &info), CUDA_ERROR_ILLEGAL_STATE);
	T_IS(t_custom_begin_restore(pid, &info), CUDA_ERROR_ILLEGAL_STATE);
}

static void round_trip(const struct t_child *child)
{
	struct t_store store;
	CUcheckpointCustomStorageInfo *info = NULL;
	uint64_t free_bytes = t_witness_free_bytes(1);
	uint64_t taken_bytes = t_witness_bytes(child->pid, 1);
	uint64_t anonymous_kib = 0;
	int first_device;

	T_OK(t_lock(child->pid));
	T_TRUE(stasis_process_status_kib(getpid(), "RssAnon:", &anonymous_kib));
	T_OK(t_custom_begin_checkpoint(child->pid, &info));
	check_begun(child->pid, anonymous_kib);
	t_custom_save(info, &store);
	check_store(&store);
	first_device = t_custom_device(&info->perDeviceData[0]);
	T_OK(t_custom_complete(info->handle));
	T_WITNESS(child->pid, "CHECKPOINTED");
	T_EQ(t_driver_descriptors(child->pid), 0);
	T_EQ(t_witness_free_bytes(1), free_bytes + taken_bytes);
	T_IS(t_restore(child->pid), CUDA_ERROR_ILLEGAL_STATE);
	T_OK(t_custom_begin_restore(child->pid, &info));
	T_WITNESS(child->pid, "OPERATING");
	T_EQ(t_witness_free_bytes(1), free_bytes);
	T_TRUE(t_custom_device(&info->perDeviceData[0]) != first_device);
	t_custom_load(info, &store);
	T_OK(t_custom_complete(info->handle));
	T_WITNESS(child->pid, "LOCKED");
	T_OK(t_unlock(child->pid));
	t_say(child->fd, 'V');
	t_hear(child->fd, 'O');
	t_custom_free(&store);
}

int main(void)
{
	struct t_load load = {.devices = DEVICES, .bytes = LOAD_BYTES};
	struct t_child child;

	T_SYS(setenv("STASIS_SIM_DEVICES", "3", 1));
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	t_custom_init();
	round_trip(&child);
	round_trip(&child);
	t_child_join(&child);
	return 0;
}
