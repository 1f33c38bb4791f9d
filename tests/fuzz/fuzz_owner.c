/*
 * Description: no text makes the decoder of owner records, which decide what gc removes, do anything but
 * accept or refuse it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "image/owner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stasis_image_owner owner = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_image_owner_decode((const char *)data, size, &owner, &err) != 0) {
		if (err.status != STASIS_BAD_IMAGE || !err.text[0])
			abort();
		return 0;
	}
	if (!owner.boot_id[0] || owner.capturer.pid <= 0)
		abort();
	stasis_image_owner_fini(&owner);
	return 0;
}
