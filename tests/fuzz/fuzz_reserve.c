/*
 * Description: no text makes the decoder of a reserve's record do anything but accept or refuse it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "image/reserve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stasis_image_reserve_record record = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_image_reserve_record_decode((const char *)data, size, &record, &err) != 0) {
		if (err.status != STASIS_BAD_IMAGE || !err.text[0])
			abort();
		return 0;
	}
	if (record.file_count == 0 || record.file_count > STASIS_IMAGE_RESERVE_FILES_MAX ||
	    record.file_bytes == 0 || record.file_bytes % STASIS_STORED_ALIGNMENT != 0)
		abort();
	return 0;
}
