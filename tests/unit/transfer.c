/*
 * Description: the transfer engine moves every shape of plan both ways byte for byte, through every store,
 * within its bounds.
 */

#include "unit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "transfer_rig.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"

#define KIB64 STASIS_CHUNK_BYTES_MIN

static void every_length_comes_back(void **state)
{
	static const uint64_t lengths[] = {0,         1,         2,         511,          4095,
					   4096,      4097,      KIB64 - 1, KIB64,        KIB64 + 1,
					   2 * KIB64, 3 * KIB64, 1000003,   (1 << 22) + 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		for (uint32_t stripes = 1; stripes <= STASIS_STRIPES_MAX; stripes += 5) {
			struct t_rig *rig = t_rig_new(NULL);
			struct t_shape shape = t_shape_plain;

			shape.bytes = lengths[i];
			shape.stripe_count = stripes;
			(void)t_rig_extent_add(rig, &shape, -1);
			t_rig_round_trip(rig);
			t_rig_free(rig);
		}
	}
}

static void segments_may_be_smaller_than_chunks(void **state)
{
	static const uint32_t counts[] = {1, 2, 40, 700, 2000};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
		struct t_rig *rig = t_rig_new(NULL);
		struct t_shape shape = t_shape_plain;

		shape.segment_count = counts[i];
		(void)t_rig_extent_add(rig, &shape, -1);
		shape.bytes = 1000; /* less than a byte a segment */
		(void)t_rig_extent_add(rig, &shape, -1);
		t_rig_round_trip(rig);
		t_rig_free(rig);
	}
}

static void many_extents_and_devices_move_at_once(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct t_shape shape = t_shape_plain;

	(void)state;
	(void)t_rig_extent_add(rig, &shape, -1);
	shape.ordinal = 1;
	shape.stripe_count = 16;
	shape.chunk_bytes = 2 * KIB64;
	(void)t_rig_extent_add(rig, &shape, -1);
	shape.bytes = 0;
	(void)t_rig_extent_add(rig, &shape, -1);
	shape.bytes = 3 << 20;
	shape.ordinal = 2;
	shape.stripe_count = 1;
	shape.zero_every = 0;
	(void)t_rig_extent_add(rig, &shape, -1);
	t_rig_round_trip(rig);
	assert_int_equal(rig->result.worker_count, 9);
	/* Three workers of two slots each on devices with chunks of 64, 128 and 128 KiB. */
	assert_true(rig->result.pinned_peak_bytes == UINT64_C(3) * 2 * 5 * KIB64);
	t_rig_free(rig);
}

static void directions_may_mix(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_shape shape = t_shape_plain;

	(void)state;
	(void)t_rig_extent_add(rig, &shape, -1);
	(void)t_rig_extent_add(rig, &shape, -1);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	rig->extents[1].direction = STASIS_TRANSFER_LOAD;
	memset(t_fake_bytes(0) + T_RIG_DEVICE_BYTES / T_RIG_EXTENTS, 1, shape.bytes);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_true(t_rig_holds(rig, 1));
	t_rig_spoil(rig);
	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_true(t_rig_holds(rig, 0) && t_rig_holds(rig, 1));
	t_rig_free(rig);
}

static void every_store_comes_back(void **state)
{
	static const enum stasis_transfer_store kinds[] = {
		STASIS_TRANSFER_STORE_AUTO,    STASIS_TRANSFER_STORE_STRIPES,
		STASIS_TRANSFER_STORE_MAPPING, STASIS_TRANSFER_STORE_DIRECT,
		STASIS_TRANSFER_STORE_PLAIN,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		struct stasis_transfer_options options = {.store = kinds[i], .workers = 4};
		struct t_rig *rig = t_rig_new(&options);
		int dir = unit_folder_make();

		(void)t_rig_extent_add(rig, &t_shape_plain, dir);
		assert_int_equal(close(dir), 0);
		t_rig_round_trip(rig);
		assert_true(kinds[i] == STASIS_TRANSFER_STORE_AUTO ||
			    rig->result.store == kinds[i]);
		assert_int_equal(fcntl(rig->extents[0].stripe_fds[0], F_GETFL) & O_DIRECT, 0);
		t_rig_free(rig);
	}
}

static void host_memory_is_a_destination(void **state)
{
	struct stasis_transfer_memory memory = STASIS_TRANSFER_MEMORY_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);
	struct t_shape shape = t_shape_plain;
	uint64_t bytes = stasis_transfer_reserve_bytes(shape.bytes, shape.chunk_bytes, 1, 0);

	(void)state;
	shape.stripe_count = 1;
	(void)t_rig_extent_add(rig, &shape, -1);
	assert_done(stasis_transfer_memory_open(bytes, &memory, &err), &err);
	assert_true(memory.bytes == bytes);
	rig->extents[0].memory = &memory;
	t_rig_round_trip(rig);
	assert_int_equal(rig->result.store, STASIS_TRANSFER_STORE_MEMORY);
	/* Used again, it serves again. */
	t_rig_round_trip(rig);
	memory.bytes = bytes - 1;
	t_rig_direct(rig, STASIS_TRANSFER_SAVE);
	assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_REFUSED, "host memory");
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_FILE_SIDE);
	memory.bytes = bytes;
	stasis_transfer_memory_close(&memory);
	assert_int_equal(memory.fd, -1);
	t_rig_free(rig);
}

static void maps_open(struct t_rig *rig, size_t index, const struct t_shape *shape)
{
	struct stasis_transfer_extent *extent = &rig->extents[index];

	for (uint32_t s = 0; s < shape->stripe_count; s++) {
		extent->stripe_map_bytes[s] = stasis_transfer_reserve_bytes(
			shape->bytes, shape->chunk_bytes, shape->stripe_count, s);
		assert_int_equal(stasis_file_map(extent->stripe_fds[s], extent->stripe_map_bytes[s],
						 &extent->stripe_maps[s]),
				 0);
	}
}

static void maps_close(struct t_rig *rig, size_t index)
{
	struct stasis_transfer_extent *extent = &rig->extents[index];

	for (uint32_t s = 0; s < extent->stripe_count; s++)
		assert_int_equal(munmap(extent->stripe_maps[s], extent->stripe_map_bytes[s]), 0);
}

/* Files mapped ahead; the second time they have been cut since, and touching what was cut off would be SIGBUS. */
static void files_mapped_ahead_come_back(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_transfer_extent *extent = &rig->extents[0];

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	maps_open(rig, 0, &t_shape_plain);
	for (int i = 0; i < 2; i++) {
		t_rig_round_trip(rig);
		t_rig_direct(rig, STASIS_TRANSFER_SAVE);
		for (uint32_t s = 0; s < extent->stripe_count; s++)
			assert_int_equal(ftruncate(extent->stripe_fds[s], 0), 0);
	}
	maps_close(rig, 0);
	t_rig_free(rig);
}

/* As of one reserve for two GPUs. */
static void files_mapped_ahead_serve_several_gpus(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct t_shape shape = t_shape_plain;

	(void)state;
	for (int i = 0; i < 2; i++) {
		shape.ordinal = i;
		maps_open(rig, t_rig_extent_add(rig, &shape, -1), &shape);
	}
	t_rig_round_trip(rig);
	t_rig_direct(rig, STASIS_TRANSFER_SAVE);
	t_rig_round_trip(rig);
	for (size_t i = 0; i < 2; i++)
		maps_close(rig, i);
	t_rig_free(rig);
}

static void too_much_host_memory_is_refused(void **state)
{
	struct stasis_transfer_memory memory = STASIS_TRANSFER_MEMORY_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;
	size_t fds = t_count_fds();

	(void)state;
	assert_refused(stasis_transfer_memory_open(UINT64_C(1) << 60, &memory, &err), &err,
		       STASIS_REFUSED, "reserve");
	assert_refused(stasis_transfer_memory_open(0, &memory, &none), &none, STASIS_REFUSED,
		       "reserve");
	assert_int_equal(memory.fd, -1);
	assert_int_equal(t_count_fds(), fds);
}

static void zeros_are_not_stored(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);
	uint64_t chunk_count = stasis_chunk_count(t_shape_plain.bytes, t_shape_plain.chunk_bytes);
	uint64_t stored = 0;
	struct stat info;

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_true(rig->result.zero_bytes == 10 * KIB64);
	assert_true(rig->result.stored_bytes == t_shape_plain.bytes - 10 * KIB64);
	assert_true(rig->result.logical_bytes == t_shape_plain.bytes);
	for (uint64_t i = 0; i < chunk_count; i++) {
		bool is_zero = i % 4 == 3;

		assert_int_equal(rig->chunks[0][i].flags, is_zero ? STASIS_CHUNK_ZERO : 0);
		if (is_zero)
			assert_true(rig->chunks[0][i].stored_bytes == 0);
	}
	for (uint32_t s = 0; s < 3; s++) {
		assert_int_equal(fstat(rig->extents[0].stripe_fds[s], &info), 0);
		assert_true((uint64_t)info.st_size == rig->extents[0].stripe_bytes[s]);
		assert_int_equal(info.st_size % STASIS_STORED_ALIGNMENT, 0);
		stored += (uint64_t)info.st_size;
	}
	assert_true(stored == stasis_round_up(t_shape_plain.bytes - 10 * KIB64, 4096));
	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	t_fake_set_faults(&(struct t_fake_faults){0});
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_true(t_fake_memset_count() >= 10);
	t_rig_free(rig);
}

static void what_a_file_held_before_is_cut_off(void **state)
{
	static const char rubbish[1] = {1};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);
	struct t_shape shape = t_shape_plain;
	uint8_t tail[4096];
	struct stat info;

	(void)state;
	shape.stripe_count = 1;
	shape.bytes = 100;
	(void)t_rig_extent_add(rig, &shape, -1);
	assert_int_equal(pwrite(rig->extents[0].stripe_fds[0], rubbish, 1, 3000), 1);
	assert_int_equal(pwrite(rig->extents[0].stripe_fds[0], rubbish, 1, 1 << 20), 1);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_int_equal(fstat(rig->extents[0].stripe_fds[0], &info), 0);
	assert_int_equal(info.st_size, 4096);
	assert_int_equal(pread(rig->extents[0].stripe_fds[0], tail, 4096, 0), 4096);
	assert_true(stasis_bytes_are_zero(tail + 100, 3996));
	t_rig_free(rig);
}

struct progress {
	pthread_t thread;
	uint64_t last;
	uint64_t total;
};

static void progress_note(void *data, uint64_t done, uint64_t total)
{
	struct progress *progress = data;

	assert_true(pthread_equal(pthread_self(), progress->thread));
	assert_true(done >= progress->last && done <= total);
	progress->last = done;
	progress->total = total;
}

static void progress_ends_at_the_total(void **state)
{
	struct progress progress = {.thread = pthread_self()};
	struct stasis_transfer_watch watch = {.progress = progress_note,
					      .progress_data = &progress,
					      .deadline_ns = STASIS_NO_DEADLINE};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, &watch, &err), &err);
	assert_true(progress.last == t_shape_plain.bytes && progress.total == t_shape_plain.bytes);
	progress.last = 0;
	assert_done(stasis_transfer_verify(rig->extents, 1, &watch, &rig->result, &err), &err);
	assert_true(progress.last == t_shape_plain.bytes);
	t_rig_free(rig);
}

static void an_empty_plan_is_done(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)state;
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_done(stasis_transfer_verify(rig->extents, 0, NULL, &rig->result, &err), &err);
	assert_done(stasis_transfer_sync(rig->extents, 0, NULL, &rig->result, &err), &err);
	assert_int_equal(t_fake_pinned_bytes(), 0);
	t_rig_free(rig);
}

static void pinned_memory_is_bounded(void **state)
{
	struct stasis_transfer_options large = {.chunk_bytes = STASIS_CHUNK_BYTES_MAX,
						.workers = 16};
	struct stasis_transfer_options tight = {
		.chunk_bytes = 4 * KIB64, .workers = 16, .pinned_bytes = UINT64_C(9) * 4 * KIB64};
	struct stasis_transfer_options none = {.chunk_bytes = 4 * KIB64, .pinned_bytes = 7 * KIB64};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error refused = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(&large);

	(void)state;
	assert_done(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err), &err);
	assert_true(t_fake_pinned_bytes() == STASIS_TRANSFER_PINNED_BYTES_MAX);
	assert_done(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err), &err);
	assert_true(t_fake_pinned_bytes() == STASIS_TRANSFER_PINNED_BYTES_MAX);
	t_rig_free(rig);
	rig = t_rig_new(&tight);
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	t_rig_round_trip(rig);
	assert_int_equal(rig->result.worker_count, 4);
	assert_true(t_fake_pinned_peak_bytes() == UINT64_C(8) * 4 * KIB64);
	t_rig_free(rig);
	rig = t_rig_new(&none);
	assert_refused(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &refused),
		       &refused, STASIS_REFUSED, "pinned memory");
	t_rig_free(rig);
}

static void a_larger_chunk_gets_a_larger_ring(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_shape shape = t_shape_plain;

	(void)state;
	assert_done(stasis_transfer_prepare(rig->engine, t_fake_context(0), 0, &err), &err);
	assert_true(t_fake_pinned_bytes() == 6 * KIB64);
	shape.chunk_bytes = 3 * KIB64;
	(void)t_rig_extent_add(rig, &shape, -1);
	t_rig_round_trip(rig);
	assert_true(t_fake_pinned_bytes() == 18 * KIB64);
	t_rig_free(rig);
}

static void stripes_are_brought_to_the_disk(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error refused = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);
	int kept;

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	assert_done(stasis_transfer_sync(rig->extents, 1, NULL, &rig->result, &err), &err);
	kept = rig->extents[0].stripe_fds[1];
	rig->extents[0].stripe_fds[1] = -1;
	assert_refused(stasis_transfer_sync(rig->extents, 1, NULL, &rig->result, &refused),
		       &refused, STASIS_REFUSED, "'e0.1'");
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_FILE_SIDE);
	rig->extents[0].stripe_fds[1] = kept;
	t_rig_free(rig);
}

static void stores_have_names(void **state)
{
	enum stasis_transfer_store store = STASIS_TRANSFER_STORE_AUTO;
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(fd) int fd = memfd_create("x", MFD_CLOEXEC);

	(void)state;
	for (int i = 0; i <= STASIS_TRANSFER_STORE_MEMORY; i++) {
		assert_true(stasis_transfer_store_parse(
			stasis_transfer_store_name((enum stasis_transfer_store)i), &store));
		assert_int_equal(store, i);
	}
	assert_false(stasis_transfer_store_parse("", &store));
	assert_false(stasis_transfer_store_parse("direct ", &store));
	/* tmpfs takes O_DIRECT without meaning it. */
	assert_done(stasis_transfer_store_detect(fd, "x", &store, &err), &err);
	assert_int_equal(store, STASIS_TRANSFER_STORE_STRIPES);
}

static void reserves_are_enough_and_no_more(void **state)
{
	static const uint64_t lengths[] = {0, 1, 4097, KIB64, 10 * KIB64, 10 * KIB64 + 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		for (uint32_t stripes = 1; stripes <= STASIS_STRIPES_MAX; stripes++) {
			uint64_t sum = 0;

			for (uint32_t s = 0; s < stripes; s++)
				sum += stasis_transfer_reserve_bytes(lengths[i], KIB64, stripes, s);
			assert_true(sum == stasis_round_up(lengths[i], 4096));
		}
	}
	assert_int_equal(stasis_transfer_stripe_count(0, KIB64), 1);
	assert_int_equal(stasis_transfer_stripe_count(16 << 20, KIB64), 1);
	assert_int_equal(stasis_transfer_stripe_count(64 << 20, KIB64), 4);
	assert_int_equal(stasis_transfer_stripe_count(UINT64_MAX, KIB64), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_comes_back),
		cmocka_unit_test(segments_may_be_smaller_than_chunks),
		cmocka_unit_test(many_extents_and_devices_move_at_once),
		cmocka_unit_test(directions_may_mix),
		cmocka_unit_test(every_store_comes_back),
		cmocka_unit_test(host_memory_is_a_destination),
		cmocka_unit_test(files_mapped_ahead_come_back),
		cmocka_unit_test(files_mapped_ahead_serve_several_gpus),
		cmocka_unit_test(too_much_host_memory_is_refused),
		cmocka_unit_test(zeros_are_not_stored),
		cmocka_unit_test(what_a_file_held_before_is_cut_off),
		cmocka_unit_test(progress_ends_at_the_total),
		cmocka_unit_test(an_empty_plan_is_done),
		cmocka_unit_test(pinned_memory_is_bounded),
		cmocka_unit_test(a_larger_chunk_gets_a_larger_ring),
		cmocka_unit_test(stripes_are_brought_to_the_disk),
		cmocka_unit_test(stores_have_names),
		cmocka_unit_test(reserves_are_enough_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
