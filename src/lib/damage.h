#ifndef STASIS_LIB_DAMAGE_H
#define STASIS_LIB_DAMAGE_H

/*
 * Damage that a round trip does to its own image, so that it can prove that damage is found: one byte less,
 * or one byte changed among those that are surely the workload's. Kept so that it can be undone. No CUDA.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "image/image.h"

struct stasis_lib_damage {
	bool is_done; /* and not repaired */
	char file[4400];
	char name[64];       /* within the image: "gpu/P0-D0-custom.0" */
	uint64_t offset;     /* in the file, of the byte that changed or is missing */
	uint8_t original;    /* that byte */
	uint64_t file_bytes; /* before the damage */
	size_t extent_index; /* the rest: corruption only */
	uint64_t chunk_index;
	uint64_t chunk_offset;    /* where the chunk begins in the file */
	uint64_t workload_offset; /* of the byte in the workload's memory */
};

/* Takes the last byte off a file of the image, and makes sure that it is gone. */
NODISCARD int stasis_lib_damage_truncate(const struct stasis_image *image,
					 struct stasis_lib_damage *ret_damage,
					 struct stasis_error *err);

/*
 * Looks for bytes of the workload's pattern in the image, changes one, and makes sure that the file's size
 * is as before.
 */
NODISCARD int stasis_lib_damage_corrupt(const struct stasis_image *image, uint64_t seed,
					uint64_t workload_bytes,
					struct stasis_lib_damage *ret_damage,
					struct stasis_error *err);

/* Puts the byte back. */
NODISCARD int stasis_lib_damage_repair(struct stasis_lib_damage *damage, struct stasis_error *err);

#endif
