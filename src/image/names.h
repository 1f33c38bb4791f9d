#ifndef STASIS_IMAGE_NAMES_H
#define STASIS_IMAGE_NAMES_H

/*
 * Names of the files of an image, as paths below it. Internal to the image module.
 */

#include "base/chunk.h"
#include "image/manifest.h"

#define STASIS_IMAGE_MANIFEST_NAME "manifest.json"
#define STASIS_IMAGE_STAGED_NAME "manifest.partial.json" /* the temporary manifest */
#define STASIS_IMAGE_SHARED_NAME "shared.json"
#define STASIS_IMAGE_GPU_DIR_NAME "gpu"
#define STASIS_IMAGE_FILE_NAME_BYTES 64

/* Example: process 0, GPU 1, custom store. */
struct stasis_image_names {
	char extent[STASIS_IMAGE_FILE_NAME_BYTES]; /* "gpu/P0-D1-custom" */
	char sums[STASIS_IMAGE_FILE_NAME_BYTES];   /* "gpu/P0-D1-custom.sums" */
	char stripes[STASIS_STRIPES_MAX][STASIS_IMAGE_FILE_NAME_BYTES]; /* "gpu/P0-D1-custom.0" */
};

void stasis_image_names_fill(struct stasis_image_names *names,
			     const struct stasis_image_extent *extent);

/* The name inside the directory gpu. */
static inline const char *stasis_image_name_base(const char *name)
{
	return name + sizeof(STASIS_IMAGE_GPU_DIR_NAME);
}

#endif
