/*
 * Description: no bytes make the decoder of control files do anything but accept or refuse them, and what
 * it accepts is encoded to the same bytes again.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stasis_wire_control control;
	static uint8_t bytes[STASIS_WIRE_CONTROL_BYTES];
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_wire_control_decode(data, size, &control, &err) != 0) {
		if (err.status != STASIS_REFUSED || !err.text[0])
			abort();
		return 0;
	}
	if (stasis_wire_control_encode(&control, bytes, &err) != 0 || size != sizeof(bytes) ||
	    memcmp(bytes, data, size) != 0)
		abort();
	return 0;
}
