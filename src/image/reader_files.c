/*
 * The files of an image: each is opened once, checked through its descriptor, and kept open, so that what
 * was checked is what is read. See reader.h.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "image/fields.h"
#include "image/owner.h"
#include "image/reader.h"
#include "image/sums.h"

int stasis_image_access_check(const struct stasis_image *image, int fd, const char *name,
			      struct stasis_error *err)
{
	struct stat info;

	if (fstat(fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_BAD_IMAGE, "stat '%s'", name);
	if (image->options.is_trusted)
		return 0;
	if (info.st_uid != geteuid() && info.st_uid != 0)
		return stasis_fail(
			err, STASIS_BAD_IMAGE,
			"'%s' belongs to user %u, and an image is code: it must be yours "
			"or root's; --trust accepts it as it is",
			name, info.st_uid);
	if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return stasis_fail(
			err, STASIS_BAD_IMAGE,
			"'%s' can be written by others (mode %04o), and an image is code: "
			"chmod go-w it once you know what it holds; --trust accepts it as "
			"it is",
			name, info.st_mode & 07777);
	return 0;
}

int stasis_image_file_open(const struct stasis_image *image, const char *name, int *ret_fd,
			   uint64_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	uint64_t bytes = 0;
	int code = stasis_fault_point("image_read_open");

	if (code)
		return stasis_fail_code(err, STASIS_BAD_IMAGE, code, "open '%s'", name);
	if (stasis_file_open_regular(image->dir_fd, name, STASIS_BAD_IMAGE, &fd, &bytes, err) !=
		    0 ||
	    stasis_image_access_check(image, fd, name, err) != 0)
		return -1;
	*ret_bytes = bytes;
	*ret_fd = fd_steal(&fd);
	return 0;
}

int stasis_image_file_load(const struct stasis_image *image, const char *name, uint64_t max_bytes,
			   char **ret_data, size_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(free) char *data = NULL;
	CLEANUP(fd) int fd = -1;
	uint64_t bytes = 0;
	int code;

	if (stasis_image_file_open(image, name, &fd, &bytes, err) != 0)
		return -1;
	if (bytes > max_bytes)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "'%s' has %llu bytes, more than the %llu allowed", name,
				   (unsigned long long)bytes, (unsigned long long)max_bytes);
	data = malloc(bytes + 1);
	if (!data)
		return stasis_fail_errno(err, STASIS_REFUSED, "read '%s'", name);
	code = stasis_pread_all(fd, data, bytes, 0, "image_read");
	if (code)
		return stasis_fail_code(err, STASIS_BAD_IMAGE, code, "read '%s'", name);
	data[bytes] = '\0';
	*ret_data = ptr_steal(&data);
	*ret_bytes = bytes;
	return 0;
}

static int size_check(const char *name, uint64_t bytes, uint64_t wanted, struct stasis_error *err)
{
	if (bytes == wanted)
		return 0;
	return stasis_fail(err, STASIS_BAD_IMAGE, "'%s' has %llu bytes, %llu too %s: it needs %llu",
			   name, (unsigned long long)bytes,
			   (unsigned long long)(bytes < wanted ? wanted - bytes : bytes - wanted),
			   bytes < wanted ? "few" : "many", (unsigned long long)wanted);
}

static int digest_check(const char *name, const struct stasis_digest *found,
			const struct stasis_digest *wanted, struct stasis_error *err)
{
	if (stasis_digest_equal(found, wanted))
		return 0;
	return stasis_fail(err, STASIS_BAD_IMAGE,
			   "'%s' does not have the digest that the manifest gives: the file was "
			   "damaged or changed",
			   name);
}

static int stripes_open(const struct stasis_image *image, struct stasis_image_opened *input,
			const struct stasis_image_extent *extent, struct stasis_error *err)
{
	for (uint32_t s = 0; s < extent->stripe_count; s++) {
		const char *name = input->names.stripes[s];
		uint64_t bytes = 0;

		if (stasis_image_file_open(image, name, &input->public.stripe_fds[s], &bytes,
					   err) != 0 ||
		    size_check(name, bytes, extent->stripe_bytes[s], err) != 0)
			return -1;
	}
	return 0;
}

static bool sums_belong(const struct stasis_image_sums *sums,
			const struct stasis_image_extent *extent)
{
	return stasis_id_equal(&sums->extent_id, &extent->id) &&
	       sums->logical_bytes == extent->logical_bytes &&
	       sums->chunk_bytes == extent->chunk_bytes &&
	       sums->stripe_count == extent->stripe_count;
}

static int sums_open(const struct stasis_image *image, struct stasis_image_opened *input,
		     const struct stasis_image_extent *extent, struct stasis_error *err)
{
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};
	CLEANUP(free) char *data = NULL;
	const char *name = input->names.sums;
	struct stasis_digest digest;
	size_t bytes = 0;

	if (stasis_image_file_load(image, name, stasis_image_sums_bytes(STASIS_IMAGE_CHUNKS_MAX),
				   &data, &bytes, err) != 0 ||
	    size_check(name, bytes, extent->sums_bytes, err) != 0)
		return -1;
	digest = stasis_digest_of(data, bytes);
	if (digest_check(name, &digest, &extent->sums_digest, err) != 0 ||
	    stasis_image_sums_decode(name, (const uint8_t *)data, bytes, &sums, err) != 0)
		return -1;
	if (!sums_belong(&sums, extent))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "'%s' is of another extent than the manifest says", name);
	if (stasis_image_sums_check(name, &sums, extent->stripe_bytes, err) != 0)
		return -1;
	input->public.chunk_count = sums.chunk_count;
	input->public.chunks = sums.chunks;
	input->chunks = ptr_steal(&sums.chunks);
	return 0;
}

static void input_init(struct stasis_image_opened *input, const struct stasis_image_extent *extent)
{
	stasis_image_names_fill(&input->names, extent);
	input->public.extent = extent;
	input->public.name = input->names.extent;
	for (size_t s = 0; s < STASIS_STRIPES_MAX; s++) {
		input->public.stripe_fds[s] = -1;
		input->public.stripe_names[s] = input->names.stripes[s];
	}
}

static int gpu_dir_check(const struct stasis_image *image, struct stasis_error *err)
{
	CLEANUP(fd)
	int fd = openat(image->dir_fd, STASIS_IMAGE_GPU_DIR_NAME,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return stasis_fail_errno(err, STASIS_BAD_IMAGE, "open the directory '%s'",
					 STASIS_IMAGE_GPU_DIR_NAME);
	return stasis_image_access_check(image, fd, STASIS_IMAGE_GPU_DIR_NAME, err);
}

int stasis_image_inputs_open(struct stasis_image *image, struct stasis_error *err)
{
	const struct stasis_image_manifest *manifest = &image->manifest;

	if (manifest->extent_count == 0)
		return 0;
	if (gpu_dir_check(image, err) != 0)
		return -1;
	image->inputs = calloc(manifest->extent_count, sizeof(*image->inputs));
	if (!image->inputs)
		return stasis_fail_errno(err, STASIS_REFUSED, "open %zu extents",
					 manifest->extent_count);
	/* All are empty before the first can fail: close goes through all of them. */
	for (size_t i = 0; i < manifest->extent_count; i++)
		input_init(&image->inputs[i], &manifest->extents[i]);
	for (size_t i = 0; i < manifest->extent_count; i++) {
		if (stripes_open(image, &image->inputs[i], &manifest->extents[i], err) != 0 ||
		    sums_open(image, &image->inputs[i], &manifest->extents[i], err) != 0)
			return -1;
	}
	return 0;
}

int stasis_image_shared_open(struct stasis_image *image, struct stasis_error *err)
{
	const struct stasis_image_shared_file *wanted = &image->manifest.shared;
	struct stasis_digest digest;
	size_t bytes = 0;

	if (wanted->bytes == 0)
		return 0;
	if (stasis_image_file_load(image, STASIS_IMAGE_SHARED_NAME, STASIS_IMAGE_SHARED_BYTES_MAX,
				   &image->shared, &bytes, err) != 0 ||
	    size_check(STASIS_IMAGE_SHARED_NAME, bytes, wanted->bytes, err) != 0)
		return -1;
	digest = stasis_digest_of(image->shared, bytes);
	return digest_check(STASIS_IMAGE_SHARED_NAME, &digest, &wanted->digest, err);
}

/* Whether a name may stand in a directory of the image. */
typedef bool name_filter(const struct stasis_image *image, const char *name);

static bool top_name_is_known(const struct stasis_image *image, const char *name)
{
	if (strcmp(name, STASIS_IMAGE_MANIFEST_NAME) == 0 ||
	    strcmp(name, STASIS_IMAGE_OWNER_NAME) == 0)
		return true;
	if (strcmp(name, STASIS_IMAGE_GPU_DIR_NAME) == 0)
		return image->manifest.extent_count > 0;
	if (strcmp(name, STASIS_IMAGE_SHARED_NAME) == 0)
		return image->manifest.shared.bytes > 0;
	/* A partial may hold the temporary manifest, and files that a kill kept from being renamed. */
	return image->is_partial && (strcmp(name, STASIS_IMAGE_STAGED_NAME) == 0 || name[0] == '.');
}

static bool gpu_name_is_known(const struct stasis_image *image, const char *name)
{
	for (size_t i = 0; i < image->manifest.extent_count; i++) {
		const struct stasis_image_names *names = &image->inputs[i].names;

		if (strcmp(name, stasis_image_name_base(names->sums)) == 0)
			return true;
		for (uint32_t s = 0; s < image->manifest.extents[i].stripe_count; s++) {
			if (strcmp(name, stasis_image_name_base(names->stripes[s])) == 0)
				return true;
		}
	}
	return false;
}

static int directory_list(const struct stasis_image *image, const char *directory,
			  name_filter *is_known, struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = NULL;
	int fd = openat(image->dir_fd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;

	if (fd >= 0)
		dir = fdopendir(fd);
	if (!dir) {
		cleanup_fd(&fd);
		return stasis_fail_errno(err, STASIS_BAD_IMAGE, "list '%s'", directory);
	}
	while ((entry = stasis_dir_next(dir)) != NULL) {
		if (!is_known(image, entry->d_name))
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "'%s/%s' does not belong to the image", directory,
					   stasis_image_text_clean(entry->d_name));
	}
	if (errno != 0)
		return stasis_fail_errno(err, STASIS_BAD_IMAGE, "list '%s'", directory);
	return 0;
}

int stasis_image_listing_check(const struct stasis_image *image, struct stasis_error *err)
{
	if (directory_list(image, ".", top_name_is_known, err) != 0)
		return -1;
	if (image->manifest.extent_count == 0)
		return 0;
	return directory_list(image, STASIS_IMAGE_GPU_DIR_NAME, gpu_name_is_known, err);
}
