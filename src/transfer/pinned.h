#ifndef STASIS_TRANSFER_PINNED_H
#define STASIS_TRANSFER_PINNED_H

/*
 * Pinned host memory of a ring. It lies on huge pages where the system gives them: then a processor that streams
 * through it looks up few translations, and a disk takes large requests. Whichever thread calls has the context
 * current.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "driver/driver.h"

struct stasis_transfer_pinned {
	uint8_t *base; /* NULL: empty */
	size_t bytes;
	bool is_registered; /* memory of ours; else the driver's */
};

/* On failure *ret_pinned is left alone. */
NODISCARD CUresult stasis_transfer_pinned_alloc(const struct stasis_driver *driver, size_t bytes,
						struct stasis_transfer_pinned *ret_pinned);

/* Accepts the empty value, and leaves it. On failure the memory stays pinned, and is not reused. */
CUresult stasis_transfer_pinned_free(const struct stasis_driver *driver,
				     struct stasis_transfer_pinned *pinned);

#endif
