/*
 * See fields.h.
 */

#include "image/fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/id.h"
#include "image/manifest.h"

struct decode {
	const struct stasis_image_field *field;
	const char *where;
	const json_t *value;
	void *at;
	struct stasis_error *err;
};

static int refuse(const struct decode *d, const char *wanted)
{
	return stasis_fail(d->err, STASIS_BAD_IMAGE, "%s: field '%s' must be %s", d->where,
			   d->field->name, wanted);
}

static int decode_text(const struct decode *d)
{
	const char *text = json_string_value(d->value);
	size_t bytes = text ? strlen(text) : 0;

	/* An embedded NUL cannot come: the parser refuses it. */
	if (!text || bytes < d->field->min || bytes > d->field->max)
		return stasis_fail(d->err, STASIS_BAD_IMAGE,
				   "%s: field '%s' must be text of %llu to %llu bytes", d->where,
				   d->field->name, (unsigned long long)d->field->min,
				   (unsigned long long)d->field->max);
	for (size_t i = 0; i < bytes; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return refuse(d, "text without control characters");
	}
	memcpy(d->at, text, bytes + 1);
	return 0;
}

static int decode_text_or_null(const struct decode *d)
{
	if (json_is_null(d->value)) {
		*(char *)d->at = '\0';
		return 0;
	}
	return decode_text(d);
}

static int number_read(const struct decode *d, uint64_t *ret_value)
{
	json_int_t value = json_integer_value(d->value);

	if (!json_is_integer(d->value) || value < 0 || (uint64_t)value < d->field->min ||
	    (uint64_t)value > d->field->max)
		return stasis_fail(d->err, STASIS_BAD_IMAGE,
				   "%s: field '%s' must be a whole number from %llu to %llu",
				   d->where, d->field->name, (unsigned long long)d->field->min,
				   (unsigned long long)d->field->max);
	*ret_value = (uint64_t)value;
	return 0;
}

static int decode_s32(const struct decode *d)
{
	uint64_t value = 0;

	if (number_read(d, &value) != 0)
		return -1;
	*(int32_t *)d->at = (int32_t)value;
	return 0;
}

static int decode_u32(const struct decode *d)
{
	uint64_t value = 0;

	if (number_read(d, &value) != 0)
		return -1;
	*(uint32_t *)d->at = (uint32_t)value;
	return 0;
}

static int decode_u64(const struct decode *d)
{
	return number_read(d, d->at);
}

static int decode_id(const struct decode *d)
{
	const char *text = json_string_value(d->value);

	if (!text || !stasis_id_parse(text, d->at))
		return refuse(d, "32 lower-case hexadecimal digits");
	return 0;
}

static int decode_uuid(const struct decode *d)
{
	const char *text = json_string_value(d->value);

	if (!text || !stasis_uuid_parse(text, d->at))
		return refuse(d, "a GPU's UUID, 'GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'");
	return 0;
}

static int decode_digest(const struct decode *d)
{
	const char *text = json_string_value(d->value);

	if (!text || !stasis_digest_parse(text, d->at))
		return refuse(d, "32 lower-case hexadecimal digits");
	return 0;
}

static int decode_store(const struct decode *d)
{
	const char *text = json_string_value(d->value);
	char known[64] = "one of";
	size_t length = strlen(known);

	for (uint64_t i = d->field->min; i <= d->field->max; i++) {
		const char *name = stasis_image_store_name((enum stasis_image_store)i);

		if (text && strcmp(text, name) == 0) {
			*(enum stasis_image_store *)d->at = (enum stasis_image_store)i;
			return 0;
		}
		length += (size_t)snprintf(known + length, sizeof(known) - length, " '%s'", name);
	}
	return refuse(d, known);
}

static int decode_other(const struct decode *d)
{
	(void)d;
	return 0;
}

static json_t *encode_text(const void *at)
{
	return stasis_image_text_encode(at);
}

static json_t *encode_text_or_null(const void *at)
{
	return *(const char *)at ? stasis_image_text_encode(at) : json_null();
}

static json_t *encode_s32(const void *at)
{
	return json_integer(*(const int32_t *)at);
}

static json_t *encode_u32(const void *at)
{
	return json_integer(*(const uint32_t *)at);
}

static json_t *encode_u64(const void *at)
{
	return json_integer((json_int_t) * (const uint64_t *)at);
}

static json_t *encode_id(const void *at)
{
	char text[STASIS_ID_TEXT_BYTES];

	return json_string(stasis_id_format(at, text));
}

static json_t *encode_uuid(const void *at)
{
	char text[STASIS_UUID_TEXT_BYTES];

	return json_string(stasis_uuid_format(at, text));
}

static json_t *encode_digest(const void *at)
{
	char text[STASIS_DIGEST_TEXT_BYTES];

	return json_string(stasis_digest_format(at, text));
}

static json_t *encode_store(const void *at)
{
	return json_string(stasis_image_store_name(*(const enum stasis_image_store *)at));
}

static json_t *encode_other(const void *at)
{
	(void)at;
	return json_null();
}

/* By enum stasis_image_field_kind. */
static const struct field_codec {
	int (*decode)(const struct decode *d);
	json_t *(*encode)(const void *at);
} codecs[] = {
	[STASIS_IMAGE_FIELD_TEXT] = {decode_text, encode_text},
	[STASIS_IMAGE_FIELD_TEXT_OR_NULL] = {decode_text_or_null, encode_text_or_null},
	[STASIS_IMAGE_FIELD_S32] = {decode_s32, encode_s32},
	[STASIS_IMAGE_FIELD_U32] = {decode_u32, encode_u32},
	[STASIS_IMAGE_FIELD_U64] = {decode_u64, encode_u64},
	[STASIS_IMAGE_FIELD_ID] = {decode_id, encode_id},
	[STASIS_IMAGE_FIELD_UUID] = {decode_uuid, encode_uuid},
	[STASIS_IMAGE_FIELD_DIGEST] = {decode_digest, encode_digest},
	[STASIS_IMAGE_FIELD_STORE] = {decode_store, encode_store},
	[STASIS_IMAGE_FIELD_OTHER] = {decode_other, encode_other},
	[STASIS_IMAGE_FIELD_OPTIONAL] = {decode_other, encode_other},
};

static bool table_has(const struct stasis_image_field_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++) {
		if (strcmp(table->fields[i].name, name) == 0)
			return true;
	}
	return false;
}

static int unknown_refuse(const struct stasis_image_field_table *table, json_t *object,
			  const char *where, struct stasis_error *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		char shown[STASIS_IMAGE_TEXT_BYTES] = "";

		if (table_has(table, name))
			continue;
		(void)snprintf(shown, sizeof(shown), "%s", name);
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field '%s' is unknown", where,
				   stasis_image_text_clean(shown));
	}
	return 0;
}

int stasis_image_fields_decode(const struct stasis_image_field_table *table, const json_t *object,
			       const char *where, void *target, struct stasis_error *err)
{
	size_t found = 0;

	if (!json_is_object(object))
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: must be an object", where);
	for (size_t i = 0; i < table->count; i++) {
		const struct stasis_image_field *field = &table->fields[i];
		struct decode d = {
			.field = field,
			.where = where,
			.value = json_object_get(object, field->name),
			.at = (char *)target + field->offset,
			.err = err,
		};

		if (!d.value && field->kind == STASIS_IMAGE_FIELD_OPTIONAL)
			continue;
		if (!d.value)
			return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field '%s' is missing",
					   where, field->name);
		if (codecs[field->kind].decode(&d) != 0)
			return -1;
		found++;
	}
	/* No key stands twice, so there is an unknown one exactly where there are more. */
	if (json_object_size(object) == found)
		return 0;
	/* Iterating takes a non-const object but changes nothing. */
	return unknown_refuse(table, (json_t *)(uintptr_t)object, where, err);
}

json_t *stasis_image_fields_encode(const struct stasis_image_field_table *table, const void *source)
{
	json_t *object = json_object();

	for (size_t i = 0; object && i < table->count; i++) {
		const struct stasis_image_field *field = &table->fields[i];
		const char *at = (const char *)source + field->offset;

		if (field->kind == STASIS_IMAGE_FIELD_OPTIONAL)
			continue;
		/* json_object_set_new takes the value, also where it fails. */
		if (json_object_set_new(object, field->name, codecs[field->kind].encode(at)) != 0) {
			json_decref(object);
			object = NULL;
		}
	}
	return object;
}

char *stasis_image_text_clean(char *text)
{
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	return text;
}

json_t *stasis_image_text_encode(const char *text)
{
	char *copy = strdup(text);
	json_t *value = copy ? json_string(stasis_image_text_clean(copy)) : NULL;

	/* json_string refuses what is not UTF-8; ASCII always is. */
	if (copy && !value) {
		for (char *at = copy; *at; at++) {
			if ((unsigned char)*at >= 0x80)
				*at = '?';
		}
		value = json_string(copy);
	}
	free(copy);
	return value;
}
