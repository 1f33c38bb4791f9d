/*
 * The end of a capture: sealing of the extents, the temporary manifest, publication. See image.h.
 *
 * The owner record stays until the image is in its final place, so that at no moment a partial lies there
 * of which gc could not tell whose it is. Readers ignore one that a kill at the last moment has left.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/number.h"
#include "image/io.h"
#include "image/sums.h"
#include "image/takeover.h"
#include "image/writer.h"

#define MANIFEST_POINT "image_manifest_write"

/* The chunk array as sums; borrows the array. */
static struct stasis_image_sums sums_of(const struct stasis_image_output *output)
{
	return (struct stasis_image_sums){
		.extent_id = output->id,
		.logical_bytes = output->logical_bytes,
		.chunk_bytes = output->chunk_bytes,
		.chunk_count = output->chunk_count,
		.stripe_count = output->stripe_count,
		.chunks = output->chunks,
	};
}

/*
 * Brings a stripe to its exact size: whoever wrote it may have left it shorter by the padding of its last
 * chunk, or longer by what was allocated ahead. Starts its way to the disk, so that those of all stripes
 * run at once.
 */
static int stripe_trim(const struct stasis_image_slot *slot, uint32_t stripe, uint64_t end,
		       uint64_t bytes, struct stasis_error *err)
{
	int fd = slot->public.stripe_fds[stripe];
	struct stat info;
	int code;

	if (fstat(fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "stat '%s'",
					 slot->names.stripes[stripe]);
	if ((uint64_t)info.st_size < end)
		return stasis_fail(err, STASIS_REFUSED,
				   "'%s' has %llu bytes, its chunks say %llu: not all was written",
				   slot->names.stripes[stripe], (unsigned long long)info.st_size,
				   (unsigned long long)end);
	if ((uint64_t)info.st_size != bytes) {
		code = stasis_image_io_truncate(fd, bytes);
		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code, "set the size of '%s'",
						slot->names.stripes[stripe]);
	}
	/* Only a hint: fdatasync waits for it and reports what went wrong. */
	(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int extent_trim(const struct stasis_image_slot *slot, struct stasis_image_extent *extent,
		       struct stasis_error *err)
{
	const struct stasis_image_sums sums = sums_of(&slot->public);
	uint64_t ends[STASIS_STRIPES_MAX];

	stasis_image_sums_stripe_ends(&sums, ends);
	for (uint32_t s = 0; s < extent->stripe_count; s++)
		extent->stripe_bytes[s] = stasis_round_up(ends[s], STASIS_STORED_ALIGNMENT);
	if (stasis_image_sums_check(slot->names.extent, &sums, extent->stripe_bytes, err) != 0)
		return -1;
	extent->stored_bytes = 0;
	for (uint32_t s = 0; s < extent->stripe_count; s++) {
		if (stripe_trim(slot, s, ends[s], extent->stripe_bytes[s], err) != 0)
			return -1;
		extent->stored_bytes += extent->stripe_bytes[s];
	}
	return 0;
}

static int stripes_sync(const struct stasis_image_slot *slot, struct stasis_error *err)
{
	for (uint32_t s = 0; s < slot->public.stripe_count; s++) {
		int code = stasis_image_io_sync(slot->public.stripe_fds[s], "image_sync");

		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code, "fdatasync '%s'",
						slot->names.stripes[s]);
	}
	return 0;
}

static int sums_write(const struct stasis_image_writer *writer,
		      const struct stasis_image_slot *slot, struct stasis_image_extent *extent,
		      struct stasis_error *err)
{
	const struct stasis_image_sums sums = sums_of(&slot->public);
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(fd) int fd = -1;
	int code;

	if (stasis_image_sums_encode(&sums, &data, err) != 0)
		return -1;
	extent->sums_bytes = stasis_image_sums_bytes(sums.chunk_count);
	extent->sums_digest = stasis_digest_of(data, extent->sums_bytes);
	code = stasis_image_io_create(writer->gpu_fd, stasis_image_name_base(slot->names.sums),
				      &fd);
	if (!code)
		code = stasis_pwrite_all(fd, data, extent->sums_bytes, 0, "image_sums_write");
	if (!code)
		code = stasis_image_io_sync(fd, "image_sync");
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "write '%s'", slot->names.sums);
	return 0;
}

static int extents_seal(struct stasis_image_writer *writer, struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;

	for (size_t i = 0; i < manifest->extent_count; i++) {
		if (extent_trim(writer->slots[i], &manifest->extents[i], err) != 0)
			return -1;
	}
	for (size_t i = 0; i < manifest->extent_count; i++) {
		if (sums_write(writer, writer->slots[i], &manifest->extents[i], err) != 0 ||
		    stripes_sync(writer->slots[i], err) != 0)
			return -1;
	}
	if (writer->gpu_fd >= 0)
		return stasis_dir_sync(writer->gpu_fd, STASIS_IMAGE_GPU_DIR_NAME, err);
	return 0;
}

int stasis_image_writer_seal(struct stasis_image_writer *writer, struct stasis_error *err)
{
	struct stasis_error why = STASIS_ERROR_INIT;

	if (writer->is_failed || writer->is_sealed)
		return stasis_fail(err, STASIS_INTERNAL,
				   "image '%s' is sealed a second time, or after a failure",
				   writer->path);
	if (extents_seal(writer, &why) != 0) {
		writer->is_failed = true;
		/* Chunks that contradict each other make no image, but no image is bad yet. */
		if (why.status == STASIS_BAD_IMAGE)
			why.status = STASIS_REFUSED;
		stasis_error_context(&why, "partial image '%s'", writer->partial_path);
		stasis_error_take(err, &why);
		return -1;
	}
	writer->is_sealed = true;
	return 0;
}

int stasis_image_writer_shared_set(struct stasis_image_writer *writer, const char *text,
				   size_t bytes, struct stasis_error *err)
{
	int code = stasis_fault_point("image_shared_write");

	if (writer->is_sealed || writer->is_failed)
		return stasis_fail(err, STASIS_INTERNAL, "image '%s': '%s' is set after the seal",
				   writer->path, STASIS_IMAGE_SHARED_NAME);
	if (bytes == 0 || bytes > STASIS_IMAGE_SHARED_BYTES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "image '%s': '%s' would have %zu bytes, but must have 1 to %llu",
				   writer->path, STASIS_IMAGE_SHARED_NAME, bytes,
				   (unsigned long long)STASIS_IMAGE_SHARED_BYTES_MAX);
	/* Until it is done, nobody knows which text is there. */
	writer->is_failed = true;
	if (code && code != EINTR)
		return stasis_fail_code(err, STASIS_REFUSED, code, "write '%s/%s'",
					writer->partial_path, STASIS_IMAGE_SHARED_NAME);
	if (stasis_file_write_whole(writer->dir_fd, STASIS_IMAGE_SHARED_NAME, text, bytes, err) !=
	    0) {
		stasis_error_context(err, "partial image '%s'", writer->partial_path);
		return -1;
	}
	writer->is_failed = false;
	writer->manifest.shared.bytes = bytes;
	writer->manifest.shared.digest = stasis_digest_of(text, bytes);
	return 0;
}

static int manifest_write(const struct stasis_image_writer *writer, const char *name,
			  struct stasis_error *err)
{
	CLEANUP(free) char *text = NULL;
	size_t bytes = 0;
	int code;

	if (stasis_image_manifest_encode(&writer->manifest, &text, &bytes, err) != 0)
		return -1;
	code = stasis_fault_point(MANIFEST_POINT);
	if (code && code != EINTR)
		return stasis_fail_code(err, STASIS_REFUSED, code, "write '%s'", name);
	return stasis_file_write_whole(writer->dir_fd, name, text, bytes, err);
}

int stasis_image_writer_stage(struct stasis_image_writer *writer, struct stasis_error *err)
{
	if (!writer->is_sealed)
		return stasis_fail(err, STASIS_INTERNAL, "image '%s' is staged but not sealed",
				   writer->path);
	stasis_image_takeover_end(writer);
	if (manifest_write(writer, STASIS_IMAGE_STAGED_NAME, err) != 0) {
		stasis_error_context(err, "partial image '%s'", writer->partial_path);
		return -1;
	}
	writer->is_staged = true;
	return 0;
}

static int staged_remove(const struct stasis_image_writer *writer, struct stasis_error *err)
{
	if (unlinkat(writer->dir_fd, STASIS_IMAGE_STAGED_NAME, 0) != 0 && errno != ENOENT)
		return stasis_fail_errno(err, STASIS_REFUSED, "remove '%s'",
					 STASIS_IMAGE_STAGED_NAME);
	return stasis_dir_sync(writer->dir_fd, STASIS_IMAGE_MANIFEST_NAME, err);
}

static int partial_rename(const struct stasis_image_writer *writer, struct stasis_error *err)
{
	int code = stasis_fault_point("image_rename");

	if (code && code != EINTR)
		return stasis_fail_code(err, STASIS_REFUSED, code, "rename '%s' to '%s'",
					writer->partial_name, writer->name);
	return stasis_dir_rename_exclusive(writer->parent_fd, writer->partial_name,
					   writer->parent_fd, writer->name, err);
}

/* An image whose name may not last is taken back: there is an image, or there is none. */
static int parent_sync(const struct stasis_image_writer *writer, struct stasis_error *err)
{
	int code = stasis_image_io_sync(writer->parent_fd, "image_parent_sync");

	if (!code)
		return 0;
	(void)stasis_fail_code(err, STASIS_REFUSED, code, "fsync the directory of '%s'",
			       writer->path);
	if (stasis_dir_rename_exclusive(writer->parent_fd, writer->name, writer->parent_fd,
					writer->partial_name, NULL) != 0)
		stasis_error_append(err, "; the image is there, but may not outlast a crash");
	return -1;
}

int stasis_image_writer_publish(struct stasis_image_writer *writer, struct stasis_error *err)
{
	if (!writer->is_staged || writer->is_published)
		return stasis_fail(err, STASIS_INTERNAL,
				   "image '%s' is published without being staged, or twice",
				   writer->path);
	if (manifest_write(writer, STASIS_IMAGE_MANIFEST_NAME, err) != 0 ||
	    staged_remove(writer, err) != 0 || partial_rename(writer, err) != 0 ||
	    parent_sync(writer, err) != 0) {
		stasis_error_context(err, "publish image '%s'", writer->path);
		return -1;
	}
	writer->is_published = true;
	(void)unlinkat(writer->dir_fd, STASIS_IMAGE_OWNER_NAME, 0);
	return 0;
}
