#ifndef STASIS_IMAGE_TAKEOVER_H
#define STASIS_IMAGE_TAKEOVER_H

/*
 * A reserve in the hands of a writer. Internal to the image module.
 */

#include <stdbool.h>
#include <stdint.h>

#include "image/writer.h"

/*
 * The next file, renamed to `name` in the writer's directory gpu and now the caller's with its mapping; false:
 * there is none left.
 */
NODISCARD bool stasis_image_takeover_next(struct stasis_image_writer *writer, const char *name,
					  struct stasis_image_reserve_file *ret_file);

/*
 * Takes the stripes of a capture that is given up back into the reserve, as far as they are still as they were
 * found. What they hold is the next capture's to overwrite.
 */
void stasis_image_takeover_return(struct stasis_image_writer *writer);

/* Gives back what is left, so that the next capture finds it; without a takeover it does nothing. */
void stasis_image_takeover_end(struct stasis_image_writer *writer);

#endif
