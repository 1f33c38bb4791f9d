#ifndef STASIS_IMAGE_RESERVE_H
#define STASIS_IMAGE_RESERVE_H

/*
 * What making a reserve and taking one over have in common. Internal to the image module.
 *
 *     DIR/.stasis-reserve/   0700
 *         reserve.json       how many files there are, and of what size
 *         0, 1, …            0600, allocated
 *
 * It is made under the name of a partial, so that gc removes one that was never finished, and renamed when it
 * is whole. A capture takes it over by a rename into its partial: of two captures one finds it.
 */

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "image/image.h"

#define STASIS_IMAGE_RESERVE_NAME ".stasis-reserve"
#define STASIS_IMAGE_RESERVE_TAKEN_NAME ".reserve" /* inside a partial */
#define STASIS_IMAGE_RESERVE_RECORD_NAME "reserve.json"
#define STASIS_IMAGE_RESERVE_FILES_MAX 1024

struct stasis_image_reserve_record {
	uint32_t file_count;
	uint64_t file_bytes;
};

/* The caller frees *ret_text. */
NODISCARD int stasis_image_reserve_record_encode(const struct stasis_image_reserve_record *record,
						 char **ret_text, struct stasis_error *err);

/* Refuses with STASIS_BAD_IMAGE. */
NODISCARD int stasis_image_reserve_record_decode(const char *text, size_t bytes,
						 struct stasis_image_reserve_record *ret_record,
						 struct stasis_error *err);

/*
 * Judges the reserve in a directory; *ret_info says why it is not READY. Opened in *ret_fd, which the caller
 * closes, where there is one that can be opened, else -1.
 */
void stasis_image_reserve_judge(int parent_fd, struct stasis_image_reserve_info *ret_info,
				int *ret_fd);

#endif
