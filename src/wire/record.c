/*
 * See record.h.
 */

#include "wire/record.h"

#include <string.h>

#include "base/number.h"

typedef void record_function(struct stasis_wire_codec *codec, struct stasis_wire_record *record);

static bool is_none(const struct stasis_id *id)
{
	static const struct stasis_id none;

	return stasis_id_equal(id, &none);
}

static void object(struct stasis_wire_codec *codec, struct stasis_id *id)
{
	stasis_wire_id(codec, id);
	stasis_wire_check(codec, !is_none(id), "a record names no object");
}

/* A range that is empty or runs over the end of what 64 bits can name. */
static void check_range(struct stasis_wire_codec *codec, uint64_t start, uint64_t bytes,
			const char *fault)
{
	uint64_t end = 0;

	stasis_wire_check(codec, bytes > 0 && stasis_add_u64(start, bytes, &end), fault);
}

static void role(struct stasis_wire_codec *codec, uint32_t *value)
{
	stasis_wire_u32(codec, value);
	stasis_wire_check(codec, *value == STASIS_WIRE_CREATOR || *value == STASIS_WIRE_IMPORTER,
			  "a role is neither creator nor importer");
}

static void allocation(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	struct stasis_wire_allocation *a = &record->allocation;

	object(codec, &a->object);
	object(codec, &a->creator);
	stasis_wire_id(codec, &a->device);
	stasis_wire_u64(codec, &a->bytes);
	role(codec, &a->role);
	stasis_wire_u32(codec, &a->flags);
	stasis_wire_u32(codec, &a->location_type);
	stasis_wire_i32(codec, &a->location_id);
	stasis_wire_u32(codec, &a->handle_types);
	stasis_wire_u8(codec, &a->compression);
	stasis_wire_u8(codec, &a->gpu_direct_rdma);
	stasis_wire_u16(codec, &a->usage);
	stasis_wire_check(codec, a->bytes > 0, "an allocation has no bytes");
	stasis_wire_check(codec, (a->flags & ~(uint32_t)STASIS_WIRE_ALLOCATION_FLAGS) == 0,
			  "an allocation has flags that are not known");
	stasis_wire_check(
		codec, a->role == STASIS_WIRE_CREATOR || (a->flags & STASIS_WIRE_HAS_CONTENT) == 0,
		"an importer claims an allocation's content");
}

static void handle(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	object(codec, &record->handle.object);
	stasis_wire_u64(codec, &record->handle.handle);
	stasis_wire_u64(codec, &record->handle.count);
	stasis_wire_check(codec, record->handle.count > 0, "a handle is held by nobody");
}

static void mapping(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	struct stasis_wire_mapping *m = &record->mapping;

	object(codec, &m->object);
	stasis_wire_u64(codec, &m->address);
	stasis_wire_u64(codec, &m->bytes);
	stasis_wire_u64(codec, &m->offset);
	stasis_wire_u64(codec, &m->handle);
	stasis_wire_u64(codec, &m->flags);
	stasis_wire_check(codec, m->address != 0, "a mapping is at address 0");
	check_range(codec, m->address, m->bytes, "a mapping is empty or past the last address");
	check_range(codec, m->offset, m->bytes, "a mapping is past the end of what it maps");
}

static void access(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	struct stasis_wire_access *a = &record->access;

	stasis_wire_u64(codec, &a->address);
	stasis_wire_u32(codec, &a->location_type);
	stasis_wire_i32(codec, &a->location_id);
	stasis_wire_u32(codec, &a->rights);
	stasis_wire_check(codec, a->address != 0, "a right is at address 0");
}

static void multicast(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	struct stasis_wire_multicast *m = &record->multicast;

	object(codec, &m->object);
	object(codec, &m->creator);
	stasis_wire_u64(codec, &m->bytes);
	stasis_wire_u64(codec, &m->flags);
	stasis_wire_u32(codec, &m->device_count);
	stasis_wire_u32(codec, &m->handle_types);
	role(codec, &m->role);
	stasis_wire_check(codec, m->bytes > 0, "a multicast object has no bytes");
	stasis_wire_check(codec, m->device_count > 0, "a multicast team has no devices");
}

static void team_device(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	object(codec, &record->team_device.object);
	object(codec, &record->team_device.device);
	stasis_wire_i32(codec, &record->team_device.ordinal);
	stasis_wire_check(codec, record->team_device.ordinal >= 0, "a device has no ordinal");
}

static void binding(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	struct stasis_wire_binding *b = &record->binding;
	bool by_address;

	object(codec, &b->object);
	stasis_wire_id(codec, &b->member);
	stasis_wire_u64(codec, &b->address);
	stasis_wire_u64(codec, &b->member_offset);
	stasis_wire_u64(codec, &b->offset);
	stasis_wire_u64(codec, &b->bytes);
	stasis_wire_u64(codec, &b->flags);
	stasis_wire_i32(codec, &b->ordinal);
	stasis_wire_u32(codec, &b->kind);
	stasis_wire_u32(codec, &b->call_version);
	by_address = b->kind == STASIS_WIRE_BIND_ADDRESS;
	stasis_wire_check(codec, by_address || b->kind == STASIS_WIRE_BIND_MEMORY,
			  "a binding is neither of memory nor of an address");
	stasis_wire_check(codec, by_address == (b->address != 0),
			  "a binding's address does not suit its kind");
	stasis_wire_check(codec, by_address || !is_none(&b->member), "a binding has no member");
	check_range(codec, b->offset, b->bytes, "a binding is empty or past the last offset");
	check_range(codec, b->member_offset, b->bytes, "a binding is past the end of its member");
	check_range(codec, b->address, b->bytes, "a binding is past the last address");
	stasis_wire_check(codec, b->ordinal >= 0, "a binding has no device");
	stasis_wire_check(codec, b->call_version == 1 || b->call_version == 2,
			  "a binding was made by no call that is known");
}

static void note(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	struct stasis_wire_note *n = &record->note;

	stasis_wire_u32(codec, &n->kind);
	stasis_wire_zero(codec, 4);
	stasis_wire_u64(codec, &n->count);
	stasis_wire_text(codec, n->text, sizeof(n->text));
	stasis_wire_check(codec,
			  n->kind >= STASIS_WIRE_NOTE_UNKNOWN_FUNCTION &&
				  n->kind <= STASIS_WIRE_NOTE_REMARK,
			  "a note is of no kind that is known");
	stasis_wire_check(codec, n->text[0] != '\0', "a note says nothing");
}

static record_function *const functions[STASIS_WIRE_RECORD_TYPE_COUNT] = {
	[STASIS_WIRE_ALLOCATION] = allocation, [STASIS_WIRE_HANDLE] = handle,
	[STASIS_WIRE_MAPPING] = mapping,       [STASIS_WIRE_ACCESS] = access,
	[STASIS_WIRE_MULTICAST] = multicast,   [STASIS_WIRE_TEAM_DEVICE] = team_device,
	[STASIS_WIRE_BINDING] = binding,       [STASIS_WIRE_NOTE] = note,
};

/* The longest record, a note with the longest text, fits. */
_Static_assert(8 + 4 + 4 + 8 + 4 + STASIS_WIRE_NOTE_TEXT_BYTES - 1 <= STASIS_WIRE_RECORD_BYTES,
	       "a note is longer than a record");

void stasis_wire_record(struct stasis_wire_codec *codec, struct stasis_wire_record *record)
{
	size_t end = codec->at + STASIS_WIRE_RECORD_BYTES;
	uint32_t type = (uint32_t)record->type;
	record_function *function;

	if (stasis_wire_is_reading(codec))
		memset(record, 0, sizeof(*record));
	stasis_wire_u32(codec, &type);
	stasis_wire_zero(codec, 4);
	function = type < STASIS_WIRE_RECORD_TYPE_COUNT ? functions[type] : NULL;
	stasis_wire_check(codec, function != NULL, "a record is of no type that is known");
	if (!function || codec->fault)
		return;
	if (stasis_wire_is_reading(codec))
		record->type = (enum stasis_wire_record_type)type;
	function(codec, record);
	stasis_wire_zero_until(codec, end);
	stasis_wire_check(codec, codec->at == end, "a record is too long");
}
