/*
 * Description: no text makes the decoder of shared.json do anything but accept or refuse it; one that it accepts is
 * written again, accepted again, and then written in the same way.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "group/shared.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text that was read; NULL: it was refused. The caller frees what it was written as. */
static char *read_and_written(const char *text, size_t bytes, size_t *ret_bytes)
{
	CLEANUP(topology) struct stasis_topology topology = {.members = NULL};
	CLEANUP(free) struct stasis_shared_place *places = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t place_count = 0;
	char *written = NULL;

	if (stasis_shared_decode(text, bytes, &topology, &places, &place_count, &err) != 0) {
		if (err.status != STASIS_BAD_IMAGE || !err.text[0])
			abort();
		return NULL;
	}
	if (stasis_shared_encode(&topology, places, place_count, &written, ret_bytes, NULL) != 0)
		abort();
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t first_bytes = 0;
	size_t second_bytes = 0;
	CLEANUP(free) char *first = read_and_written((const char *)data, size, &first_bytes);
	CLEANUP(free) char *second = NULL;

	if (!first)
		return 0;
	second = read_and_written(first, first_bytes, &second_bytes);
	if (!second || first_bytes != second_bytes || memcmp(first, second, first_bytes) != 0)
		abort();
	return 0;
}
