/*
 * Description: chunks are compressed where that pays and come back right from every store; what does not unpack to
 * its chunk is named by file, chunk and offset before a byte of it reaches a device, and writes nowhere else;
 * failures and cancellations leave nothing behind.
 */

#include "unit.h"

#include <pthread.h>

#include "transfer_rig.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "transfer/codec.h"

#define KIB64 STASIS_CHUNK_BYTES_MIN

/* Of four chunks one is zeros, one or two repeat themselves, and the rest is noise. */
static const struct t_shape shape_mixed = {
	.bytes = 40 * STASIS_CHUNK_BYTES_MIN + 13,
	.chunk_bytes = STASIS_CHUNK_BYTES_MIN,
	.stripe_count = 3,
	.segment_count = 5,
	.zero_every = 4,
	.packed_every = 3,
};

static const char *const names[] = {"lz4", "zstd"};

static struct t_rig *rig_new(const char *name, enum stasis_transfer_store store)
{
	const struct stasis_transfer_options options = {
		.store = store,
		.chunk_bytes = KIB64,
		.workers = 3,
		.codec = stasis_transfer_codec_find(name),
	};

	assert_non_null(options.codec);
	return t_rig_new(&options);
}

/* A rig whose extent has been saved. */
static struct t_rig *rig_saved(const char *name)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = rig_new(name, STASIS_TRANSFER_STORE_AUTO);

	(void)t_rig_extent_add(rig, &shape_mixed, -1);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	return rig;
}

static uint64_t packed_first(const struct t_rig *rig)
{
	uint64_t index = 0;

	while (!stasis_chunk_is_packed(&rig->chunks[0][index]))
		index++;
	return index;
}

static void every_store_comes_back(void **state)
{
	static const enum stasis_transfer_store stores[] = {
		STASIS_TRANSFER_STORE_AUTO,    STASIS_TRANSFER_STORE_STRIPES,
		STASIS_TRANSFER_STORE_MAPPING, STASIS_TRANSFER_STORE_DIRECT,
		STASIS_TRANSFER_STORE_PLAIN,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(stores) * ARRAY_COUNT(names); i++) {
		struct t_rig *rig =
			rig_new(names[i % ARRAY_COUNT(names)], stores[i / ARRAY_COUNT(names)]);
		int dir = unit_folder_make();

		(void)t_rig_extent_add(rig, &shape_mixed, dir);
		assert_int_equal(close(dir), 0);
		t_rig_round_trip(rig);
		/* Once more over what is there. */
		t_rig_round_trip(rig);
		t_rig_free(rig);
	}
}

static void host_memory_comes_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct stasis_transfer_memory memory = STASIS_TRANSFER_MEMORY_EMPTY;
		struct stasis_error err = STASIS_ERROR_INIT;
		struct t_rig *rig = rig_new(names[i], STASIS_TRANSFER_STORE_AUTO);
		struct t_shape shape = shape_mixed;

		shape.stripe_count = 1;
		(void)t_rig_extent_add(rig, &shape, -1);
		assert_done(stasis_transfer_memory_open(
				    stasis_transfer_reserve_bytes(shape.bytes, KIB64, 1, 0),
				    &memory, &err),
			    &err);
		rig->extents[0].memory = &memory;
		t_rig_round_trip(rig);
		stasis_transfer_memory_close(&memory);
		t_rig_free(rig);
	}
}

/* Zeros are no business of a codec, noise stays as it is, and a last chunk of a few bytes cannot gain. */
static void only_what_pays_is_packed(void **state)
{
	(void)state;
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		uint32_t flag = stasis_transfer_codec_find(names[n])->flag;
		struct t_rig *rig = rig_saved(names[n]);
		uint64_t stored = 0;

		for (uint64_t i = 0; i <= 40; i++) {
			const struct stasis_chunk *chunk = &rig->chunks[0][i];
			bool is_packed = i % 4 != 3 && i % 3 == 2 && i != 40;

			assert_int_equal(chunk->flags, i % 4 == 3  ? STASIS_CHUNK_ZERO
						       : is_packed ? flag
								   : 0);
			assert_true(!is_packed || chunk->stored_bytes < KIB64 / 4);
			stored += stasis_round_up(chunk->stored_bytes, STASIS_STORED_ALIGNMENT);
		}
		assert_true(stored == rig->extents[0].stripe_bytes[0] +
					      rig->extents[0].stripe_bytes[1] +
					      rig->extents[0].stripe_bytes[2]);
		t_rig_free(rig);
	}
}

/* A load and a verification name the chunk; the device has not got a byte of it. */
static void chunk_is_refused(struct t_rig *rig, uint64_t index, const char *text)
{
	struct stasis_error load = STASIS_ERROR_INIT;
	struct stasis_error verify = STASIS_ERROR_INIT;
	char name[64];

	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	t_rig_spoil(rig);
	(void)snprintf(name, sizeof(name),
		       "'e0.%u': chunk %u at offset %llu is damaged: ", (unsigned int)(index % 3),
		       (unsigned int)index,
		       (unsigned long long)rig->chunks[0][index].stored_offset);
	assert_refused(t_rig_run(rig, NULL, &load), &load, STASIS_BAD_IMAGE, name);
	assert_non_null(strstr(load.text, text));
	assert_true(rig->result.has_damage);
	assert_true(rig->result.damage_chunk_index == index);
	assert_true(rig->result.damage_file_offset == rig->chunks[0][index].stored_offset);
	assert_true(t_rig_is_spoilt(rig, 0, index));
	assert_refused(stasis_transfer_verify(rig->extents, 1, NULL, &rig->result, &verify),
		       &verify, STASIS_BAD_IMAGE, name);
	assert_true(rig->result.damage_chunk_index == index);
}

/* Wherever it lies in what was packed, and whatever the codec makes of it. */
static void a_changed_byte_is_named(void **state)
{
	(void)state;
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		struct t_rig *rig = rig_saved(names[n]);
		uint64_t index = packed_first(rig);
		const struct stasis_chunk *chunk = &rig->chunks[0][index];
		int fd = rig->extents[0].stripe_fds[index % 3];
		struct stasis_error err = STASIS_ERROR_INIT;
		uint8_t byte = 0;

		for (uint64_t i = 0; i < 32; i++) {
			off_t at = (off_t)(chunk->stored_offset + chunk->stored_bytes * i / 32);
			uint8_t changed;

			assert_int_equal(pread(fd, &byte, 1, at), 1);
			changed = byte ^ (uint8_t)(1U << i % 8);
			assert_int_equal(pwrite(fd, &changed, 1, at), 1);
			chunk_is_refused(rig, index, "");
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		assert_done(t_rig_run(rig, NULL, &err), &err);
		assert_true(t_rig_holds(rig, 0));
		t_rig_free(rig);
	}
}

static void a_false_length_is_named(void **state)
{
	(void)state;
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		struct t_rig *rig = rig_saved(names[n]);
		uint64_t index = packed_first(rig);
		struct stasis_chunk *chunk = &rig->chunks[0][index];
		uint64_t right = chunk->stored_bytes;

		chunk->stored_bytes = right - 1;
		chunk_is_refused(rig, index, "do not unpack");
		chunk->stored_bytes = right + 1;
		chunk_is_refused(rig, index, "do not unpack");
		chunk->stored_bytes = 1;
		chunk_is_refused(rig, index, "do not unpack");
		chunk->stored_bytes = 0;
		chunk_is_refused(rig, index, "no shorter than its own length");
		chunk->stored_bytes = KIB64;
		chunk_is_refused(rig, index, "no shorter than its own length");
		chunk->stored_bytes = right;
		assert_int_equal(ftruncate(rig->extents[0].stripe_fds[index % 3],
					   (off_t)(chunk->stored_offset + right / 2)),
				 0);
		chunk_is_refused(rig, index, "the file ends before it does");
		t_rig_free(rig);
	}
}

/* Bytes that were never packed, and bytes that another codec has packed. */
static void false_flags_are_named(void **state)
{
	struct t_rig *rig = rig_saved("lz4");
	uint64_t index = packed_first(rig);

	(void)state;
	rig->chunks[0][index].flags = STASIS_CHUNK_ZSTD;
	chunk_is_refused(rig, index, "zstd");
	rig->chunks[0][index].flags = STASIS_CHUNK_LZ4;
	rig->chunks[0][0].flags = STASIS_CHUNK_ZSTD;
	rig->chunks[0][0].stored_bytes = KIB64 - 1;
	chunk_is_refused(rig, 0, "zstd");
	rig->chunks[0][0].flags = STASIS_CHUNK_LZ4;
	chunk_is_refused(rig, 0, "lz4");
	t_rig_free(rig);
}

/* What unpacks to much more than a chunk is refused, and writes nothing behind it. */
static void a_bomb_is_bounded(void **state)
{
	size_t bytes = 64 * KIB64;
	CLEANUP(free) uint8_t *zeros = calloc(1, bytes);

	(void)state;
	assert_non_null(zeros);
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		const struct stasis_transfer_codec *codec = stasis_transfer_codec_find(names[n]);
		CLEANUP(transfer_packing) struct stasis_transfer_packing packing = {0};
		struct t_rig *rig = rig_saved(names[n]);
		uint64_t index = packed_first(rig);
		struct stasis_chunk *chunk = &rig->chunks[0][index];
		size_t packed;

		assert_int_equal(stasis_transfer_packing_init(&packing, bytes), 0);
		packed = stasis_transfer_pack(&packing, codec, zeros, bytes);
		assert_true(packed > 0 && packed < KIB64);
		/* Behind all others, which it must not damage. */
		chunk->stored_offset = rig->extents[0].stripe_bytes[index % 3];
		assert_int_equal(pwrite(rig->extents[0].stripe_fds[index % 3], packing.buffer,
					packed, (off_t)chunk->stored_offset),
				 packed);
		chunk->stored_bytes = packed;
		chunk_is_refused(rig, index, "do not unpack");
		t_rig_free(rig);
	}
}

static void large_chunks_are_not_packed(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct t_rig *rig = rig_new("lz4", STASIS_TRANSFER_STORE_AUTO);
	struct t_shape shape = shape_mixed;

	(void)state;
	shape.chunk_bytes = 2 * STASIS_TRANSFER_PACKED_CHUNK_BYTES_MAX;
	(void)t_rig_extent_add(rig, &shape, -1);
	assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_REFUSED, "too large");
	t_rig_free(rig);
}

/* A load packs nothing, whatever the engine was made for; what was packed loads without a codec. */
static void loads_go_by_the_chunks(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_transfer *engine = NULL;
	struct t_rig *rig = rig_saved("zstd");
	const struct stasis_transfer_options options = {
		.driver = rig->driver, .chunk_bytes = KIB64, .workers = 2};

	(void)state;
	assert_done(stasis_transfer_new(&options, &engine, &err), &err);
	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	t_rig_spoil(rig);
	assert_done(stasis_transfer_run(engine, &rig->plan, NULL, &rig->result, &err), &err);
	assert_true(t_rig_holds(rig, 0));
	stasis_transfer_free(engine);
	t_rig_free(rig);
}

/* Gives a transfer up at its N-th copy. Saved anew first: a save that was given up leaves no whole chunk table. */
static void cancel_at(struct t_rig *rig, uint64_t copy, enum stasis_transfer_direction direction)
{
	atomic_bool cancel = false;
	const struct stasis_transfer_watch watch = {.cancel = &cancel,
						    .deadline_ns = STASIS_NO_DEADLINE};
	struct t_fake_faults faults = {.copy_cancels = copy, .cancel = &cancel};
	struct stasis_error err = STASIS_ERROR_INIT;

	t_rig_direct(rig, STASIS_TRANSFER_SAVE);
	assert_done(t_rig_run(rig, NULL, &err), &err);
	t_rig_direct(rig, direction);
	t_fake_set_faults(&faults);
	assert_refused(t_rig_run(rig, &watch, &err), &err, STASIS_REFUSED, "cancelled");
	assert_true(rig->result.is_cancelled);
	assert_int_equal(rig->result.pinned_leaked_bytes, 0);
	t_fake_set_faults(&(struct t_fake_faults){0});
}

/* At each copy, both ways: the rig counts threads, descriptors and pinned bytes when it ends. */
static void cancellation_leaves_nothing(void **state)
{
	(void)state;
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		struct t_rig *rig = rig_saved(names[n]);

		for (uint64_t copy = 1; copy <= 41; copy++) {
			cancel_at(rig, copy, STASIS_TRANSFER_SAVE);
			cancel_at(rig, copy, STASIS_TRANSFER_LOAD);
		}
		t_rig_round_trip(rig);
		t_rig_free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_store_comes_back),
		cmocka_unit_test(host_memory_comes_back),
		cmocka_unit_test(only_what_pays_is_packed),
		cmocka_unit_test(a_changed_byte_is_named),
		cmocka_unit_test(a_false_length_is_named),
		cmocka_unit_test(false_flags_are_named),
		cmocka_unit_test(a_bomb_is_bounded),
		cmocka_unit_test(large_chunks_are_not_packed),
		cmocka_unit_test(loads_go_by_the_chunks),
		cmocka_unit_test(cancellation_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
