/*
 * Reading of shared.json; see shared.h. The version is looked at before all else, then each member with its records,
 * each of which must be one that the wire would take, then the places.
 */

#include "group/shared_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define WHERE_BYTES 64
#define RECORD_WHERE_BYTES (WHERE_BYTES + 32)

static int version_check(const json_t *root, struct stasis_error *err)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *version = json_object_get(root, "version");

	if (!format || strcmp(format, STASIS_SHARED_FORMAT_NAME) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE, "shared.json: field 'format' is not '%s'",
				   STASIS_SHARED_FORMAT_NAME);
	if (!json_is_integer(version))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "shared.json: field 'version' is missing or no number");
	if (json_integer_value(version) != STASIS_SHARED_VERSION)
		return stasis_fail(
			err, STASIS_BAD_IMAGE,
			"shared.json: it has version %lld, this stasis reads version %d; use the "
			"stasis that wrote it",
			(long long)json_integer_value(version), STASIS_SHARED_VERSION);
	return 0;
}

static int list_check(const json_t *list, const char *where, const char *name, uint64_t max,
		      struct stasis_error *err)
{
	if (json_is_array(list) && json_array_size(list) <= max)
		return 0;
	return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field '%s' must be a list of at most %llu",
			   where, name, (unsigned long long)max);
}

static enum stasis_wire_record_type type_of(const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "type"));

	for (uint32_t i = STASIS_WIRE_ALLOCATION; text && i < STASIS_WIRE_RECORD_TYPE_COUNT; i++) {
		enum stasis_wire_record_type type = (enum stasis_wire_record_type)i;

		if (strcmp(text, stasis_shared_type_name(type)) == 0)
			return type;
	}
	/* Whose table names all types where it refuses this one. */
	return STASIS_WIRE_ALLOCATION;
}

static int record_decode(const json_t *object, const char *member, size_t index,
			 struct stasis_wire_record *record, struct stasis_error *err)
{
	char where[RECORD_WHERE_BYTES];
	const char *fault;

	(void)snprintf(where, sizeof(where), "%s.records[%zu]", member, index);
	if (stasis_image_fields_decode(stasis_shared_record_table(type_of(object)), object, where,
				       record, err) != 0)
		return -1;
	fault = stasis_shared_record_fault(record);
	if (fault)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: %s", where, fault);
	return 0;
}

static int records_decode(const json_t *list, const char *where, uint64_t max,
			  struct stasis_member *member, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_record *records = NULL;
	size_t count = json_array_size(list);

	if (list_check(list, where, "records", max, err) != 0)
		return -1;
	records = calloc(count + 1, sizeof(*records));
	if (!records)
		return stasis_fail_errno(err, STASIS_REFUSED, "read shared.json");
	for (size_t i = 0; i < count; i++) {
		if (record_decode(json_array_get(list, i), where, i, &records[i], err) != 0)
			return -1;
	}
	member->records = ptr_steal(&records);
	member->record_count = (uint32_t)count;
	return 0;
}

/* Refused by the topology is what cannot be; what it had no memory for may be. */
static int member_add(struct stasis_topology *topology, const struct stasis_member *member,
		      const char *where, struct stasis_error *err)
{
	struct stasis_error why = STASIS_ERROR_INIT;

	if (stasis_topology_add(topology, member, &why) == 0)
		return 0;
	if (why.os_errno == 0)
		why.status = STASIS_BAD_IMAGE;
	stasis_error_context(&why, "%s", where);
	stasis_error_take(err, &why);
	return -1;
}

static int member_decode(const json_t *object, size_t index, uint64_t *io_records_left,
			 struct stasis_topology *topology, struct stasis_error *err)
{
	struct stasis_member member = {.records = NULL};
	char where[WHERE_BYTES];
	int result;

	(void)snprintf(where, sizeof(where), "shared.json: members[%zu]", index);
	if (stasis_image_fields_decode(&stasis_shared_member_table, object, where, &member, err) !=
		    0 ||
	    records_decode(json_object_get(object, "records"), where, *io_records_left, &member,
			   err) != 0)
		return -1;
	*io_records_left -= member.record_count;
	result = member_add(topology, &member, where, err);
	free(member.records);
	return result;
}

static int members_decode(const json_t *list, struct stasis_topology *topology,
			  struct stasis_error *err)
{
	uint64_t records_left = STASIS_SHARED_RECORDS_MAX;

	if (list_check(list, "shared.json", "members", STASIS_WIRE_PEERS_MAX, err) != 0)
		return -1;
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (member_decode(json_array_get(list, i), i, &records_left, topology, err) != 0)
			return -1;
	}
	return 0;
}

static int places_decode(const json_t *list, struct stasis_shared_place **ret_places,
			 size_t *ret_place_count, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_shared_place *places = NULL;
	size_t count = json_array_size(list);

	if (list_check(list, "shared.json", "places", STASIS_SHARED_RECORDS_MAX, err) != 0)
		return -1;
	if (count == 0)
		return 0;
	places = calloc(count, sizeof(*places));
	if (!places)
		return stasis_fail_errno(err, STASIS_REFUSED, "read shared.json");
	for (size_t i = 0; i < count; i++) {
		char where[WHERE_BYTES];

		(void)snprintf(where, sizeof(where), "shared.json: places[%zu]", i);
		if (stasis_image_fields_decode(&stasis_shared_place_table, json_array_get(list, i),
					       where, &places[i], err) != 0)
			return -1;
	}
	*ret_places = ptr_steal(&places);
	*ret_place_count = count;
	return 0;
}

int stasis_shared_decode(const char *text, size_t bytes, struct stasis_topology *ret_topology,
			 struct stasis_shared_place **ret_places, size_t *ret_place_count,
			 struct stasis_error *err)
{
	CLEANUP(topology) struct stasis_topology topology = {.members = NULL};
	CLEANUP(free) struct stasis_shared_place *places = NULL;
	CLEANUP(json) json_t *root = NULL;
	size_t place_count = 0;
	json_error_t why;

	if (bytes == 0)
		return stasis_fail(err, STASIS_BAD_IMAGE, "shared.json: is empty");
	root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return stasis_fail(err, STASIS_BAD_IMAGE, "shared.json: line %d, column %d: %s",
				   why.line, why.column, stasis_image_text_clean(why.text));
	if (version_check(root, err) != 0 ||
	    stasis_image_fields_decode(&stasis_shared_root_table, root, "shared.json", &topology,
				       err) != 0 ||
	    members_decode(json_object_get(root, "members"), &topology, err) != 0 ||
	    places_decode(json_object_get(root, "places"), &places, &place_count, err) != 0 ||
	    stasis_shared_places_check(&topology, places, place_count, err) != 0)
		return -1;
	*ret_topology = topology;
	topology = (struct stasis_topology){.members = NULL};
	*ret_places = ptr_steal(&places);
	*ret_place_count = place_count;
	return 0;
}
