#ifndef STASIS_BASE_ID_H
#define STASIS_BASE_ID_H

/*
 * 128-bit identities: random ones of our own, and GPU UUIDs in the form that NVIDIA's tools print,
 * "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx". Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

#define STASIS_ID_TEXT_BYTES 33   /* 32 hexadecimal digits and the end */
#define STASIS_UUID_TEXT_BYTES 41 /* "GPU-", 36 characters and the end */

struct stasis_id {
	uint8_t bytes[16];
};

NODISCARD int stasis_id_random(struct stasis_id *ret_id, struct stasis_error *err);
bool stasis_id_equal(const struct stasis_id *a, const struct stasis_id *b);

/* Lower-case hexadecimal digits; returns `text`. */
const char *stasis_id_format(const struct stasis_id *id, char text[STASIS_ID_TEXT_BYTES]);

/* False unless exactly 32 lower-case hexadecimal digits. */
NODISCARD bool stasis_id_parse(const char *text, struct stasis_id *ret_id);

const char *stasis_uuid_format(const struct stasis_id *uuid, char text[STASIS_UUID_TEXT_BYTES]);
NODISCARD bool stasis_uuid_parse(const char *text, struct stasis_id *ret_uuid);

#endif
