/*
 * Description: every kind of copy that this processor has moves exactly the bytes asked for, whatever their
 * number and alignment, and touches none beside them.
 */

#include "unit.h"

#include "base/compiler.h"
#include "base/copy.h"

#define GUARD_BYTES 128
#define ROOM_BYTES (size_t)(192 << 10)

static uint8_t *from_room;
static uint8_t *to_room;

static int rooms_open(void **state)
{
	uint32_t value = 1;

	(void)state;
	from_room = malloc(ROOM_BYTES);
	to_room = malloc(ROOM_BYTES);
	assert_non_null(from_room);
	assert_non_null(to_room);
	for (size_t i = 0; i < ROOM_BYTES; i++) {
		value = value * 1664525 + 1013904223;
		from_room[i] = (uint8_t)(value >> 24);
	}
	return 0;
}

static int rooms_close(void **state)
{
	(void)state;
	free(from_room);
	free(to_room);
	return 0;
}

static void check_guard(const uint8_t *at)
{
	for (size_t i = 0; i < GUARD_BYTES; i++)
		assert_int_equal(at[i], 0xee);
}

static void check_copy(const struct stasis_copy_kind *kind, size_t to_offset, size_t from_offset,
		       size_t bytes)
{
	uint8_t *to = to_room + GUARD_BYTES + to_offset;
	const uint8_t *from = from_room + from_offset;

	memset(to - GUARD_BYTES, 0xee, bytes + 2 * (size_t)GUARD_BYTES);
	kind->copy(to, from, bytes);
	assert_memory_equal(to, from, bytes);
	check_guard(to - GUARD_BYTES);
	check_guard(to + bytes);
}

static const size_t lengths[] = {0,    1,    63,   64,   65,   255,   256,   1023,
				 1024, 1025, 1279, 4096, 4097, 16384, 20001, 131072};
static const size_t offsets[] = {0, 1, 8, 31, 32, 63, 64};

static void check_kind(const struct stasis_copy_kind *kind)
{
	for (size_t i = 0; i < ARRAY_COUNT(lengths) * ARRAY_COUNT(offsets); i++) {
		size_t length = lengths[i / ARRAY_COUNT(offsets)];
		size_t offset = offsets[i % ARRAY_COUNT(offsets)];

		check_copy(kind, offset, 0, length);
		check_copy(kind, 0, offset, length);
		check_copy(kind, offset, 17, length);
	}
}

static void each_length_at_each_alignment(void **state)
{
	size_t count;
	const struct stasis_copy_kind *kinds = stasis_copy_kinds(&count);

	(void)state;
	for (size_t k = 0; k < count; k++) {
		if (kinds[k].is_supported())
			check_kind(&kinds[k]);
		else
			print_message("this processor has no '%s'\n", kinds[k].name);
	}
	assert_true(kinds[count - 1].is_supported());
}

static void the_best_kind_is_chosen(void **state)
{
	static const struct stasis_copy_kind chosen = {.copy = stasis_copy_streaming};

	(void)state;
	check_kind(&chosen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_at_each_alignment),
		cmocka_unit_test(the_best_kind_is_chosen),
	};

	return cmocka_run_group_tests(tests, rooms_open, rooms_close);
}
