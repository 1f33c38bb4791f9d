/*
 * Description: no bytes make the decoder of tickets do anything but accept or refuse them, and what it
 * accepts is encoded to the same bytes again.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/ticket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stasis_wire_ticket ticket = {0};
	uint8_t bytes[STASIS_WIRE_TICKET_BYTES];
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_wire_ticket_decode(data, size, &ticket, &err) != 0) {
		if (err.status != STASIS_REFUSED || !err.text[0])
			abort();
		return 0;
	}
	if (stasis_wire_ticket_encode(&ticket, bytes, &err) != 0 || size != sizeof(bytes) ||
	    memcmp(bytes, data, size) != 0)
		abort();
	return 0;
}
