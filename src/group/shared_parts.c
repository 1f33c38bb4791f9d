/*
 * See shared_parts.h: the fields of every object in shared.json, and the checks of both directions.
 */

#include "group/shared_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "group/topology_parts.h"

#define RECORD(kind, member) offsetof(struct stasis_wire_record, kind.member)
#define TABLE(array)                                                                               \
	{                                                                                          \
		array, ARRAY_COUNT(array)                                                          \
	}

static const char *const type_names[STASIS_WIRE_RECORD_TYPE_COUNT] = {
	[STASIS_WIRE_ALLOCATION] = "allocation", [STASIS_WIRE_HANDLE] = "handle",
	[STASIS_WIRE_MAPPING] = "mapping",       [STASIS_WIRE_ACCESS] = "access",
	[STASIS_WIRE_MULTICAST] = "multicast",   [STASIS_WIRE_TEAM_DEVICE] = "team_device",
	[STASIS_WIRE_BINDING] = "binding",       [STASIS_WIRE_NOTE] = "note",
};

static const char *const role_names[] = {
	[STASIS_WIRE_CREATOR] = "creator",
	[STASIS_WIRE_IMPORTER] = "importer",
};

static const char *const binding_names[] = {
	[STASIS_WIRE_BIND_MEMORY] = "memory",
	[STASIS_WIRE_BIND_ADDRESS] = "address",
};

static const char *const note_names[] = {
	[STASIS_WIRE_NOTE_UNKNOWN_FUNCTION] = "unknown_function",
	[STASIS_WIRE_NOTE_FOREIGN_IMPORT] = "foreign_import",
	[STASIS_WIRE_NOTE_UNSUPPORTED] = "unsupported",
	[STASIS_WIRE_NOTE_REMARK] = "remark",
};

/* clang-format off */
#define TYPE_FIELD                                                                                 \
	{"type", STASIS_IMAGE_FIELD_NAME, offsetof(struct stasis_wire_record, type), NAMES(type_names)}

/* The wire counts them all from 1. */
#define NAMES(array) 1, ARRAY_COUNT(array) - 1, array

static const struct stasis_image_field allocation_fields[] = {
	TYPE_FIELD,
	{"object",           STASIS_IMAGE_FIELD_ID, RECORD(allocation, object), 0, 0, NULL},
	{"creator",          STASIS_IMAGE_FIELD_ID, RECORD(allocation, creator), 0, 0, NULL},
	{"role",             STASIS_IMAGE_FIELD_NAME, RECORD(allocation, role), NAMES(role_names)},
	{"device",           STASIS_IMAGE_FIELD_UUID_OR_NULL, RECORD(allocation, device), 0, 0, NULL},
	{"bytes",            STASIS_IMAGE_FIELD_WIDE, RECORD(allocation, bytes), 0, 0, NULL},
	{"is_shared",        STASIS_IMAGE_FIELD_BIT, RECORD(allocation, flags), 0, STASIS_WIRE_IS_SHARED, NULL},
	{"has_content",      STASIS_IMAGE_FIELD_BIT, RECORD(allocation, flags), 0, STASIS_WIRE_HAS_CONTENT, NULL},
	{"is_reattached",    STASIS_IMAGE_FIELD_BIT, RECORD(allocation, flags), 0, STASIS_WIRE_IS_REATTACHED, NULL},
	{"location_type",    STASIS_IMAGE_FIELD_U32, RECORD(allocation, location_type), 0, UINT32_MAX, NULL},
	{"location_id",      STASIS_IMAGE_FIELD_SIGNED, RECORD(allocation, location_id), 0, 0, NULL},
	{"handle_types",     STASIS_IMAGE_FIELD_U32, RECORD(allocation, handle_types), 0, UINT32_MAX, NULL},
	{"compression",      STASIS_IMAGE_FIELD_U8, RECORD(allocation, compression), 0, UINT8_MAX, NULL},
	{"gpu_direct_rdma",  STASIS_IMAGE_FIELD_U8, RECORD(allocation, gpu_direct_rdma), 0, UINT8_MAX, NULL},
	{"usage",            STASIS_IMAGE_FIELD_U16, RECORD(allocation, usage), 0, UINT16_MAX, NULL},
};

static const struct stasis_image_field handle_fields[] = {
	TYPE_FIELD,
	{"object", STASIS_IMAGE_FIELD_ID, RECORD(handle, object), 0, 0, NULL},
	{"handle", STASIS_IMAGE_FIELD_ADDRESS, RECORD(handle, handle), 0, 0, NULL},
	{"count",  STASIS_IMAGE_FIELD_WIDE, RECORD(handle, count), 0, 0, NULL},
};

static const struct stasis_image_field mapping_fields[] = {
	TYPE_FIELD,
	{"object",  STASIS_IMAGE_FIELD_ID, RECORD(mapping, object), 0, 0, NULL},
	{"address", STASIS_IMAGE_FIELD_ADDRESS, RECORD(mapping, address), 0, 0, NULL},
	{"bytes",   STASIS_IMAGE_FIELD_WIDE, RECORD(mapping, bytes), 0, 0, NULL},
	{"offset",  STASIS_IMAGE_FIELD_WIDE, RECORD(mapping, offset), 0, 0, NULL},
	{"handle",  STASIS_IMAGE_FIELD_ADDRESS, RECORD(mapping, handle), 0, 0, NULL},
	{"flags",   STASIS_IMAGE_FIELD_WIDE, RECORD(mapping, flags), 0, 0, NULL},
};

static const struct stasis_image_field access_fields[] = {
	TYPE_FIELD,
	{"address",       STASIS_IMAGE_FIELD_ADDRESS, RECORD(access, address), 0, 0, NULL},
	{"location_type", STASIS_IMAGE_FIELD_U32, RECORD(access, location_type), 0, UINT32_MAX, NULL},
	{"location_id",   STASIS_IMAGE_FIELD_SIGNED, RECORD(access, location_id), 0, 0, NULL},
	{"rights",        STASIS_IMAGE_FIELD_U32, RECORD(access, rights), 0, UINT32_MAX, NULL},
};

static const struct stasis_image_field multicast_fields[] = {
	TYPE_FIELD,
	{"object",       STASIS_IMAGE_FIELD_ID, RECORD(multicast, object), 0, 0, NULL},
	{"creator",      STASIS_IMAGE_FIELD_ID, RECORD(multicast, creator), 0, 0, NULL},
	{"role",         STASIS_IMAGE_FIELD_NAME, RECORD(multicast, role), NAMES(role_names)},
	{"bytes",        STASIS_IMAGE_FIELD_WIDE, RECORD(multicast, bytes), 0, 0, NULL},
	{"flags",        STASIS_IMAGE_FIELD_WIDE, RECORD(multicast, flags), 0, 0, NULL},
	{"device_count", STASIS_IMAGE_FIELD_U32, RECORD(multicast, device_count), 0, UINT32_MAX, NULL},
	{"handle_types", STASIS_IMAGE_FIELD_U32, RECORD(multicast, handle_types), 0, UINT32_MAX, NULL},
};

static const struct stasis_image_field team_device_fields[] = {
	TYPE_FIELD,
	{"object",  STASIS_IMAGE_FIELD_ID, RECORD(team_device, object), 0, 0, NULL},
	{"device",  STASIS_IMAGE_FIELD_UUID_OR_NULL, RECORD(team_device, device), 0, 0, NULL},
	{"ordinal", STASIS_IMAGE_FIELD_SIGNED, RECORD(team_device, ordinal), 0, 0, NULL},
};

static const struct stasis_image_field binding_fields[] = {
	TYPE_FIELD,
	{"object",        STASIS_IMAGE_FIELD_ID, RECORD(binding, object), 0, 0, NULL},
	{"kind",          STASIS_IMAGE_FIELD_NAME, RECORD(binding, kind), NAMES(binding_names)},
	{"member",        STASIS_IMAGE_FIELD_ID_OR_NULL, RECORD(binding, member), 0, 0, NULL},
	{"address",       STASIS_IMAGE_FIELD_ADDRESS, RECORD(binding, address), 0, 0, NULL},
	{"member_offset", STASIS_IMAGE_FIELD_WIDE, RECORD(binding, member_offset), 0, 0, NULL},
	{"offset",        STASIS_IMAGE_FIELD_WIDE, RECORD(binding, offset), 0, 0, NULL},
	{"bytes",         STASIS_IMAGE_FIELD_WIDE, RECORD(binding, bytes), 0, 0, NULL},
	{"flags",         STASIS_IMAGE_FIELD_WIDE, RECORD(binding, flags), 0, 0, NULL},
	{"ordinal",       STASIS_IMAGE_FIELD_SIGNED, RECORD(binding, ordinal), 0, 0, NULL},
	{"call_version",  STASIS_IMAGE_FIELD_U32, RECORD(binding, call_version), 0, UINT32_MAX, NULL},
};

static const struct stasis_image_field note_fields[] = {
	TYPE_FIELD,
	{"kind",  STASIS_IMAGE_FIELD_NAME, RECORD(note, kind), NAMES(note_names)},
	{"count", STASIS_IMAGE_FIELD_WIDE, RECORD(note, count), 0, 0, NULL},
	{"text",  STASIS_IMAGE_FIELD_TEXT, RECORD(note, text), 0, STASIS_WIRE_NOTE_TEXT_BYTES - 1, NULL},
};

static const struct stasis_image_field root_fields[] = {
	{"format",  STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"version", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"members", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"places",  STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
};

static const struct stasis_image_field member_fields[] = {
	{"participant", STASIS_IMAGE_FIELD_ID, offsetof(struct stasis_member, participant), 0, 0, NULL},
	{"pid",         STASIS_IMAGE_FIELD_S32, offsetof(struct stasis_member, pid), 1, INT32_MAX, NULL},
	{"start_ticks", STASIS_IMAGE_FIELD_WIDE, offsetof(struct stasis_member, start_ticks), 0, 0, NULL},
	{"name",        STASIS_IMAGE_FIELD_TEXT, offsetof(struct stasis_member, name), 0, STASIS_PROCESS_NAME_BYTES - 1, NULL},
	{"build",       STASIS_IMAGE_FIELD_TEXT, offsetof(struct stasis_member, build), 0, STASIS_WIRE_BUILD_TEXT_BYTES - 1, NULL},
	{"records",     STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
};

static const struct stasis_image_field place_fields[] = {
	{"object", STASIS_IMAGE_FIELD_ID, offsetof(struct stasis_shared_place, object), 0, 0, NULL},
	{"extent", STASIS_IMAGE_FIELD_ID, offsetof(struct stasis_shared_place, extent), 0, 0, NULL},
	{"offset", STASIS_IMAGE_FIELD_WIDE, offsetof(struct stasis_shared_place, offset), 0, 0, NULL},
};
/* clang-format on */

const struct stasis_image_field_table stasis_shared_root_table = TABLE(root_fields);
const struct stasis_image_field_table stasis_shared_member_table = TABLE(member_fields);
const struct stasis_image_field_table stasis_shared_place_table = TABLE(place_fields);

static const struct stasis_image_field_table record_tables[STASIS_WIRE_RECORD_TYPE_COUNT] = {
	[STASIS_WIRE_ALLOCATION] = TABLE(allocation_fields),
	[STASIS_WIRE_HANDLE] = TABLE(handle_fields),
	[STASIS_WIRE_MAPPING] = TABLE(mapping_fields),
	[STASIS_WIRE_ACCESS] = TABLE(access_fields),
	[STASIS_WIRE_MULTICAST] = TABLE(multicast_fields),
	[STASIS_WIRE_TEAM_DEVICE] = TABLE(team_device_fields),
	[STASIS_WIRE_BINDING] = TABLE(binding_fields),
	[STASIS_WIRE_NOTE] = TABLE(note_fields),
};

/* Names are written and read through that type. */
_Static_assert(sizeof(enum stasis_wire_record_type) == sizeof(uint32_t), "a type is 32 bits");
_Static_assert(sizeof(pid_t) == sizeof(int32_t), "a pid is 32 bits");

const struct stasis_image_field_table *stasis_shared_record_table(enum stasis_wire_record_type type)
{
	return &record_tables[type];
}

const char *stasis_shared_type_name(enum stasis_wire_record_type type)
{
	return type_names[type];
}

const char *stasis_shared_record_fault(const struct stasis_wire_record *record)
{
	uint8_t bytes[STASIS_WIRE_RECORD_BYTES];
	struct stasis_wire_codec codec = stasis_wire_writer(bytes, sizeof(bytes));
	struct stasis_wire_record copy = *record;

	stasis_wire_record(&codec, &copy);
	return codec.fault;
}

static int place_compare(const void *a, const void *b)
{
	return memcmp(((const struct stasis_shared_place *)a)->object.bytes,
		      ((const struct stasis_shared_place *)b)->object.bytes,
		      sizeof(struct stasis_id));
}

static bool is_held(const struct stasis_topology *topology, const struct stasis_id *object)
{
	for (uint32_t i = 0; i < topology->member_count; i++) {
		const struct stasis_wire_record *record =
			stasis_member_find(&topology->members[i], object);

		if (record && record->type == STASIS_WIRE_ALLOCATION)
			return true;
	}
	return false;
}

int stasis_shared_places_check(const struct stasis_topology *topology,
			       struct stasis_shared_place *places, size_t place_count,
			       struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];

	if (place_count > 0)
		qsort(places, place_count, sizeof(*places), place_compare);
	for (size_t i = 0; i < place_count; i++) {
		const struct stasis_id *object = &places[i].object;

		if (i > 0 && stasis_id_equal(&places[i - 1].object, object))
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "shared.json: two places of object %s",
					   stasis_id_format(object, text));
		if (!is_held(topology, object))
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "shared.json: a place of object %s, of which no member "
					   "has an allocation",
					   stasis_id_format(object, text));
	}
	return 0;
}
