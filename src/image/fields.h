#ifndef STASIS_IMAGE_FIELDS_H
#define STASIS_IMAGE_FIELDS_H

/*
 * JSON objects with a fixed set of fields, described by a table that serves writing and reading alike:
 * every field that is not optional must be there, no other may be, and each value is held to its bounds.
 * Used for all JSON that lies in an image. Any thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/compiler.h"
#include "base/error.h"

enum stasis_image_field_kind {
	STASIS_IMAGE_FIELD_TEXT, /* char[max + 1]: min to max bytes, no control characters */
	STASIS_IMAGE_FIELD_TEXT_OR_NULL, /* as above; null is the empty text */
	STASIS_IMAGE_FIELD_U8,           /* uint8_t: min to max, as all numbers but two */
	STASIS_IMAGE_FIELD_U16,          /* uint16_t */
	STASIS_IMAGE_FIELD_U32,          /* uint32_t */
	STASIS_IMAGE_FIELD_S32,          /* int32_t, not negative */
	STASIS_IMAGE_FIELD_SIGNED,       /* int32_t: any */
	STASIS_IMAGE_FIELD_U64,          /* uint64_t: max is below 2^63 */
	STASIS_IMAGE_FIELD_WIDE,         /* uint64_t: any; text "0x…" above 2^53, else a number */
	STASIS_IMAGE_FIELD_ADDRESS,      /* uint64_t: any; text "0x…" */
	STASIS_IMAGE_FIELD_NAME, /* uint32_t or an enum: min to max, each of which has a name */
	STASIS_IMAGE_FIELD_BIT,  /* the bit `max` of an uint32_t: true or false */
	STASIS_IMAGE_FIELD_ID,   /* struct stasis_id: 32 hexadecimal digits */
	STASIS_IMAGE_FIELD_ID_OR_NULL,   /* as above; null is all zeros */
	STASIS_IMAGE_FIELD_UUID,         /* struct stasis_id: "GPU-…" */
	STASIS_IMAGE_FIELD_UUID_OR_NULL, /* as above; null is all zeros */
	STASIS_IMAGE_FIELD_DIGEST,       /* struct stasis_digest: 32 hexadecimal digits */
	STASIS_IMAGE_FIELD_OTHER,        /* must be there; the caller writes and reads it */
	STASIS_IMAGE_FIELD_OPTIONAL,     /* may be there; the caller writes and reads it */
};

struct stasis_image_field {
	const char *name;
	enum stasis_image_field_kind kind;
	size_t offset;
	uint64_t min;
	uint64_t max;
	const char *const *names; /* of NAME, by value */
};

struct stasis_image_field_table {
	const struct stasis_image_field *fields;
	size_t count;
};

/*
 * Reads `object` into the structure at `target`. `where` says in errors what is read: "manifest.json:
 * gpus[2]". Refuses with STASIS_BAD_IMAGE.
 */
NODISCARD int stasis_image_fields_decode(const struct stasis_image_field_table *table,
					 const json_t *object, const char *where, void *target,
					 struct stasis_error *err);

/* A new object, its fields in the table's order: null for OTHER, without OPTIONAL. NULL: no memory. */
NODISCARD json_t *stasis_image_fields_encode(const struct stasis_image_field_table *table,
					     const void *source);

/* Any text as JSON: what is not UTF-8 or a control character becomes '?'. NULL: no memory. */
NODISCARD json_t *stasis_image_text_encode(const char *text);

/* Replaces control characters by '?', so that a text can be shown; returns `text`. */
char *stasis_image_text_clean(char *text);

static inline void cleanup_json(json_t **json)
{
	json_decref(*json);
	*json = NULL;
}

static inline void cleanup_json_text(char **text)
{
	free(*text);
	*text = NULL;
}

#endif
