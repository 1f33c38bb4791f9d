/*
 * Description: damaged, short and contradictory files are named by file, chunk and offset before a byte of them
 * reaches a device, and wrong plans are refused before anything is touched.
 */

#include "unit.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "transfer_rig.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

#define KIB64 STASIS_CHUNK_BYTES_MIN

static void damage_is_named_before_it_is_used(void **state)
{
	static const uint64_t places[] = {0, 17, 40};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_error none = STASIS_ERROR_INIT;
		struct t_rig *rig = t_rig_new(NULL);
		char name[16];

		(void)t_rig_extent_add(rig, &t_shape_plain, -1);
		assert_done(t_rig_run(rig, NULL, &none), &none);
		t_rig_damage(rig, 0, places[i]);
		t_rig_spoil(rig);
		t_rig_direct(rig, STASIS_TRANSFER_LOAD);
		(void)snprintf(name, sizeof(name), "'e0.%u'", (unsigned int)(places[i] % 3));
		assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_BAD_IMAGE, name);
		assert_true(rig->result.has_damage);
		assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_FILE_SIDE);
		assert_true(rig->result.damage_chunk_index == places[i]);
		assert_true(rig->result.damage_file_offset ==
			    rig->chunks[0][places[i]].stored_offset);
		assert_true(t_rig_is_spoilt(rig, 0, places[i]));
		rig->plan.verify = false;
		assert_done(t_rig_run(rig, NULL, &none), &none);
		t_rig_free(rig);
	}
}

static void verify_names_the_first_damage(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_error none = STASIS_ERROR_INIT;
		struct t_rig *rig = t_rig_new(NULL);

		(void)t_rig_extent_add(rig, &t_shape_plain, -1);
		(void)t_rig_extent_add(rig, &t_shape_plain, -1);
		assert_done(t_rig_run(rig, NULL, &none), &none);
		t_rig_damage(rig, 1, 1);
		t_rig_damage(rig, 0, 22);
		t_rig_damage(rig, 0, 21);
		t_rig_damage(rig, 0, 20);
		assert_int_equal(ftruncate(rig->extents[1].stripe_fds[0], 0), 0);
		assert_refused(stasis_transfer_verify(rig->extents, 2, NULL, &rig->result, &err),
			       &err, STASIS_BAD_IMAGE, "chunk 20");
		assert_true(rig->result.has_damage);
		assert_int_equal(rig->result.damage_extent_index, 0);
		assert_true(rig->result.damage_chunk_index == 20);
		t_rig_free(rig);
	}
}

/* Changes one record of a sound image; a load and a verification must refuse it, and no byte may move. */
static void record_is_refused(uint64_t index, const struct stasis_chunk *record, const char *text)
{
	struct stasis_error load = STASIS_ERROR_INIT;
	struct stasis_error verify = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);

	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, NULL, &none), &none);
	rig->chunks[0][index].flags = record->flags;
	rig->chunks[0][index].stored_offset = record->stored_offset;
	rig->chunks[0][index].stored_bytes = record->stored_bytes;
	t_rig_direct(rig, STASIS_TRANSFER_LOAD);
	t_rig_spoil(rig);
	assert_refused(t_rig_run(rig, NULL, &load), &load, STASIS_BAD_IMAGE, text);
	assert_true(rig->result.has_damage);
	assert_true(rig->result.damage_chunk_index == index);
	assert_true(t_rig_is_spoilt(rig, 0, index));
	assert_refused(stasis_transfer_verify(rig->extents, 1, NULL, &rig->result, &verify),
		       &verify, STASIS_BAD_IMAGE, text);
	assert_true(rig->result.damage_chunk_index == index);
	t_rig_free(rig);
}

static void false_records_are_refused(void **state)
{
	static const struct stasis_chunk zero = {.flags = STASIS_CHUNK_ZERO};
	static const struct stasis_chunk unflagged = {.flags = 0};
	static const struct stasis_chunk zero_stored = {.flags = STASIS_CHUNK_ZERO,
							.stored_bytes = KIB64};
	static const struct stasis_chunk unknown = {.flags = 8, .stored_bytes = KIB64};
	static const struct stasis_chunk two = {.flags = STASIS_CHUNK_LZ4 | STASIS_CHUNK_ZSTD,
						.stored_bytes = 100};
	static const struct stasis_chunk odd = {.stored_offset = 1, .stored_bytes = KIB64};
	static const struct stasis_chunk far = {.stored_offset = UINT64_C(1) << 40,
						.stored_bytes = KIB64};
	static const struct stasis_chunk wrap = {.stored_offset = UINT64_MAX - 4095,
						 .stored_bytes = KIB64};
	static const struct stasis_chunk small = {.stored_bytes = 1};

	(void)state;
	record_is_refused(0, &zero, "recorded as zeros");
	record_is_refused(40, &zero, "recorded as zeros");
	record_is_refused(3, &unflagged, "length");
	record_is_refused(3, &zero_stored, "stored too");
	record_is_refused(8, &unknown, "flags");
	record_is_refused(8, &two, "flags");
	record_is_refused(9, &odd, "not aligned");
	record_is_refused(10, &far, "file ends");
	record_is_refused(12, &wrap, "file ends");
	record_is_refused(13, &small, "length");
}

static void a_chunk_cannot_stand_in_for_another(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error none = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_chunk swapped;

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_done(t_rig_run(rig, NULL, &none), &none);
	/* Chunks 0 and 6 are in one stripe. */
	swapped = rig->chunks[0][0];
	rig->chunks[0][0] = rig->chunks[0][6];
	rig->chunks[0][6] = swapped;
	assert_refused(stasis_transfer_verify(rig->extents, 1, NULL, &rig->result, &err), &err,
		       STASIS_BAD_IMAGE, "chunk 0 ");
	t_rig_free(rig);
}

static void short_files_are_refused_before_a_byte_moves(void **state)
{
	(void)state;
	for (uint32_t stripe = 0; stripe < 3; stripe++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_error none = STASIS_ERROR_INIT;
		struct stasis_transfer_options options = {
			.store = stripe == 0   ? STASIS_TRANSFER_STORE_MAPPING
				 : stripe == 1 ? STASIS_TRANSFER_STORE_STRIPES
					       : STASIS_TRANSFER_STORE_AUTO,
		};
		struct t_rig *rig = t_rig_new(&options);
		off_t end;

		(void)t_rig_extent_add(rig, &t_shape_plain, -1);
		assert_done(t_rig_run(rig, NULL, &none), &none);
		end = (off_t)rig->extents[0].stripe_bytes[stripe] - 4096;
		assert_int_equal(ftruncate(rig->extents[0].stripe_fds[stripe], end), 0);
		t_rig_direct(rig, STASIS_TRANSFER_LOAD);
		t_fake_set_faults(&(struct t_fake_faults){0});
		assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_BAD_IMAGE,
			       "the file ends before it does");
		assert_int_equal(t_fake_copy_count() + t_fake_memset_count(), 0);
		t_rig_free(rig);
	}
}

static void plan_is_refused(struct t_rig *rig, const char *text)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	t_fake_set_faults(&(struct t_fake_faults){0});
	assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_REFUSED, text);
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_NO_SIDE);
	assert_int_equal(t_fake_copy_count(), 0);
	assert_int_equal(t_fake_pinned_bytes(), 0);
}

static void wrong_plans_are_refused(void **state)
{
	struct t_rig *rig = t_rig_new(NULL);
	struct stasis_transfer_extent extent;
	struct stasis_transfer_segment segment;

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	extent = rig->extents[0];
	segment = rig->segments[0];
	rig->extents[0].chunk_bytes = 4095;
	plan_is_refused(rig, "chunks of 4095 bytes");
	rig->extents[0].chunk_bytes = KIB64 + 1;
	plan_is_refused(rig, "chunks of 65537 bytes");
	rig->extents[0].chunk_bytes = STASIS_CHUNK_BYTES_MAX + 4096;
	plan_is_refused(rig, "chunks of");
	rig->extents[0] = extent;
	rig->extents[0].stripe_count = 0;
	plan_is_refused(rig, "0 stripes");
	rig->extents[0].stripe_count = 17;
	plan_is_refused(rig, "17 stripes");
	rig->extents[0] = extent;
	rig->extents[0].bytes++;
	plan_is_refused(rig, "its segments cover");
	rig->extents[0] = extent;
	rig->extents[0].chunks = NULL;
	plan_is_refused(rig, "no chunk table");
	rig->extents[0] = extent;
	rig->extents[0].direction = 0;
	plan_is_refused(rig, "neither");
	rig->extents[0] = extent;
	rig->segments[0].extent_index = 1;
	plan_is_refused(rig, "a segment names extent 1");
	rig->segments[0] = segment;
	rig->segments[0].device_pointer = 0;
	plan_is_refused(rig, "no valid device address");
	rig->segments[0].device_pointer = UINT64_MAX - 1;
	plan_is_refused(rig, "no valid device address");
	rig->segments[0] = segment;
	rig->segments[0].context = t_fake_context(1);
	plan_is_refused(rig, "several devices");
	rig->segments[0] = segment;
	t_rig_free(rig);
}

static void what_is_no_file_is_refused(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error closed = STASIS_ERROR_INIT;
	struct t_rig *rig = t_rig_new(NULL);
	int ends[2];

	(void)state;
	(void)t_rig_extent_add(rig, &t_shape_plain, -1);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], rig->extents[0].stripe_fds[2]),
			 rig->extents[0].stripe_fds[2]);
	assert_int_equal(close(ends[0]) + close(ends[1]), 0);
	assert_refused(t_rig_run(rig, NULL, &err), &err, STASIS_REFUSED,
		       "'e0.2' is not a regular file");
	assert_int_equal(rig->result.failed_side, STASIS_TRANSFER_FILE_SIDE);
	assert_int_equal(close(rig->extents[0].stripe_fds[1]), 0);
	rig->extents[0].stripe_fds[1] = -1;
	assert_refused(t_rig_run(rig, NULL, &closed), &closed, STASIS_REFUSED, "'e0.1'");
	t_rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_named_before_it_is_used),
		cmocka_unit_test(verify_names_the_first_damage),
		cmocka_unit_test(false_records_are_refused),
		cmocka_unit_test(a_chunk_cannot_stand_in_for_another),
		cmocka_unit_test(short_files_are_refused_before_a_byte_moves),
		cmocka_unit_test(wrong_plans_are_refused),
		cmocka_unit_test(what_is_no_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
