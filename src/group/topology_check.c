/* What of one member, and of one object over its holders, cannot be captured; see topology.h. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "group/topology_parts.h"

/* The smallest page that the driver maps. */
#define ALIGNMENT UINT64_C(4096)

/* Of cuda.h. */
#define POSIX_DESCRIPTOR 1u

/* ---- one member ---- */

static int note_check(const struct stasis_member *member, const struct stasis_wire_note *note,
		      struct stasis_error *err)
{
	if (note->kind == STASIS_WIRE_NOTE_FOREIGN_IMPORT)
		return stasis_topology_refuse(
			err, member, NULL,
			"it holds memory of a program that runs without the interposer (%" PRIu64
			" imports); start that one with 'stasis run', too, or have it let go",
			note->count);
	if (note->kind == STASIS_WIRE_NOTE_UNSUPPORTED)
		return stasis_topology_refuse(err, member, NULL, "%s", note->text);
	return 0;
}

static int twin_check(const struct stasis_member *member, const struct stasis_wire_record *record,
		      struct stasis_error *err)
{
	if (record == member->records || record->type == STASIS_WIRE_NOTE ||
	    stasis_record_compare(record - 1, record) != 0)
		return 0;
	return stasis_topology_refuse(err, member, stasis_record_object(record),
				      "it is told of twice, differently perhaps");
}

static uint64_t bytes_of(const struct stasis_wire_record *definition)
{
	/* The driver makes multicast objects larger than they were asked for, and programs map that. */
	return definition->type == STASIS_WIRE_MULTICAST ? UINT64_MAX
							 : definition->allocation.bytes;
}

static int mapping_check(const struct stasis_member *member,
			 const struct stasis_wire_mapping *mapping, struct stasis_error *err)
{
	const struct stasis_wire_record *definition = stasis_member_find(member, &mapping->object);

	if (!definition)
		return stasis_topology_refuse(err, member, &mapping->object,
					      "it is mapped, and nothing is known of it");
	if (mapping->address % ALIGNMENT != 0 || mapping->bytes % ALIGNMENT != 0)
		return stasis_topology_refuse(err, member, &mapping->object,
					      "its mapping at 0x%" PRIx64
					      " does not begin and end with a page",
					      mapping->address);
	if (mapping->bytes > bytes_of(definition) ||
	    mapping->offset > bytes_of(definition) - mapping->bytes)
		return stasis_topology_refuse(
			err, member, &mapping->object,
			"its mapping at 0x%" PRIx64 " of %" PRIu64 " bytes from %" PRIu64
			" goes beyond its %" PRIu64 " bytes",
			mapping->address, mapping->bytes, mapping->offset, bytes_of(definition));
	return 0;
}

static int reference_check(const struct stasis_member *member,
			   const struct stasis_wire_record *record, struct stasis_error *err)
{
	const struct stasis_id *object = stasis_record_object(record);

	switch (record->type) {
	case STASIS_WIRE_NOTE:
		return note_check(member, &record->note, err);
	case STASIS_WIRE_MAPPING:
		return mapping_check(member, &record->mapping, err);
	case STASIS_WIRE_HANDLE:
	case STASIS_WIRE_TEAM_DEVICE:
	case STASIS_WIRE_BINDING:
		if (!stasis_member_find(member, object))
			return stasis_topology_refuse(err, member, object,
						      "nothing is known of it but a part");
		return 0;
	case STASIS_WIRE_ACCESS: /* see mappings_check() */
	case STASIS_WIRE_ALLOCATION:
	case STASIS_WIRE_MULTICAST:
		return 0;
	}
	return stasis_topology_refuse(err, member, NULL, "a record of type %d is not known",
				      (int)record->type);
}

static int address_compare(const void *a, const void *b)
{
	const struct stasis_wire_mapping *x = a;
	const struct stasis_wire_mapping *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int access_check(const struct stasis_member *member,
			const struct stasis_wire_mapping *mappings, uint32_t count,
			struct stasis_error *err)
{
	for (uint32_t i = 0; i < member->record_count; i++) {
		const struct stasis_wire_record *record = &member->records[i];
		struct stasis_wire_mapping key = {.address = record->access.address};

		if (record->type == STASIS_WIRE_ACCESS &&
		    !bsearch(&key, mappings, count, sizeof(key), address_compare))
			return stasis_topology_refuse(err, member, NULL,
						      "rights are told of 0x%" PRIx64
						      ", where nothing is mapped",
						      key.address);
	}
	return 0;
}

/* By address: that none overlaps another, and that rights are told of what is mapped. */
static int mappings_check(const struct stasis_member *member, struct stasis_error *err)
{
	CLEANUP(free)
	struct stasis_wire_mapping *mappings = calloc(member->record_count + 1, sizeof(*mappings));
	uint32_t count = 0;

	if (!mappings)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	for (uint32_t i = 0; i < member->record_count; i++) {
		if (member->records[i].type == STASIS_WIRE_MAPPING)
			mappings[count++] = member->records[i].mapping;
	}
	qsort(mappings, count, sizeof(*mappings), address_compare);
	for (uint32_t i = 1; i < count; i++) {
		if (mappings[i].address - mappings[i - 1].address < mappings[i - 1].bytes)
			return stasis_topology_refuse(err, member, &mappings[i].object,
						      "its mapping at 0x%" PRIx64
						      " overlaps another",
						      mappings[i].address);
	}
	return access_check(member, mappings, count, err);
}

int stasis_topology_check_member(const struct stasis_member *member, struct stasis_error *err)
{
	for (uint32_t i = 0; i < member->record_count; i++) {
		if (twin_check(member, &member->records[i], err) != 0 ||
		    reference_check(member, &member->records[i], err) != 0)
			return -1;
	}
	return mappings_check(member, err);
}

/* ---- one object ---- */

static const struct stasis_member *creator_find(const struct stasis_topology *topology,
						const struct stasis_id *creator)
{
	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (stasis_id_equal(&topology->members[i].participant, creator))
			return &topology->members[i];
	}
	return NULL;
}

static int role_check(const struct stasis_group_object *object, const struct stasis_holder *holder,
		      struct stasis_error *err)
{
	const struct stasis_wire_record *record = holder->record;
	bool is_multicast = record->type == STASIS_WIRE_MULTICAST;
	const struct stasis_id *creator =
		is_multicast ? &record->multicast.creator : &record->allocation.creator;
	uint32_t role = is_multicast ? record->multicast.role : record->allocation.role;
	bool is_creator = stasis_id_equal(&holder->member->participant, creator);

	if (is_multicast != object->is_multicast)
		return stasis_topology_refuse(err, holder->member, &object->id,
					      "one process calls it multicast, another memory");
	if (!stasis_id_equal(creator, &object->creator))
		return stasis_topology_refuse(err, holder->member, &object->id,
					      "its processes name different creators");
	if (is_creator != (role == STASIS_WIRE_CREATOR))
		return stasis_topology_refuse(err, holder->member, &object->id,
					      "this process says that it %s, and another is named "
					      "as its creator",
					      is_creator ? "imported what it made" : "made it");
	return 0;
}

/*
 * Ordinals are each process's own; devices are told apart by UUID. Handle types are told to the creator alone: an
 * imported handle has none (driver 580).
 */
static bool is_alike(const struct stasis_wire_allocation *a, const struct stasis_wire_allocation *b)
{
	bool is_on_device = a->location_type == LOCATION_DEVICE;

	return a->bytes == b->bytes && a->location_type == b->location_type &&
	       stasis_id_equal(&a->device, &b->device) && a->compression == b->compression &&
	       a->gpu_direct_rdma == b->gpu_direct_rdma && a->usage == b->usage &&
	       (is_on_device || a->location_id == b->location_id);
}

/* What we carry is exported by descriptor; memory that is not shared may have no handle type at all. */
static int kind_check(const struct stasis_holder *holder, struct stasis_error *err)
{
	const struct stasis_wire_allocation *record = &holder->record->allocation;
	bool is_shared = (record->flags & STASIS_WIRE_IS_SHARED) != 0;

	if (is_shared && record->role == STASIS_WIRE_CREATOR &&
	    record->handle_types != POSIX_DESCRIPTOR)
		return stasis_topology_refuse(
			err, holder->member, &record->object,
			"it is shared by handles of type %u; only descriptors "
			"(1) can be carried",
			record->handle_types);
	if (record->location_type != LOCATION_DEVICE && record->location_type != LOCATION_HOST_NUMA)
		return stasis_topology_refuse(err, holder->member, &record->object,
					      "it lies in a place of type %u; only devices (1) and "
					      "NUMA nodes (3) can be carried",
					      record->location_type);
	return 0;
}

static int holders_check(const struct stasis_group_object *object, struct stasis_error *err)
{
	const struct stasis_wire_record *first = object->holders[0].record;

	for (uint32_t i = 0; i < object->holder_count; i++) {
		const struct stasis_holder *holder = &object->holders[i];

		if (role_check(object, holder, err) != 0 ||
		    (!object->is_multicast && kind_check(holder, err) != 0))
			return -1;
		if (!object->is_multicast &&
		    !is_alike(&first->allocation, &holder->record->allocation))
			return stasis_topology_refuse(err, holder->member, &object->id,
						      "its size or properties are others here "
						      "than in process %d",
						      (int)object->holders[0].member->pid);
	}
	return 0;
}

int stasis_topology_check_object(const struct stasis_topology *topology,
				 const struct stasis_group_object *object, struct stasis_error *err)
{
	const struct stasis_member *holder = object->holders[0].member;
	char creator[STASIS_ID_TEXT_BYTES];

	if (object->bytes == 0)
		return stasis_topology_refuse(err, holder, &object->id, "it is of 0 bytes");
	if (!creator_find(topology, &object->creator))
		return stasis_topology_refuse(
			err, holder, &object->id,
			"participant %s, which made this memory, is not among those named, or has "
			"ended; name every process that shares memory with them, or have this one "
			"let go of what is left of one that has ended",
			stasis_id_format(&object->creator, creator));
	if (holders_check(object, err) != 0)
		return -1;
	return object->is_multicast ? stasis_topology_check_multicast(object, err) : 0;
}
