#ifndef STASIS_IMAGE_READER_H
#define STASIS_IMAGE_READER_H

/*
 * The inside of an open image, shared by the files of the reader. Internal to the image module.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "image/names.h"

/* The files of one extent; `public` is what the caller gets. */
struct stasis_image_opened {
	struct stasis_image_input public;
	struct stasis_image_names names;
	struct stasis_chunk *chunks;
};

struct stasis_image {
	char *path;
	struct stasis_image_open_options options;
	bool is_partial; /* the directory has the name of one */
	int dir_fd;
	struct stasis_image_manifest manifest;
	struct stasis_image_opened *inputs; /* one for each extent */
	char *shared;                       /* the text of shared.json; NULL: there is none */
};

/* An image is code: what is open as `fd` must be the caller's or root's, and writable by nobody else. */
NODISCARD int stasis_image_access_check(const struct stasis_image *image, int fd, const char *name,
					struct stasis_error *err);

/* Opens a file below the image; refuses all but a regular file that passes the access check. */
NODISCARD int stasis_image_file_open(const struct stasis_image *image, const char *name,
				     int *ret_fd, uint64_t *ret_bytes, struct stasis_error *err);

/* The same, read whole, with a NUL behind it; the caller frees *ret_data. */
NODISCARD int stasis_image_file_load(const struct stasis_image *image, const char *name,
				     uint64_t max_bytes, char **ret_data, size_t *ret_bytes,
				     struct stasis_error *err);

/* Opens and checks stripes and sums of every extent. */
NODISCARD int stasis_image_inputs_open(struct stasis_image *image, struct stasis_error *err);

/* Reads and checks shared.json, where the manifest names it. */
NODISCARD int stasis_image_shared_open(struct stasis_image *image, struct stasis_error *err);

/* Refuses any name that is not of this image, in its directory and in gpu. */
NODISCARD int stasis_image_listing_check(const struct stasis_image *image,
					 struct stasis_error *err);

#endif
