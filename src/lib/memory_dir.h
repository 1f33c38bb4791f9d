#ifndef STASIS_LIB_MEMORY_DIR_H
#define STASIS_LIB_MEMORY_DIR_H

/*
 * The folder of images in memory: STASIS_MEMORY_DIR, else /dev/shm/stasis-UID, ours alone. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "lib/library.h"
#include "lib/places.h"

/* Makes the folder where it is missing. *ret_path: the image of this capture, in it. */
NODISCARD int stasis_lib_memory_image_path(const struct stasis_id *capture,
					   char ret_path[STASIS_LIB_PATH_BYTES],
					   struct stasis_error *err);

/* Whether an image lies in that folder, and so goes when it was resumed. */
bool stasis_lib_memory_image_is(const char *path);

/* Removes an image that lies there, and that nobody can come back from any more; any other one stays. */
void stasis_lib_memory_image_drop(const char *path, const struct stasis_lib_sink *sink);

/* Removes partials there that lost workers have left, and that no process could come back from. */
void stasis_lib_memory_partials_drop(const struct stasis_lib_sink *sink);

/* The image there that holds this process; "": none. */
void stasis_lib_memory_image_find(int32_t pid, char ret_path[STASIS_LIB_PATH_BYTES]);

#endif
