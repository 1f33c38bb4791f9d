#ifndef STASIS_IMAGE_FIELDS_H
#define STASIS_IMAGE_FIELDS_H

/*
 * JSON objects with a fixed set of fields, described by a table that serves writing and reading alike:
 * every field that is not optional must be there, no other may be, and each value is held to its bounds. Used by the manifest
 * and by the owner record of a partial. Any thread.
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
	STASIS_IMAGE_FIELD_S32,          /* int32_t: min to max */
	STASIS_IMAGE_FIELD_U32,          /* uint32_t: min to max */
	STASIS_IMAGE_FIELD_U64,          /* uint64_t: min to max, which is below 2^63 */
	STASIS_IMAGE_FIELD_ID,           /* struct stasis_id: 32 hexadecimal digits */
	STASIS_IMAGE_FIELD_UUID,         /* struct stasis_id: "GPU-…" */
	STASIS_IMAGE_FIELD_DIGEST,       /* struct stasis_digest: 32 hexadecimal digits */
	STASIS_IMAGE_FIELD_STORE,        /* enum stasis_image_store: min to max */
	STASIS_IMAGE_FIELD_OTHER,        /* must be there; the caller writes and reads it */
	STASIS_IMAGE_FIELD_OPTIONAL,     /* may be there; the caller writes and reads it */
};

struct stasis_image_field {
	const char *name;
	enum stasis_image_field_kind kind;
	size_t offset;
	uint64_t min;
	uint64_t max;
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
