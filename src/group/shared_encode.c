/*
 * Writing of shared.json; see shared.h. One record a line, so that people can read and compare it; what a reader
 * would refuse is refused here.
 */

#include "group/shared_parts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/manifest.h"

/* A text that grows. */
struct text {
	FILE *stream;
	char *bytes; /* valid once the stream is closed */
	size_t byte_count;
	bool has_failed;
};

static void cleanup_text(struct text *text)
{
	if (text->stream)
		(void)fclose(text->stream);
	free(text->bytes);
}

static void put(struct text *text, const char *words)
{
	text->has_failed |= fputs(words, text->stream) < 0;
}

/* An object on a line of its own; takes it. */
static void object_put(struct text *text, json_t *object, bool is_first, const char *indent)
{
	put(text, is_first ? "\n" : ",\n");
	put(text, indent);
	text->has_failed |= !object || json_dumpf(object, text->stream, 0) != 0;
	json_decref(object);
}

static int record_put(struct text *text, const struct stasis_member *member, uint32_t index,
		      struct stasis_error *err)
{
	const struct stasis_wire_record *record = &member->records[index];
	const char *fault = stasis_shared_record_fault(record);

	if (fault)
		return stasis_fail(err, STASIS_INTERNAL,
				   "process %d: record %u cannot be written: %s", (int)member->pid,
				   index, fault);
	object_put(text,
		   stasis_image_fields_encode(stasis_shared_record_table(record->type), record),
		   index == 0, "        ");
	return 0;
}

/* The fields that the table writes, each on a line; then the caller's. */
static void fields_put(struct text *text, const json_t *object, const char *indent)
{
	const char *name;
	json_t *value;

	/* Iterating takes a non-const object but changes nothing. */
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		put(text, indent);
		text->has_failed |= fprintf(text->stream, "\"%s\": ", name) < 0;
		text->has_failed |= json_dumpf(value, text->stream, JSON_ENCODE_ANY) != 0;
		put(text, ",\n");
	}
}

static int member_put(struct text *text, const struct stasis_member *member, bool is_first,
		      struct stasis_error *err)
{
	CLEANUP(json)
	json_t *object = stasis_image_fields_encode(&stasis_shared_member_table, member);

	text->has_failed |= !object || json_object_del(object, "records") != 0;
	put(text, is_first ? "\n    {\n" : ",\n    {\n");
	if (object)
		fields_put(text, object, "      ");
	put(text, "      \"records\": [");
	for (uint32_t i = 0; i < member->record_count; i++) {
		if (record_put(text, member, i, err) != 0)
			return -1;
	}
	put(text, member->record_count > 0 ? "\n      ]\n    }" : "]\n    }");
	return 0;
}

static int members_put(struct text *text, const struct stasis_topology *topology,
		       struct stasis_error *err)
{
	put(text, "  \"members\": [");
	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (member_put(text, &topology->members[i], i == 0, err) != 0)
			return -1;
	}
	put(text, topology->member_count > 0 ? "\n  ],\n" : "],\n");
	return 0;
}

static void places_put(struct text *text, const struct stasis_shared_place *places,
		       size_t place_count)
{
	put(text, "  \"places\": [");
	for (size_t i = 0; i < place_count; i++)
		object_put(text, stasis_image_fields_encode(&stasis_shared_place_table, &places[i]),
			   i == 0, "    ");
	put(text, place_count > 0 ? "\n  ]\n" : "]\n");
}

static int text_write(struct text *text, const struct stasis_topology *topology,
		      const struct stasis_shared_place *places, size_t place_count,
		      struct stasis_error *err)
{
	text->stream = open_memstream(&text->bytes, &text->byte_count);
	if (!text->stream)
		return stasis_fail_errno(err, STASIS_REFUSED, "write shared.json");
	text->has_failed |= fprintf(text->stream, "{\n  \"format\": \"%s\",\n  \"version\": %d,\n",
				    STASIS_SHARED_FORMAT_NAME, STASIS_SHARED_VERSION) < 0;
	if (members_put(text, topology, err) != 0)
		return -1;
	places_put(text, places, place_count);
	put(text, "}\n");
	text->has_failed |= fclose(text->stream) != 0;
	text->stream = NULL;
	if (text->has_failed)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "write shared.json");
	return 0;
}

static int counts_check(const struct stasis_topology *topology, size_t place_count,
			struct stasis_error *err)
{
	uint64_t records = 0;

	for (uint32_t i = 0; i < topology->member_count; i++)
		records += topology->members[i].record_count;
	if (records > STASIS_SHARED_RECORDS_MAX || place_count > STASIS_SHARED_RECORDS_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "the group has %llu records and %zu contents, more than the "
				   "%llu that an image takes",
				   (unsigned long long)records, place_count,
				   (unsigned long long)STASIS_SHARED_RECORDS_MAX);
	return 0;
}

/* A copy in order, and checked; the caller frees it. */
static int places_sort(const struct stasis_topology *topology,
		       const struct stasis_shared_place *places, size_t place_count,
		       struct stasis_shared_place **ret_sorted, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_shared_place *sorted = calloc(place_count + 1, sizeof(*sorted));
	struct stasis_error why = STASIS_ERROR_INIT;

	if (!sorted)
		return stasis_fail_errno(err, STASIS_REFUSED, "write shared.json");
	if (place_count > 0)
		memcpy(sorted, places, place_count * sizeof(*sorted));
	if (stasis_shared_places_check(topology, sorted, place_count, &why) != 0) {
		/* No image is bad yet. */
		why.status = STASIS_INTERNAL;
		stasis_error_take(err, &why);
		return -1;
	}
	*ret_sorted = ptr_steal(&sorted);
	return 0;
}

int stasis_shared_encode(const struct stasis_topology *topology,
			 const struct stasis_shared_place *places, size_t place_count,
			 char **ret_text, size_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_shared_place *sorted = NULL;
	CLEANUP(text) struct text text = {.stream = NULL};

	if (counts_check(topology, place_count, err) != 0 ||
	    places_sort(topology, places, place_count, &sorted, err) != 0 ||
	    text_write(&text, topology, sorted, place_count, err) != 0)
		return -1;
	if (text.byte_count > STASIS_IMAGE_SHARED_BYTES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "shared.json would have %zu bytes, more than the %llu that an "
				   "image takes",
				   text.byte_count,
				   (unsigned long long)STASIS_IMAGE_SHARED_BYTES_MAX);
	*ret_text = ptr_steal(&text.bytes);
	*ret_bytes = text.byte_count;
	return 0;
}
