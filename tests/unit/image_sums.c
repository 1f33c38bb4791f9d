/*
 * Description: sums are read back as they were written, and refused when cut or damaged anywhere, when
 * reserved bits are set, and when chunks do not lie in their stripes as they must.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "image_fixture.h"

static const struct stasis_id extent_id = {{9, 8, 7}};

static const uint64_t good_stripes[STASIS_STRIPES_MAX] = {
	2 * T_IMAGE_CHUNK_BYTES + STASIS_STORED_ALIGNMENT,
	T_IMAGE_CHUNK_BYTES,
};

static uint8_t *good_data(size_t *ret_bytes)
{
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	uint8_t *data = NULL;

	t_image_sums_make(&sums, &extent_id);
	assert_done(stasis_image_sums_encode(&sums, &data, &err), &err);
	*ret_bytes = stasis_image_sums_bytes(T_IMAGE_CHUNKS);
	return data;
}

static void data_refused(const uint8_t *data, size_t bytes, const char *wanted)
{
	struct stasis_image_sums sums = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_image_sums_decode("x.sums", data, bytes, &sums, &err) == 0)
		fail_msg("accepted; wanted: %s", wanted);
	if (err.status != STASIS_BAD_IMAGE || !strstr(err.text, "x.sums: ") ||
	    !strstr(err.text, wanted))
		fail_msg("status %d, '%s' does not hold '%s'", (int)err.status, err.text, wanted);
	assert_null(sums.chunks);
}

static void checksum_set(uint8_t *data, size_t bytes)
{
	struct stasis_digest digest =
		stasis_digest_of(data, bytes - STASIS_IMAGE_SUMS_CHECKSUM_BYTES);

	memcpy(data + bytes - STASIS_IMAGE_SUMS_CHECKSUM_BYTES, digest.bytes, sizeof(digest.bytes));
}

static void are_read_back_as_written(void **state)
{
	CLEANUP(image_sums) struct stasis_image_sums wanted = {0};
	CLEANUP(image_sums) struct stasis_image_sums found = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;
	CLEANUP(free) uint8_t *data = good_data(&bytes);

	(void)state;
	t_image_sums_make(&wanted, &extent_id);
	assert_done(stasis_image_sums_decode("x.sums", data, bytes, &found, &err), &err);
	assert_memory_equal(&found.extent_id, &extent_id, sizeof(extent_id));
	assert_int_equal(found.logical_bytes, T_IMAGE_BYTES);
	assert_int_equal(found.chunk_bytes, T_IMAGE_CHUNK_BYTES);
	assert_int_equal(found.chunk_count, T_IMAGE_CHUNKS);
	assert_int_equal(found.stripe_count, T_IMAGE_STRIPES);
	for (size_t i = 0; i < T_IMAGE_CHUNKS; i++) {
		assert_true(stasis_digest_equal(&found.chunks[i].digest, &wanted.chunks[i].digest));
		assert_int_equal(found.chunks[i].flags, wanted.chunks[i].flags);
		assert_int_equal(found.chunks[i].stored_offset, wanted.chunks[i].stored_offset);
		assert_int_equal(found.chunks[i].stored_bytes, wanted.chunks[i].stored_bytes);
	}
	assert_done(stasis_image_sums_check("x.sums", &found, good_stripes, &err), &err);
}

/* The format is fixed: these bytes are what docs/format.md says. */
static void bytes_lie_where_the_format_says(void **state)
{
	static const uint8_t head[] = {
		'S', 'T', 'A', 'S', 'I', 'S', 'U', 'M', /* magic */
		1,   0,   0,   0,   64,  0,   0,   0,   /* version, header bytes */
		9,   8,   7,   0,   0,   0,   0,   0,   /* extent id */
		0,   0,   0,   0,   0,   0,   0,   0,   /* … */
		100, 0,   4,   0,   0,   0,   0,   0,   /* logical bytes: 0x40064 */
		0,   0,   1,   0,   0,   0,   0,   0,   /* chunk bytes: 0x10000 */
		5,   0,   0,   0,   0,   0,   0,   0,   /* chunk count */
		2,   0,   0,   0,   0,   0,   0,   0,   /* stripe count, reserved */
	};
	static const uint8_t last[] = {
		0,   0, 0, 0, 0, 0, 0, 0, /* flags, reserved */
		0,   0, 2, 0, 0, 0, 0, 0, /* stored offset: 0x20000 */
		100, 0, 0, 0, 0, 0, 0, 0, /* stored bytes */
	};
	size_t bytes = 0;
	CLEANUP(free) uint8_t *data = good_data(&bytes);

	(void)state;
	assert_int_equal(bytes, 64 + 5 * 40 + 16);
	assert_memory_equal(data, head, sizeof(head));
	assert_memory_equal(data + 64 + (size_t)4 * 40 + 16, last, sizeof(last));
	assert_int_equal(data[64 + 40 + 16], STASIS_CHUNK_ZERO);
}

static void are_refused_when_cut_at_any_length(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) uint8_t *data = good_data(&bytes);

	(void)state;
	for (size_t length = 0; length < bytes; length++) {
		CLEANUP(free) uint8_t *cut = malloc(length + 1);

		assert_non_null(cut);
		memcpy(cut, data, length);
		data_refused(cut, length, "");
		if (length < stasis_image_sums_bytes(0))
			continue;
		/* Also with a checksum that fits what is left. */
		checksum_set(cut, length);
		data_refused(cut, length, "chunks do not fit");
	}
}

static void are_refused_when_any_bit_is_damaged(void **state)
{
	size_t bytes = 0;
	CLEANUP(free) uint8_t *data = good_data(&bytes);

	(void)state;
	for (size_t at = 0; at < bytes; at++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			data[at] = (uint8_t)(data[at] ^ (1u << bit));
			data_refused(data, bytes, "");
			data[at] = (uint8_t)(data[at] ^ (1u << bit));
		}
	}
}

/* One byte changed, with a checksum that fits. */
struct change {
	size_t offset;
	uint8_t value;
	const char *wanted;
};

static void each_wrong_field_is_named(void **state)
{
	static const struct change changes[] = {
		{0, 'X', "this is no sums file"},
		{8, 2, "has version 2, this stasis reads version 1"},
		{12, 65, "a header of 65 bytes"},
		{39, 0x80, "out of range"},
		{34, 8, "chunks do not fit"},
		{41, 1, "out of range"},
		{42, 0, "out of range"},
		{47, 0xff, "out of range"},
		{48, 4, "4 chunks do not fit"},
		{55, 0xff, "chunks do not fit"},
		{56, 0, "0 stripes are not 1 to 16"},
		{56, 17, "17 stripes are not 1 to 16"},
		{60, 1, "reserved bits are set in its header"},
		{63, 0x80, "reserved bits are set in its header"},
		{64 + 16, 3, "chunk 0: reserved bits are set"},
		{64 + 16, 6, "chunk 0: reserved bits are set"},
		{64 + 16, 8, "chunk 0: reserved bits are set"},
		{64 + 19, 0x80, "chunk 0: reserved bits are set"},
		{64 + 40 + 20, 1, "chunk 1: reserved bits are set"},
		{64 + 4 * 40 + 23, 0x80, "chunk 4: reserved bits are set"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
		size_t bytes = 0;
		CLEANUP(free) uint8_t *data = good_data(&bytes);

		data[changes[i].offset] = changes[i].value;
		checksum_set(data, bytes);
		data_refused(data, bytes, changes[i].wanted);
	}
}

/* One chunk changed: what its record says, against what the stripes are. */
struct layout_change {
	size_t index;
	uint32_t flags;
	uint64_t stored_offset;
	uint64_t stored_bytes;
	const char *wanted;
};

static void each_wrong_place_is_named(void **state)
{
	static const uint64_t whole = T_IMAGE_CHUNK_BYTES;
	const struct layout_change changes[] = {
		/* Zero flags flipped: the digest is then not that of zeros, or nothing is stored. */
		{0, STASIS_CHUNK_ZERO, 0, 0, "chunk 0 is flagged as zeros, but its digest is not"},
		{1, 0, 0, 0, "chunk 1 is not flagged as zeros, but stores 0 bytes"},
		{1, STASIS_CHUNK_ZERO, 0, whole, "chunk 1 is flagged as zeros and yet has stored"},
		{1, STASIS_CHUNK_ZERO, 4096, 0, "chunk 1 is flagged as zeros and yet has stored"},
		{0, STASIS_CHUNK_ZERO, 0, whole, "chunk 0 is flagged as zeros and yet has stored"},
		/* Ranges. */
		{0, 0, 0, whole - 1, "chunk 0 is not flagged as zeros, but stores 65535 bytes"},
		{0, 0, 0, whole + 1, "chunk 0 is not flagged as zeros, but stores 65537 bytes"},
		{4, 0, 2 * whole, whole, "chunk 4 is not flagged as zeros, but stores 65536 bytes"},
		{0, 0, 0, UINT64_MAX, "chunk 0 is not flagged as zeros, but stores"},
		{0, 0, 1, whole, "chunk 0 at offset 1 is not aligned"},
		{0, 0, 2 * whole, whole, "chunk 0 at offset 131072 is not aligned or lies beyond"},
		{0, 0, UINT64_MAX - 4095, whole, "is not aligned or lies beyond"},
		{3, 0, 4096, whole, "chunk 3 at offset 4096 is not aligned or lies beyond"},
		{2, 0, 0, whole, "chunk 2 at offset 0 of stripe 0 overlaps"},
		{2, 0, whole - 4096, whole, "chunk 2 at offset 61440 of stripe 0 overlaps"},
		{0, 0, 4096, whole, "chunk 0 at offset 4096 of stripe 0 leaves a gap"},
		/* Compressed. */
		{0, STASIS_CHUNK_LZ4, 0, whole, "chunk 0 is compressed, but stores 65536 bytes"},
		{0, STASIS_CHUNK_ZSTD, 0, 0, "chunk 0 is compressed, but stores 0 bytes"},
		{0, STASIS_CHUNK_ZSTD, 0, UINT64_MAX, "chunk 0 is compressed, but stores"},
		{4, STASIS_CHUNK_LZ4, 2 * whole, 100,
		 "chunk 4 is compressed, but stores 100 bytes"},
		{0, STASIS_CHUNK_LZ4, 0, whole - 4096, "leaves a gap behind the chunk before it"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
		CLEANUP(image_sums) struct stasis_image_sums sums = {0};
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_chunk *chunk;

		t_image_sums_make(&sums, &extent_id);
		chunk = &sums.chunks[changes[i].index];
		chunk->flags = changes[i].flags;
		chunk->stored_offset = changes[i].stored_offset;
		chunk->stored_bytes = changes[i].stored_bytes;
		if (stasis_image_sums_check("x", &sums, good_stripes, &err) == 0)
			fail_msg("accepted; wanted: %s", changes[i].wanted);
		if (err.status != STASIS_BAD_IMAGE || !strstr(err.text, changes[i].wanted))
			fail_msg("'%s' does not hold '%s'", err.text, changes[i].wanted);
	}
}

/* Chunk 0 in two blocks, and what follows it moved up. */
static void compressed_chunks_lie_closer(void **state)
{
	static const uint64_t stripes[STASIS_STRIPES_MAX] = {
		8192 + T_IMAGE_CHUNK_BYTES + STASIS_STORED_ALIGNMENT, T_IMAGE_CHUNK_BYTES};
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t ends[STASIS_STRIPES_MAX];

	(void)state;
	t_image_sums_make(&sums, &extent_id);
	sums.chunks[0].flags = STASIS_CHUNK_ZSTD;
	sums.chunks[0].stored_bytes = 4097;
	sums.chunks[2].stored_offset = 8192;
	sums.chunks[4].stored_offset = 8192 + T_IMAGE_CHUNK_BYTES;
	assert_done(stasis_image_sums_check("x", &sums, stripes, &err), &err);
	stasis_image_sums_stripe_ends(&sums, ends);
	assert_true(ends[0] == 8192 + T_IMAGE_CHUNK_BYTES + sums.chunks[4].stored_bytes);
}

static void stripes_must_end_with_their_chunks(void **state)
{
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	struct stasis_error longer = STASIS_ERROR_INIT;
	struct stasis_error done = STASIS_ERROR_INIT;
	uint64_t stripes[STASIS_STRIPES_MAX];

	(void)state;
	t_image_sums_make(&sums, &extent_id);
	memcpy(stripes, good_stripes, sizeof(stripes));
	stripes[1] += STASIS_STORED_ALIGNMENT;
	assert_refused(stasis_image_sums_check("x", &sums, stripes, &longer), &longer,
		       STASIS_BAD_IMAGE,
		       "the chunks of stripe 1 end at 65536, the stripe at 69632");
	/* The order in which chunks were written does not matter. */
	sums.chunks[0].stored_offset = T_IMAGE_CHUNK_BYTES + STASIS_STORED_ALIGNMENT;
	sums.chunks[2].stored_offset = STASIS_STORED_ALIGNMENT;
	sums.chunks[4].stored_offset = 0;
	assert_done(stasis_image_sums_check("x", &sums, good_stripes, &done), &done);
}

static void zeros_cannot_stand_in_for_other_zeros(void **state)
{
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	struct stasis_id other = {{1}};
	struct stasis_error err = STASIS_ERROR_INIT;
	static const uint8_t zeros[T_IMAGE_CHUNK_BYTES];

	(void)state;
	t_image_sums_make(&sums, &extent_id);
	sums.chunks[1].digest = stasis_digest_chunk(&other, 1, zeros, sizeof(zeros));
	assert_refused(stasis_image_sums_check("x", &sums, good_stripes, &err), &err,
		       STASIS_BAD_IMAGE, "its digest is not that of zeros");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	sums.chunks[1].digest = stasis_digest_chunk(&extent_id, 2, zeros, sizeof(zeros));
	assert_refused(stasis_image_sums_check("x", &sums, good_stripes, &err), &err,
		       STASIS_BAD_IMAGE, "its digest is not that of zeros");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_read_back_as_written),
		cmocka_unit_test(bytes_lie_where_the_format_says),
		cmocka_unit_test(are_refused_when_cut_at_any_length),
		cmocka_unit_test(are_refused_when_any_bit_is_damaged),
		cmocka_unit_test(each_wrong_field_is_named),
		cmocka_unit_test(each_wrong_place_is_named),
		cmocka_unit_test(compressed_chunks_lie_closer),
		cmocka_unit_test(stripes_must_end_with_their_chunks),
		cmocka_unit_test(zeros_cannot_stand_in_for_other_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
