/*
 * The reader of images: opening and validation as a whole, and what it hands out. See image.h; the files
 * of the extents are in reader_files.c.
 */

#include "image/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "image/owner.h"

#define MANIFEST_BYTES_MAX (UINT64_C(16) << 20)

/* By the directory's real name, however the path led there; where /proc is missing, by the path. */
static bool has_partial_name(int dir_fd, const char *path)
{
	char link[64];
	char target[PATH_MAX + 1];
	const char *slash;
	ssize_t bytes;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	bytes = readlink(link, target, sizeof(target) - 1);
	if (bytes > 0) {
		target[bytes] = '\0';
		path = target;
	}
	slash = strrchr(path, '/');
	return stasis_image_partial_name_is(slash ? slash + 1 : path);
}

static int directory_open(struct stasis_image *image, struct stasis_error *err)
{
	image->dir_fd = open(image->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (image->dir_fd < 0 && errno == ENOTDIR)
		return stasis_fail(err, STASIS_BAD_IMAGE, "it is not a directory");
	if (image->dir_fd < 0)
		return stasis_fail_errno(err, STASIS_BAD_IMAGE, "open it");
	image->is_partial = has_partial_name(image->dir_fd, image->path);
	if (image->is_partial && !image->options.is_partial)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "it is the partial directory of a capture that did not end; "
				   "`stasis recover` or `stasis gc` deals with it");
	return stasis_image_access_check(image, image->dir_fd, "the directory", err);
}

static int manifest_load(struct stasis_image *image, const char *name, struct stasis_error *err)
{
	CLEANUP(free) char *text = NULL;
	size_t bytes = 0;

	if (stasis_image_file_load(image, name, MANIFEST_BYTES_MAX, &text, &bytes, err) != 0)
		return -1;
	return stasis_image_manifest_decode(text, bytes, &image->manifest, err);
}

static int manifest_open(struct stasis_image *image, struct stasis_error *err)
{
	bool is_staged = image->is_partial && faccessat(image->dir_fd, STASIS_IMAGE_MANIFEST_NAME,
							F_OK, AT_SYMLINK_NOFOLLOW) != 0;

	return manifest_load(
		image, is_staged ? STASIS_IMAGE_STAGED_NAME : STASIS_IMAGE_MANIFEST_NAME, err);
}

/* That we have no descriptors or memory left says nothing about the image. */
static void status_correct(struct stasis_error *why)
{
	if (why->os_errno == EMFILE || why->os_errno == ENFILE || why->os_errno == ENOMEM)
		why->status = STASIS_REFUSED;
}

int stasis_image_open(const char *path, const struct stasis_image_open_options *options,
		      struct stasis_image **ret_image, struct stasis_error *err)
{
	CLEANUP(image) struct stasis_image *image = calloc(1, sizeof(*image));
	struct stasis_error why = STASIS_ERROR_INIT;

	if (!image)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%.200s'", path);
	image->dir_fd = -1;
	if (options)
		image->options = *options;
	image->path = strdup(path);
	if (!image->path)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%.200s'", path);
	if (directory_open(image, &why) != 0 || manifest_open(image, &why) != 0 ||
	    stasis_image_inputs_open(image, &why) != 0 ||
	    stasis_image_shared_open(image, &why) != 0 ||
	    stasis_image_listing_check(image, &why) != 0) {
		status_correct(&why);
		stasis_error_context(&why, "image '%.200s'", path);
		stasis_error_take(err, &why);
		return -1;
	}
	*ret_image = ptr_steal(&image);
	return 0;
}

static void input_close(struct stasis_image_opened *input)
{
	for (size_t s = 0; s < STASIS_STRIPES_MAX; s++)
		cleanup_fd(&input->public.stripe_fds[s]);
	free(input->chunks);
}

void stasis_image_close(struct stasis_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; image->inputs && i < image->manifest.extent_count; i++)
		input_close(&image->inputs[i]);
	free(image->inputs);
	free(image->shared);
	cleanup_fd(&image->dir_fd);
	stasis_image_manifest_fini(&image->manifest);
	free(image->path);
	free(image);
}

const struct stasis_image_manifest *stasis_image_manifest(const struct stasis_image *image)
{
	return &image->manifest;
}

const char *stasis_image_path(const struct stasis_image *image)
{
	return image->path;
}

const char *stasis_image_shared(const struct stasis_image *image, size_t *ret_bytes)
{
	*ret_bytes = image->shared ? (size_t)image->manifest.shared.bytes : 0;
	return image->shared;
}

const struct stasis_image_input *stasis_image_input(const struct stasis_image *image, size_t index)
{
	return &image->inputs[index].public;
}
