/* What of a multicast object cannot be captured: it must be whole, as the driver would have it; see topology.h. */

#include <inttypes.h>

#include "group/topology_parts.h"

#define POSIX_DESCRIPTOR 1u /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

/* Drivers make the object as large as whole pages of the fabric, and programs bind up to there (driver 615). */
#define FABRIC_PAGE_BYTES (UINT64_C(512) << 20)

static int properties_check(const struct stasis_group_object *object,
			    const struct stasis_holder *holder, struct stasis_error *err)
{
	const struct stasis_wire_multicast *first = &object->holders[0].record->multicast;
	const struct stasis_wire_multicast *here = &holder->record->multicast;

	if (here->bytes != first->bytes || here->device_count != first->device_count ||
	    here->handle_types != first->handle_types || here->flags != first->flags)
		return stasis_topology_refuse(err, holder->member, &object->id,
					      "its size, team or handle types are others here than "
					      "in process %d",
					      (int)object->holders[0].member->pid);
	/* One that cannot be exported is a team of one process alone. */
	if (here->device_count == 0 || here->flags != 0 ||
	    (here->handle_types & ~POSIX_DESCRIPTOR) != 0)
		return stasis_topology_refuse(err, holder->member, &object->id,
					      "a multicast object of %u devices, handle types %u, "
					      "flags %" PRIu64 " cannot be captured",
					      here->device_count, here->handle_types, here->flags);
	return 0;
}

static bool is_part(const struct stasis_wire_record *record, enum stasis_wire_record_type type,
		    const struct stasis_id *object)
{
	return record->type == type && stasis_id_equal(stasis_record_object(record), object);
}

static int32_t ordinal_of(const struct stasis_wire_record *record)
{
	return record->type == STASIS_WIRE_BINDING ? record->binding.ordinal
						   : record->team_device.ordinal;
}

/* Whether the process has added this device, or bound something there. */
static bool has_part(const struct stasis_holder *holder, enum stasis_wire_record_type type,
		     const struct stasis_id *object, int32_t ordinal)
{
	for (uint32_t i = 0; i < holder->member->record_count; i++) {
		const struct stasis_wire_record *record = &holder->member->records[i];

		if (is_part(record, type, object) && ordinal_of(record) == ordinal)
			return true;
	}
	return false;
}

static int member_check(const struct stasis_holder *holder,
			const struct stasis_wire_binding *binding, struct stasis_error *err)
{
	static const struct stasis_id none;
	const struct stasis_wire_record *member;

	if (stasis_id_equal(&binding->member, &none))
		return 0;
	member = stasis_member_find(holder->member, &binding->member);
	if (!member || member->type != STASIS_WIRE_ALLOCATION)
		return stasis_topology_refuse(err, holder->member, &binding->object,
					      "memory is bound of which nothing is known");
	if (binding->bytes > member->allocation.bytes ||
	    binding->member_offset > member->allocation.bytes - binding->bytes)
		return stasis_topology_refuse(err, holder->member, &binding->object,
					      "a binding goes beyond the %" PRIu64
					      " bytes of its memory",
					      member->allocation.bytes);
	return 0;
}

static uint64_t room_of(const struct stasis_wire_record *record)
{
	uint64_t bytes = record->multicast.bytes;

	return bytes > UINT64_MAX - FABRIC_PAGE_BYTES
		       ? bytes
		       : (bytes + FABRIC_PAGE_BYTES - 1) / FABRIC_PAGE_BYTES * FABRIC_PAGE_BYTES;
}

/* Records of one object and device are neighbours, by offset. */
static int binding_check(const struct stasis_holder *holder,
			 const struct stasis_wire_record *record, struct stasis_error *err)
{
	const struct stasis_wire_binding *binding = &record->binding;

	if (!has_part(holder, STASIS_WIRE_TEAM_DEVICE, &binding->object, binding->ordinal))
		return stasis_topology_refuse(err, holder->member, &binding->object,
					      "a binding is on device %d, which this process did "
					      "not add",
					      binding->ordinal);
	if (record > holder->member->records &&
	    is_part(record - 1, STASIS_WIRE_BINDING, &binding->object) &&
	    record[-1].binding.ordinal == binding->ordinal &&
	    binding->offset - record[-1].binding.offset < record[-1].binding.bytes)
		return stasis_topology_refuse(err, holder->member, &binding->object,
					      "two of its bindings on device %d overlap",
					      binding->ordinal);
	if (binding->offset > room_of(holder->record) - binding->bytes ||
	    binding->bytes > room_of(holder->record))
		return stasis_topology_refuse(err, holder->member, &binding->object,
					      "a binding at %" PRIu64 " goes beyond its %" PRIu64
					      " bytes",
					      binding->offset, holder->record->multicast.bytes);
	return member_check(holder, binding, err);
}

/* Counts the devices that this process added. */
static int holder_check(const struct stasis_group_object *object,
			const struct stasis_holder *holder, uint32_t *device_count,
			struct stasis_error *err)
{
	for (uint32_t i = 0; i < holder->member->record_count; i++) {
		const struct stasis_wire_record *record = &holder->member->records[i];

		if (is_part(record, STASIS_WIRE_BINDING, &object->id) &&
		    binding_check(holder, record, err) != 0)
			return -1;
		if (!is_part(record, STASIS_WIRE_TEAM_DEVICE, &object->id))
			continue;
		++*device_count;
		if (!has_part(holder, STASIS_WIRE_BINDING, &object->id,
			      record->team_device.ordinal))
			return stasis_topology_refuse(err, holder->member, &object->id,
						      "device %d is in its team, and nothing is "
						      "bound there yet",
						      record->team_device.ordinal);
	}
	return 0;
}

static uint32_t devices_of_uuid(const struct stasis_group_object *object,
				const struct stasis_id *uuid)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < object->holder_count; i++) {
		const struct stasis_member *member = object->holders[i].member;

		for (uint32_t j = 0; j < member->record_count; j++)
			count += is_part(&member->records[j], STASIS_WIRE_TEAM_DEVICE,
					 &object->id) &&
				 stasis_id_equal(&member->records[j].team_device.device, uuid);
	}
	return count;
}

/* Ordinals are each process's own: the same device may have several. */
static int twins_check(const struct stasis_group_object *object, struct stasis_error *err)
{
	for (uint32_t i = 0; i < object->holder_count; i++) {
		const struct stasis_member *member = object->holders[i].member;

		for (uint32_t j = 0; j < member->record_count; j++) {
			const struct stasis_wire_record *record = &member->records[j];

			if (is_part(record, STASIS_WIRE_TEAM_DEVICE, &object->id) &&
			    devices_of_uuid(object, &record->team_device.device) > 1)
				return stasis_topology_refuse(err, member, &object->id,
							      "device %d is in its team twice",
							      record->team_device.ordinal);
		}
	}
	return 0;
}

/* It alone makes it anew and hands it out, which for memory any holder can. */
static int creator_check(const struct stasis_group_object *object, struct stasis_error *err)
{
	const struct stasis_holder *owner = &object->holders[object->owner_index];

	if (stasis_id_equal(&owner->member->participant, &object->creator))
		return 0;
	return stasis_topology_refuse(err, owner->member, &object->id,
				      "the process that made this multicast object has let go of "
				      "it, and no other can make it anew");
}

int stasis_topology_check_multicast(const struct stasis_group_object *object,
				    struct stasis_error *err)
{
	uint32_t device_count = 0;

	if (creator_check(object, err) != 0)
		return -1;
	for (uint32_t i = 0; i < object->holder_count; i++) {
		if (properties_check(object, &object->holders[i], err) != 0 ||
		    holder_check(object, &object->holders[i], &device_count, err) != 0)
			return -1;
	}
	if (twins_check(object, err) != 0)
		return -1;
	if (device_count != object->holders[0].record->multicast.device_count)
		return stasis_topology_refuse(err, object->holders[0].member, &object->id,
					      "its team is not complete: %u of %u devices were "
					      "added by the processes named; name them all, or "
					      "capture later",
					      device_count,
					      object->holders[0].record->multicast.device_count);
	return 0;
}
