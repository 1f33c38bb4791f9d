/*
 * See damage.h.
 */

#include "lib/damage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "lib/roundtrip.h"
#include "transfer/codec.h"
#include "workload/pattern.h"

/* A needle may lie across two chunks, where it is not found: then another one is looked for. */
#define NEEDLES 8
#define DAMAGED_BYTE (STASIS_LIB_NEEDLE_BYTES / 2) /* of the needle */

static int file_open(struct stasis_lib_damage *damage, int *ret_fd, uint64_t *ret_bytes,
		     struct stasis_error *err)
{
	struct stat info;

	*ret_fd = open(damage->file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (*ret_fd < 0 || fstat(*ret_fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open '%s' to damage it",
					 damage->file);
	*ret_bytes = (uint64_t)info.st_size;
	return 0;
}

static void file_name(const struct stasis_image *image, const struct stasis_image_input *input,
		      uint64_t stripe, struct stasis_lib_damage *damage)
{
	(void)snprintf(damage->name, sizeof(damage->name), "%s.%" PRIu64, input->name, stripe);
	(void)snprintf(damage->file, sizeof(damage->file), "%s/%s", stasis_image_path(image),
		       damage->name);
}

/* Sizes must be what the damage says: a case that damages nothing would prove nothing. */
static int size_check(struct stasis_lib_damage *damage, uint64_t expected, struct stasis_error *err)
{
	struct stat info;

	if (stat(damage->file, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "stat '%s'", damage->file);
	if ((uint64_t)info.st_size != expected)
		return stasis_fail(err, STASIS_INTERNAL,
				   "'%s' has %" PRIu64 " bytes after the damage, not %" PRIu64,
				   damage->file, (uint64_t)info.st_size, expected);
	return 0;
}

/* The first stripe that has bytes at all. */
static int stripe_choose(const struct stasis_image *image, struct stasis_lib_damage *damage,
			 struct stasis_error *err)
{
	size_t count = stasis_image_manifest(image)->extent_count;

	for (size_t i = 0; i < count; i++) {
		const struct stasis_image_input *input = stasis_image_input(image, i);

		for (uint32_t stripe = 0; stripe < input->extent->stripe_count; stripe++) {
			if (input->extent->stripe_bytes[stripe] == 0)
				continue;
			damage->extent_index = i;
			damage->file_bytes = input->extent->stripe_bytes[stripe];
			file_name(image, input, stripe, damage);
			return 0;
		}
	}
	return stasis_fail(err, STASIS_REFUSED, "image '%s' has no file that holds bytes",
			   stasis_image_path(image));
}

int stasis_lib_damage_truncate(const struct stasis_image *image,
			       struct stasis_lib_damage *ret_damage, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	uint64_t bytes = 0;
	int code;

	if (stripe_choose(image, ret_damage, err) != 0 ||
	    file_open(ret_damage, &fd, &bytes, err) != 0)
		return -1;
	ret_damage->offset = bytes - 1;
	code = stasis_pread_all(fd, &ret_damage->original, 1, ret_damage->offset, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "read '%s'", ret_damage->file);
	ret_damage->is_done = true;
	if (ftruncate(fd, (off_t)ret_damage->offset) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "truncate '%s'", ret_damage->file);
	return size_check(ret_damage, ret_damage->file_bytes - 1, err);
}

static uint64_t chunk_bytes_of(const struct stasis_image_extent *extent, uint64_t index)
{
	return stasis_chunk_bytes(extent->logical_bytes, extent->chunk_bytes, index);
}

struct search {
	const struct stasis_image *image;
	unsigned char needle[STASIS_LIB_NEEDLE_BYTES];
	uint64_t workload_offset;
	unsigned char *buffer; /* a chunk */
	struct stasis_transfer_packing packing;
};

/* Into the packing's buffer, and unpacked into the search's. */
static int packed_read(struct search *search, const struct stasis_image_input *input,
		       uint64_t index, struct stasis_error *err)
{
	const struct stasis_image_extent *extent = input->extent;
	const struct stasis_chunk *chunk = &input->chunks[index];
	uint64_t stripe = index % extent->stripe_count;
	const char *name = NULL;
	int code = 0;

	if (search->packing.buffer_bytes < extent->chunk_bytes) {
		stasis_transfer_packing_fini(&search->packing);
		code = stasis_transfer_packing_init(&search->packing, (size_t)extent->chunk_bytes);
	}
	if (!code)
		code = stasis_pread_all(input->stripe_fds[stripe], search->packing.buffer,
					(size_t)chunk->stored_bytes, chunk->stored_offset, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_BAD_IMAGE, code, "read '%s.%" PRIu64 "'",
					input->name, stripe);
	if (!stasis_transfer_unpack(&search->packing, chunk, search->buffer,
				    (size_t)chunk_bytes_of(extent, index), &name))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "'%s.%" PRIu64 "': chunk %" PRIu64 " does not unpack",
				   input->name, stripe, index);
	return 0;
}

/* Which of the packed bytes to change: one without which the chunk is another. */
static uint64_t packed_spot(struct search *search, const struct stasis_chunk *chunk, size_t bytes)
{
	CLEANUP(free) unsigned char *changed = malloc(bytes);
	const char *name = NULL;

	for (uint64_t i = chunk->stored_bytes / 2; changed && i < chunk->stored_bytes; i++) {
		uint8_t *byte = &search->packing.buffer[i];
		bool is_other;

		*byte = (uint8_t) ~*byte;
		is_other =
			!stasis_transfer_unpack(&search->packing, chunk, changed, bytes, &name) ||
			memcmp(changed, search->buffer, bytes) != 0;
		*byte = (uint8_t) ~*byte;
		if (is_other)
			return i;
	}
	return chunk->stored_bytes / 2;
}

static int chunk_read(struct search *search, const struct stasis_image_input *input, uint64_t index,
		      struct stasis_error *err)
{
	const struct stasis_chunk *chunk = &input->chunks[index];
	uint64_t stripe = index % input->extent->stripe_count;
	int code;

	if (stasis_chunk_is_packed(chunk))
		return packed_read(search, input, index, err);
	code = stasis_pread_all(input->stripe_fds[stripe], search->buffer,
				(size_t)chunk->stored_bytes, chunk->stored_offset, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_BAD_IMAGE, code, "read '%s.%" PRIu64 "'",
					input->name, stripe);
	return 0;
}

/* Looks in one chunk. *ret_offset, of the byte to be changed, is within what is stored of it. */
static int chunk_search(struct search *search, const struct stasis_image_input *input,
			uint64_t index, bool *ret_is_found, uint64_t *ret_offset,
			struct stasis_error *err)
{
	const struct stasis_chunk *chunk = &input->chunks[index];
	size_t bytes = (size_t)chunk_bytes_of(input->extent, index);
	const unsigned char *hit;

	if (chunk->flags & STASIS_CHUNK_ZERO)
		return 0;
	if (chunk_read(search, input, index, err) != 0)
		return -1;
	hit = memmem(search->buffer, bytes, search->needle, sizeof(search->needle));
	if (!hit)
		return 0;
	*ret_is_found = true;
	*ret_offset = stasis_chunk_is_packed(chunk)
			      ? packed_spot(search, chunk, bytes)
			      : (uint64_t)(hit - search->buffer) + DAMAGED_BYTE;
	return 0;
}

static int extent_search(struct search *search, size_t extent_index,
			 struct stasis_lib_damage *damage, bool *ret_is_found,
			 struct stasis_error *err)
{
	const struct stasis_image_input *input = stasis_image_input(search->image, extent_index);

	for (uint64_t i = 0; i < input->chunk_count; i++) {
		uint64_t offset = 0;

		if (chunk_search(search, input, i, ret_is_found, &offset, err) != 0)
			return -1;
		if (!*ret_is_found)
			continue;
		damage->extent_index = extent_index;
		damage->chunk_index = i;
		damage->chunk_offset = input->chunks[i].stored_offset;
		damage->offset = damage->chunk_offset + offset;
		damage->workload_offset = search->workload_offset + DAMAGED_BYTE;
		file_name(search->image, input, i % input->extent->stripe_count, damage);
		return 0;
	}
	return 0;
}

static int needle_search(struct search *search, struct stasis_lib_damage *damage,
			 bool *ret_is_found, struct stasis_error *err)
{
	size_t count = stasis_image_manifest(search->image)->extent_count;

	for (size_t i = 0; i < count && !*ret_is_found; i++) {
		if (extent_search(search, i, damage, ret_is_found, err) != 0)
			return -1;
	}
	return 0;
}

/* Finds a place in the image that holds known bytes of the workload. */
static int place_find_by(struct search *search, uint64_t seed, uint64_t workload_bytes,
			 struct stasis_lib_damage *damage, struct stasis_error *err)
{
	bool is_found = false;

	for (uint64_t i = 0; i < NEEDLES && !is_found; i++) {
		/* Spread over the memory, none of them at its very start. */
		uint64_t spread = (workload_bytes - STASIS_LIB_NEEDLE_BYTES) / NEEDLES;

		search->workload_offset = (i * spread + spread / 3) / 8 * 8;
		stasis_workload_pattern_fill(seed, search->workload_offset, search->needle,
					     sizeof(search->needle));
		if (needle_search(search, damage, &is_found, err) != 0)
			return -1;
	}
	if (!is_found)
		return stasis_fail(err, STASIS_REFUSED,
				   "the workload's bytes are nowhere in image '%s'",
				   stasis_image_path(search->image));
	return 0;
}

static int place_find(const struct stasis_image *image, uint64_t seed, uint64_t workload_bytes,
		      struct stasis_lib_damage *damage, struct stasis_error *err)
{
	CLEANUP(free) unsigned char *buffer = malloc(STASIS_CHUNK_BYTES_MAX);
	struct search search = {.image = image, .buffer = buffer};
	int result;

	if (!buffer)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "search the image");
	result = place_find_by(&search, seed, workload_bytes, damage, err);
	stasis_transfer_packing_fini(&search.packing);
	return result;
}

int stasis_lib_damage_corrupt(const struct stasis_image *image, uint64_t seed,
			      uint64_t workload_bytes, struct stasis_lib_damage *ret_damage,
			      struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	uint8_t changed;
	int code;

	if (place_find(image, seed, workload_bytes, ret_damage, err) != 0 ||
	    file_open(ret_damage, &fd, &ret_damage->file_bytes, err) != 0)
		return -1;
	code = stasis_pread_all(fd, &ret_damage->original, 1, ret_damage->offset, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "read '%s'", ret_damage->file);
	changed = (uint8_t)~ret_damage->original;
	ret_damage->is_done = true;
	code = stasis_pwrite_all(fd, &changed, 1, ret_damage->offset, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "change a byte of '%s'",
					ret_damage->file);
	return size_check(ret_damage, ret_damage->file_bytes, err);
}

int stasis_lib_damage_repair(struct stasis_lib_damage *damage, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	uint64_t bytes = 0;
	int code;

	if (!damage->is_done)
		return 0;
	if (file_open(damage, &fd, &bytes, err) != 0)
		return -1;
	code = stasis_pwrite_all(fd, &damage->original, 1, damage->offset, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "repair '%s'", damage->file);
	if (fdatasync(fd) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "repair '%s': fdatasync",
					 damage->file);
	damage->is_done = false;
	return size_check(damage, damage->file_bytes, err);
}
