/*
 * Description: no text makes the decoder of manifests do anything but accept or refuse it; one that it
 * accepts is written again and accepted again.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void written_again(const struct stasis_image_manifest *manifest)
{
	CLEANUP(image_manifest) struct stasis_image_manifest again = {0};
	CLEANUP(free) char *text = NULL;
	size_t bytes = 0;

	if (stasis_image_manifest_encode(manifest, &text, &bytes, NULL) != 0 ||
	    stasis_image_manifest_decode(text, bytes, &again, NULL) != 0 ||
	    again.gpu_count != manifest->gpu_count ||
	    again.process_count != manifest->process_count ||
	    again.extent_count != manifest->extent_count ||
	    again.option_count != manifest->option_count ||
	    again.phase_count != manifest->phase_count ||
	    again.shared.bytes != manifest->shared.bytes)
		abort();
}

static void decode(const char *text, size_t bytes)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_image_manifest_decode(text, bytes, &manifest, &err) == 0)
		written_again(&manifest);
	else if (err.status != STASIS_BAD_IMAGE || !err.text[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free) char *text = malloc(size + 1);
	char digits[STASIS_DIGEST_TEXT_BYTES];
	struct stasis_digest digest;
	size_t offset = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	decode(text, size);
	/* Past the digest, which would stop every change at the door. */
	if (!stasis_image_manifest_digest(text, size, &offset, &digest))
		return 0;
	memcpy(text + offset, stasis_digest_format(&digest, digits), sizeof(digits) - 1);
	decode(text, size);
	return 0;
}
