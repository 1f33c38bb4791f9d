/*
 * Description: no bytes make the decoder of messages do anything but accept or refuse them, and what it
 * accepts is encoded to the same bytes again.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stasis_wire_message message;
	static uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX];
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t byte_count = 0;

	if (stasis_wire_decode(data, size, &message, &err) != 0) {
		if (err.status != STASIS_REFUSED || !err.text[0])
			abort();
		return 0;
	}
	if (stasis_wire_encode(&message, bytes, &byte_count, &err) != 0 || byte_count != size ||
	    memcmp(bytes, data, size) != 0)
		abort();
	return 0;
}
