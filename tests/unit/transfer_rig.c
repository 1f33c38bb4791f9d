/*
 * See transfer_rig.h.
 */

#include "unit.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "transfer_rig.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

#define SPOILT 0x5a

const struct t_shape t_shape_plain = {
	.bytes = 40 * STASIS_CHUNK_BYTES_MIN + 13,
	.chunk_bytes = STASIS_CHUNK_BYTES_MIN,
	.stripe_count = 3,
	.segment_count = 5,
	.zero_every = 4,
};

static size_t folder_count(const char *path)
{
	CLEANUP(dir) DIR *dir = opendir(path);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	return count;
}

size_t t_count_threads(void)
{
	return folder_count("/proc/self/task");
}

/* The kernel lets a joiner go on a moment before it takes the thread out of /proc. */
void t_wait_for_threads(size_t count)
{
	uint64_t deadline_ns = stasis_deadline_after_ns(5 * STASIS_NS_PER_S);

	while (t_count_threads() > count && !stasis_deadline_passed(deadline_ns))
		(void)sched_yield();
	assert_int_equal(t_count_threads(), count);
}

size_t t_count_fds(void)
{
	return folder_count("/proc/self/fd");
}

struct t_rig *t_rig_new(const struct stasis_transfer_options *options)
{
	static const struct stasis_transfer_options small = {
		.chunk_bytes = STASIS_CHUNK_BYTES_MIN,
		.workers = 3,
	};
	struct stasis_transfer_options wanted = options ? *options : small;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->driver = t_fake_start(T_RIG_DEVICE_BYTES);
	rig->thread_count = t_count_threads();
	rig->fd_count = t_count_fds();
	wanted.driver = rig->driver;
	assert_done(stasis_transfer_new(&wanted, &rig->engine, &err), &err);
	rig->plan.extents = rig->extents;
	rig->plan.segments = rig->segments;
	rig->plan.verify = true;
	return rig;
}

void t_rig_free(struct t_rig *rig)
{
	stasis_transfer_free(rig->engine);
	for (size_t i = 0; i < rig->plan.extent_count; i++) {
		for (uint32_t s = 0; s < rig->extents[i].stripe_count; s++) {
			if (rig->extents[i].stripe_fds[s] >= 0)
				assert_int_equal(close(rig->extents[i].stripe_fds[s]), 0);
		}
	}
	t_wait_for_threads(rig->thread_count);
	assert_int_equal(t_count_fds(), rig->fd_count);
	t_fake_stop_leaking(rig->leak_bytes);
	free(rig);
}

/* Where an extent begins in its device's memory: each has a quarter. */
static uint64_t extent_start(size_t index)
{
	return index * (T_RIG_DEVICE_BYTES / T_RIG_EXTENTS);
}

/* Eight bytes of the pattern at a time: sanitizers make bytes dear. A word that is not to be zero is odd. */
static uint64_t pattern_word(const struct t_rig *rig, size_t index, uint64_t word_index)
{
	const struct stasis_transfer_extent *extent = &rig->extents[index];
	uint64_t chunk = word_index * 8 / extent->chunk_bytes;
	uint32_t zero_every = extent->id.bytes[1];
	uint32_t packed_every = extent->id.bytes[3];
	bool repeats = packed_every && chunk % packed_every == packed_every - 1;
	uint64_t seed = repeats ? word_index / 64 : word_index;
	uint64_t mixed = (seed + 1 + index * 77777) * UINT64_C(0x9e3779b97f4a7c15);

	if (zero_every && chunk % zero_every == zero_every - 1)
		return 0;
	mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (mixed ^ mixed >> 31) | 1;
}

static int rig_ordinal(const struct t_rig *rig, size_t index)
{
	return rig->extents[index].id.bytes[2];
}

static uint8_t *extent_memory(const struct t_rig *rig, size_t index)
{
	return t_fake_bytes(rig_ordinal(rig, index)) + extent_start(index);
}

static void pattern_fill(const struct t_rig *rig, size_t index)
{
	uint8_t *at = extent_memory(rig, index);
	uint64_t bytes = rig->extents[index].bytes;

	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = pattern_word(rig, index, i / 8);

		memcpy(at + i, &word, (size_t)stasis_min_u64(8, bytes - i));
	}
}

bool t_rig_holds(const struct t_rig *rig, size_t index)
{
	const uint8_t *at = extent_memory(rig, index);
	uint64_t bytes = rig->extents[index].bytes;

	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = pattern_word(rig, index, i / 8);

		if (memcmp(at + i, &word, (size_t)stasis_min_u64(8, bytes - i)) != 0) {
			print_error("extent %zu: wrong at byte %llu or soon after\n", index,
				    (unsigned long long)i);
			return false;
		}
	}
	return true;
}

void t_rig_spoil(struct t_rig *rig)
{
	for (size_t i = 0; i < rig->plan.extent_count; i++)
		memset(extent_memory(rig, i), SPOILT, rig->extents[i].bytes);
}

bool t_rig_is_spoilt(const struct t_rig *rig, size_t index, uint64_t chunk_index)
{
	const struct stasis_transfer_extent *extent = &rig->extents[index];
	const uint8_t *at = extent_memory(rig, index) + chunk_index * extent->chunk_bytes;
	uint64_t bytes = stasis_chunk_bytes(extent->bytes, extent->chunk_bytes, chunk_index);

	/* The first byte is as it should be and each equals the next. */
	return at[0] == SPOILT && memcmp(at, at + 1, (size_t)bytes - 1) == 0;
}

/* Cuts the extent into segments of all sorts, empty ones among them. */
static void segments_add(struct t_rig *rig, size_t index, const struct t_shape *shape)
{
	uint64_t done = 0;
	uint32_t seed = 12345;

	for (uint32_t i = 0; i < shape->segment_count; i++) {
		uint64_t left = shape->bytes - done;
		uint64_t bytes = left;

		seed = seed * 1103515245 + 12345;
		if (i + 1 < shape->segment_count)
			bytes = i % 3 == 2 ? 0
					   : (seed >> 8) %
						     (2 * shape->bytes / shape->segment_count + 2);
		bytes = stasis_min_u64(bytes, left);
		assert_true(rig->plan.segment_count < T_RIG_SEGMENTS);
		rig->segments[rig->plan.segment_count++] = (struct stasis_transfer_segment){
			.context = t_fake_context(shape->ordinal),
			.device_ordinal = shape->ordinal,
			.device_pointer =
				t_fake_address(shape->ordinal, extent_start(index) + done),
			.bytes = bytes,
			.extent_index = index,
		};
		done += bytes;
	}
}

size_t t_rig_extent_add(struct t_rig *rig, const struct t_shape *shape, int dir_fd)
{
	size_t index = rig->plan.extent_count++;
	struct stasis_transfer_extent *extent = &rig->extents[index];

	assert_true(index < T_RIG_EXTENTS);
	assert_true(shape->bytes <= T_RIG_DEVICE_BYTES / T_RIG_EXTENTS);
	assert_true(stasis_chunk_count(shape->bytes, shape->chunk_bytes) <= T_RIG_CHUNKS);
	*extent = (struct stasis_transfer_extent){
		.id.bytes = {(uint8_t)(index + 1), (uint8_t)shape->zero_every,
			     (uint8_t)shape->ordinal, (uint8_t)shape->packed_every},
		.direction = STASIS_TRANSFER_SAVE,
		.name = "extent",
		.bytes = shape->bytes,
		.chunk_bytes = shape->chunk_bytes,
		.stripe_count = shape->stripe_count,
		.chunks = rig->chunks[index],
	};
	for (uint32_t s = 0; s < shape->stripe_count; s++) {
		char *name = rig->names[index][s];

		(void)snprintf(name, sizeof(rig->names[index][s]), "e%zu.%u", index, s);
		extent->stripe_names[s] = name;
		extent->stripe_fds[s] =
			dir_fd < 0
				? memfd_create(name, MFD_CLOEXEC)
				: openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		assert_true(extent->stripe_fds[s] >= 0);
	}
	segments_add(rig, index, shape);
	pattern_fill(rig, index);
	return index;
}

void t_rig_direct(struct t_rig *rig, enum stasis_transfer_direction direction)
{
	for (size_t i = 0; i < rig->plan.extent_count; i++)
		rig->extents[i].direction = direction;
}

int t_rig_run(struct t_rig *rig, const struct stasis_transfer_watch *watch,
	      struct stasis_error *err)
{
	return stasis_transfer_run(rig->engine, &rig->plan, watch, &rig->result, err);
}

void t_rig_damage(struct t_rig *rig, size_t index, uint64_t chunk_index)
{
	const struct stasis_transfer_extent *extent = &rig->extents[index];
	const struct stasis_chunk *chunk = &extent->chunks[chunk_index];
	int fd = extent->stripe_fds[chunk_index % extent->stripe_count];
	off_t at = (off_t)(chunk->stored_offset + chunk->stored_bytes / 2);
	uint8_t byte = 0;

	assert_true(chunk->stored_bytes > 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

void t_rig_round_trip(struct t_rig *rig)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	t_rig_direct(rig, STASIS_TRANSFER_SAVE);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_NO_SIDE);
	assert_done(stasis_transfer_verify(rig->extents, rig->plan.extent_count, NULL, &rig->result,
					   &err),
		    &err);
	t_rig_spoil(rig);
	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	for (size_t i = 0; i < rig->plan.extent_count; i++)
		assert_true(t_rig_holds(rig, i));
}
