/*
 * Files and host memory of the benchmark; see bench.h.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "lib/bench.h"

/* A file without a name. O_TMPFILE where the file system has it, else a name that goes at once. */
static int file_make(const char *directory, int *ret_fd, struct stasis_error *err)
{
	char path[4352];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		(void)snprintf(path, sizeof(path), "%s/.stasis-bench-XXXXXX", directory);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			(void)unlink(path);
	}
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a file in '%.200s'", directory);
	*ret_fd = fd;
	return 0;
}

static int stripes_make(struct stasis_lib_bench_files *files, const char *directory,
			struct stasis_error *err)
{
	for (uint32_t i = 0; i < files->stripe_count; i++) {
		(void)snprintf(files->names[i], sizeof(files->names[i]), "%s stripe %u",
			       stasis_lib_bench_place_name(files->place), i);
		if (file_make(directory, &files->fds[i], err) != 0)
			return -1;
	}
	return 0;
}

/* Rows of what is resident would be rows of something else elsewhere. */
static int tmpfs_check(const char *directory, struct stasis_error *err)
{
	struct statfs info;

	if (statfs(directory, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "'%.200s'", directory);
	if (info.f_type != TMPFS_MAGIC)
		return stasis_fail(err, STASIS_REFUSED, "'%.200s' is not on a tmpfs", directory);
	return 0;
}

static int place_open(struct stasis_lib_bench *bench, struct stasis_lib_bench_files *files,
		      struct stasis_error *err)
{
	switch (files->place) {
	case STASIS_LIB_BENCH_MEMORY:
		return stasis_transfer_memory_open(
			stasis_transfer_reserve_bytes(files->bytes, files->chunk_bytes, 1, 0),
			&files->memory, err);
	case STASIS_LIB_BENCH_TMPFS:
		if (tmpfs_check(bench->options->tmpfs_dir, err) != 0)
			return -1;
		return stripes_make(files, bench->options->tmpfs_dir, err);
	case STASIS_LIB_BENCH_DISK:
		return stripes_make(files, bench->options->disk_dir, err);
	}
	return stasis_fail(err, STASIS_INTERNAL, "bench: no such place");
}

static int store_settle(struct stasis_lib_bench_files *files,
			const struct stasis_lib_bench_row *row, struct stasis_error *err)
{
	enum stasis_transfer_store store = row->store;

	files->is_direct = false;
	if (files->place == STASIS_LIB_BENCH_MEMORY)
		return 0;
	if (store == STASIS_TRANSFER_STORE_AUTO &&
	    stasis_transfer_store_detect(files->fds[0], files->names[0], &store, err) != 0)
		return -1;
	files->is_direct = store == STASIS_TRANSFER_STORE_DIRECT;
	return 0;
}

int stasis_lib_bench_files_get(struct stasis_lib_bench *bench,
			       const struct stasis_lib_bench_row *row, struct stasis_error *err)
{
	struct stasis_lib_bench_files *files = &bench->files;
	uint64_t chunk_bytes = row->chunk_bytes ? row->chunk_bytes : STASIS_CHUNK_BYTES_DEFAULT;
	uint32_t stripe_count = row->place == STASIS_LIB_BENCH_MEMORY ? 1
				: row->stripes
					? row->stripes
					: stasis_transfer_stripe_count(row->bytes, chunk_bytes);

	if (!files->is_open || files->place != row->place || files->bytes != row->bytes ||
	    files->chunk_bytes != chunk_bytes || files->stripe_count != stripe_count) {
		/* What is resident is let go first: there may not be room for both. */
		stasis_lib_bench_files_close(files);
		files->is_open = true;
		files->place = row->place;
		files->bytes = row->bytes;
		files->chunk_bytes = chunk_bytes;
		files->stripe_count = stripe_count;
		files->chunks = calloc((size_t)stasis_chunk_count(row->bytes, chunk_bytes),
				       sizeof(*files->chunks));
		if (!files->chunks)
			return stasis_fail_errno(err, STASIS_REFUSED, "make a chunk table");
		if (place_open(bench, files, err) != 0)
			return -1;
	}
	return store_settle(files, row, err);
}

void stasis_lib_bench_files_unmap(struct stasis_lib_bench_files *files)
{
	for (uint32_t i = 0; i < STASIS_STRIPES_MAX; i++) {
		if (files->maps[i])
			(void)munmap(files->maps[i], (size_t)files->map_bytes[i]);
		files->maps[i] = NULL;
	}
}

int stasis_lib_bench_files_map(struct stasis_lib_bench_files *files, struct stasis_error *err)
{
	for (uint32_t i = 0; i < files->stripe_count; i++) {
		uint64_t bytes = stasis_transfer_reserve_bytes(files->bytes, files->chunk_bytes,
							       files->stripe_count, i);
		int code = stasis_file_map(files->fds[i], bytes, &files->maps[i]);

		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code, "map '%s'",
						files->names[i]);
		files->map_bytes[i] = bytes;
	}
	return 0;
}

void stasis_lib_bench_files_close(struct stasis_lib_bench_files *files)
{
	if (files->is_open)
		stasis_lib_bench_files_unmap(files);
	for (uint32_t i = 0; files->is_open && i < STASIS_STRIPES_MAX; i++)
		cleanup_fd(&files->fds[i]);
	if (files->is_open)
		stasis_transfer_memory_close(&files->memory);
	free(files->chunks);
	*files = (struct stasis_lib_bench_files){.memory = STASIS_TRANSFER_MEMORY_EMPTY};
	for (uint32_t i = 0; i < STASIS_STRIPES_MAX; i++)
		files->fds[i] = -1;
}

int stasis_lib_bench_files_chill(const struct stasis_lib_bench_files *files,
				 struct stasis_error *err)
{
	if (files->place != STASIS_LIB_BENCH_DISK)
		return 0;
	for (uint32_t i = 0; i < files->stripe_count; i++) {
		int code;

		if (fdatasync(files->fds[i]) != 0)
			return stasis_fail_errno(err, STASIS_REFUSED, "fdatasync '%s'",
						 files->names[i]);
		code = posix_fadvise(files->fds[i], 0, 0, POSIX_FADV_DONTNEED);
		if (code)
			return stasis_fail_code(err, STASIS_REFUSED, code, "fadvise '%s'",
						files->names[i]);
	}
	return 0;
}

struct stasis_transfer_extent
stasis_lib_bench_files_extent(const struct stasis_lib_bench_files *files,
			      enum stasis_transfer_direction direction)
{
	struct stasis_transfer_extent extent = {
		.direction = direction,
		.name = stasis_lib_bench_place_name(files->place),
		.bytes = files->bytes,
		.chunk_bytes = files->chunk_bytes,
		.stripe_count = files->stripe_count,
		.chunks = files->chunks,
	};

	if (files->place == STASIS_LIB_BENCH_MEMORY)
		extent.memory = &files->memory;
	for (uint32_t i = 0; i < files->stripe_count; i++) {
		extent.stripe_fds[i] = files->fds[i];
		extent.stripe_names[i] = files->names[i];
		extent.stripe_maps[i] = files->maps[i];
		extent.stripe_map_bytes[i] = files->map_bytes[i];
	}
	return extent;
}
