/*
 * See fields.h; how each kind of value is written and read is in field_kinds.c.
 */

#include "image/fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/field_kinds.h"
#include "image/manifest.h"

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
		struct stasis_image_field_input input = {
			.field = field,
			.where = where,
			.value = json_object_get(object, field->name),
			.at = (char *)target + field->offset,
			.err = err,
		};

		if (!input.value && field->kind == STASIS_IMAGE_FIELD_OPTIONAL)
			continue;
		if (!input.value)
			return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field '%s' is missing",
					   where, field->name);
		if (stasis_image_field_codec(field->kind)->decode(&input) != 0)
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
		if (json_object_set_new(object, field->name,
					stasis_image_field_codec(field->kind)->encode(field, at)) !=
		    0) {
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
