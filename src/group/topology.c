/* See topology.h: members, their records in order, and the objects that these name. */

#include "group/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "group/topology_parts.h"

int stasis_topology_refuse(struct stasis_error *err, const struct stasis_member *member,
			   const struct stasis_id *object, const char *format, ...)
{
	char text[512];
	char name[STASIS_PROCESS_NAME_BYTES + 3] = "";
	char id[STASIS_ID_TEXT_BYTES];
	va_list arguments;

	if (member->name[0] != '\0')
		(void)snprintf(name, sizeof(name), " (%s)", member->name);
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (object)
		return stasis_fail(err, STASIS_REFUSED, "process %d%s: object %s: %s",
				   (int)member->pid, name, stasis_id_format(object, id), text);
	return stasis_fail(err, STASIS_REFUSED, "process %d%s: %s", (int)member->pid, name, text);
}

static int id_compare(const struct stasis_id *a, const struct stasis_id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static int number_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

const struct stasis_id *stasis_record_object(const struct stasis_wire_record *record)
{
	switch (record->type) {
	case STASIS_WIRE_ALLOCATION:
		return &record->allocation.object;
	case STASIS_WIRE_HANDLE:
		return &record->handle.object;
	case STASIS_WIRE_MAPPING:
		return &record->mapping.object;
	case STASIS_WIRE_MULTICAST:
		return &record->multicast.object;
	case STASIS_WIRE_TEAM_DEVICE:
		return &record->team_device.object;
	case STASIS_WIRE_BINDING:
		return &record->binding.object;
	case STASIS_WIRE_ACCESS:
	case STASIS_WIRE_NOTE:
		return NULL;
	}
	return NULL;
}

/* What tells two records of one type and object apart. */
static uint64_t first_key(const struct stasis_wire_record *record)
{
	switch (record->type) {
	case STASIS_WIRE_HANDLE:
		return record->handle.handle;
	case STASIS_WIRE_MAPPING:
		return record->mapping.address;
	case STASIS_WIRE_ACCESS:
		return record->access.address;
	case STASIS_WIRE_TEAM_DEVICE:
		return (uint32_t)record->team_device.ordinal;
	case STASIS_WIRE_BINDING:
		return (uint32_t)record->binding.ordinal;
	case STASIS_WIRE_NOTE:
		return record->note.kind;
	case STASIS_WIRE_ALLOCATION:
	case STASIS_WIRE_MULTICAST:
		return 0;
	}
	return 0;
}

static uint64_t second_key(const struct stasis_wire_record *record)
{
	if (record->type == STASIS_WIRE_ACCESS)
		return (uint64_t)record->access.location_type << 32 |
		       (uint32_t)record->access.location_id;
	if (record->type == STASIS_WIRE_BINDING)
		return record->binding.offset;
	return 0;
}

int stasis_record_compare(const void *a, const void *b)
{
	const struct stasis_wire_record *x = a;
	const struct stasis_wire_record *y = b;
	const struct stasis_id *x_object = stasis_record_object(x);
	const struct stasis_id *y_object = stasis_record_object(y);
	int order = number_compare(x->type, y->type);

	if (order == 0 && x_object && y_object)
		order = id_compare(x_object, y_object);
	if (order == 0)
		order = number_compare(first_key(x), first_key(y));
	if (order == 0)
		order = number_compare(second_key(x), second_key(y));
	if (order == 0 && x->type == STASIS_WIRE_NOTE)
		order = strcmp(x->note.text, y->note.text);
	return order;
}

static const struct stasis_wire_record *record_find(const struct stasis_member *member,
						    const struct stasis_wire_record *key)
{
	return member->record_count > 0 ? bsearch(key, member->records, member->record_count,
						  sizeof(*key), stasis_record_compare)
					: NULL;
}

const struct stasis_wire_record *stasis_member_find(const struct stasis_member *member,
						    const struct stasis_id *object)
{
	struct stasis_wire_record key = {.type = STASIS_WIRE_ALLOCATION,
					 .allocation = {.object = *object}};
	const struct stasis_wire_record *found = record_find(member, &key);

	if (found)
		return found;
	key = (struct stasis_wire_record){.type = STASIS_WIRE_MULTICAST,
					  .multicast = {.object = *object}};
	return record_find(member, &key);
}

/* ---- members ---- */

static int member_refuse_twin(const struct stasis_topology *topology,
			      const struct stasis_member *member, struct stasis_error *err)
{
	for (uint32_t i = 0; i < topology->member_count; i++) {
		const struct stasis_member *other = &topology->members[i];

		if (other->pid == member->pid)
			return stasis_topology_refuse(err, member, NULL, "it is named twice");
		if (stasis_id_equal(&other->participant, &member->participant))
			return stasis_topology_refuse(
				err, member, NULL,
				"it is the same participant as process %d: one is a copy of the "
				"other, restored beside it",
				(int)other->pid);
	}
	return 0;
}

int stasis_topology_add(struct stasis_topology *topology, const struct stasis_member *member,
			struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_record *records = NULL;
	struct stasis_member *members;

	assert(!topology->holders);
	if (topology->member_count == STASIS_WIRE_PEERS_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "the group has more than %d processes, which is the most that "
				   "can be captured together",
				   STASIS_WIRE_PEERS_MAX);
	if (member_refuse_twin(topology, member, err) != 0)
		return -1;
	records = calloc(member->record_count + 1, sizeof(*records));
	members = realloc(topology->members, (topology->member_count + 1) * sizeof(*members));
	if (members)
		topology->members = members;
	if (!records || !members)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "add process %d to the group",
					(int)member->pid);
	if (member->record_count > 0)
		memcpy(records, member->records, member->record_count * sizeof(*records));
	qsort(records, member->record_count, sizeof(*records), stasis_record_compare);
	members[topology->member_count] = *member;
	members[topology->member_count++].records = ptr_steal(&records);
	return 0;
}

void stasis_topology_free(struct stasis_topology *topology)
{
	for (uint32_t i = 0; i < topology->member_count; i++)
		free(topology->members[i].records);
	free(topology->members);
	free(topology->objects);
	free(topology->holders);
	*topology = (struct stasis_topology){.members = NULL};
}

/* ---- objects ---- */

static bool is_definition(const struct stasis_wire_record *record)
{
	return record->type == STASIS_WIRE_ALLOCATION || record->type == STASIS_WIRE_MULTICAST;
}

static int member_compare(const void *a, const void *b)
{
	return id_compare(&((const struct stasis_member *)a)->participant,
			  &((const struct stasis_member *)b)->participant);
}

/* By object, then by participant: the members are in order already, and neighbours in memory. */
static int holder_compare(const void *a, const void *b)
{
	const struct stasis_holder *x = a;
	const struct stasis_holder *y = b;
	const struct stasis_id *x_object = stasis_record_object(x->record);
	const struct stasis_id *y_object = stasis_record_object(y->record);
	/* Both are records of objects. */
	int order = x_object && y_object ? id_compare(x_object, y_object) : 0;

	return order != 0 ? order : (x->member > y->member) - (x->member < y->member);
}

static uint32_t holders_count(const struct stasis_topology *topology)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < topology->member_count; i++) {
		for (uint32_t j = 0; j < topology->members[i].record_count; j++)
			count += is_definition(&topology->members[i].records[j]);
	}
	return count;
}

static void holders_fill(struct stasis_topology *topology)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < topology->member_count; i++) {
		const struct stasis_member *member = &topology->members[i];

		for (uint32_t j = 0; j < member->record_count; j++) {
			if (is_definition(&member->records[j]))
				topology->holders[count++] = (struct stasis_holder){
					.member = member, .record = &member->records[j]};
		}
	}
	qsort(topology->holders, count, sizeof(topology->holders[0]), holder_compare);
}

static uint32_t owner_elect(const struct stasis_group_object *object)
{
	for (uint32_t i = 0; i < object->holder_count; i++) {
		if (stasis_id_equal(&object->holders[i].member->participant, &object->creator))
			return i;
	}
	return 0;
}

static bool is_ours(const struct stasis_group_object *object)
{
	if (object->is_multicast)
		return true;
	for (uint32_t i = 0; i < object->holder_count; i++) {
		const struct stasis_wire_allocation *record =
			&object->holders[i].record->allocation;

		/* Whoever calls it multicast, which is refused later, cannot make it private. */
		if (object->holders[i].record->type != STASIS_WIRE_ALLOCATION ||
		    record->role == STASIS_WIRE_IMPORTER ||
		    (record->flags & (STASIS_WIRE_IS_SHARED | STASIS_WIRE_HAS_CONTENT)) != 0)
			return true;
	}
	return false;
}

static void object_fill(struct stasis_group_object *object, const struct stasis_holder *holders,
			uint32_t count)
{
	const struct stasis_wire_record *first = holders[0].record;

	*object = (struct stasis_group_object){
		.id = *stasis_record_object(first),
		.holders = holders,
		.holder_count = count,
		.is_multicast = first->type == STASIS_WIRE_MULTICAST,
	};
	object->creator =
		object->is_multicast ? first->multicast.creator : first->allocation.creator;
	object->bytes = object->is_multicast ? first->multicast.bytes : first->allocation.bytes;
	object->owner_index = owner_elect(object);
	object->is_ours = is_ours(object);
}

static int objects_make(struct stasis_topology *topology, struct stasis_error *err)
{
	uint32_t count = holders_count(topology);
	CLEANUP(free) struct stasis_holder *holders = calloc(count + 1, sizeof(*holders));
	CLEANUP(free) struct stasis_group_object *objects = calloc(count + 1, sizeof(*objects));

	if (!holders || !objects)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	topology->holders = ptr_steal(&holders);
	topology->objects = ptr_steal(&objects);
	holders_fill(topology);
	for (uint32_t at = 0; at < count;) {
		const struct stasis_holder *first = &topology->holders[at];
		uint32_t same = 1;

		while (at + same < count &&
		       stasis_id_equal(stasis_record_object(first[0].record),
				       stasis_record_object(first[same].record)))
			same++;
		object_fill(&topology->objects[topology->object_count++], first, same);
		at += same;
	}
	return 0;
}

static int object_compare(const void *key, const void *object)
{
	return id_compare(key, &((const struct stasis_group_object *)object)->id);
}

const struct stasis_group_object *stasis_topology_find(const struct stasis_topology *topology,
						       const struct stasis_id *id)
{
	return topology->object_count > 0 ? bsearch(id, topology->objects, topology->object_count,
						    sizeof(topology->objects[0]), object_compare)
					  : NULL;
}

int stasis_topology_assemble(struct stasis_topology *topology, struct stasis_error *err)
{
	if (topology->member_count == 0)
		return stasis_fail(err, STASIS_REFUSED, "no process was named");
	if (topology->holders)
		return 0;
	qsort(topology->members, topology->member_count, sizeof(topology->members[0]),
	      member_compare);
	return objects_make(topology, err);
}

int stasis_topology_check(struct stasis_topology *topology, struct stasis_error *err)
{
	if (stasis_topology_assemble(topology, err) != 0)
		return -1;
	for (uint32_t i = 0; i < topology->member_count; i++) {
		const struct stasis_member *member = &topology->members[i];

		if (strcmp(member->build, topology->members[0].build) != 0)
			return stasis_topology_refuse(
				err, member, NULL,
				"its interposer is of another build (%s) than that of process %d "
				"(%s); start both with the same release",
				member->build, (int)topology->members[0].pid,
				topology->members[0].build);
		if (stasis_topology_check_member(member, err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < topology->object_count; i++) {
		if (stasis_topology_check_object(topology, &topology->objects[i], err) != 0)
			return -1;
	}
	return 0;
}

/* ---- needs ---- */

static int device_compare(const void *a, const void *b)
{
	return id_compare(&((const struct stasis_device_need *)a)->device,
			  &((const struct stasis_device_need *)b)->device);
}

/* The definition of an object with contents that are ours; NULL for one without. */
static const struct stasis_wire_allocation *content_of(const struct stasis_group_object *object)
{
	const struct stasis_wire_record *record = object->holders[object->owner_index].record;

	if (!object->is_ours || record->type != STASIS_WIRE_ALLOCATION)
		return NULL;
	return &record->allocation;
}

/* Every sum is at most the total, whose overflow is refused first. */
static int need_add(struct stasis_needs *needs, const struct stasis_wire_allocation *content,
		    struct stasis_error *err)
{
	if (__builtin_add_overflow(needs->bytes, content->bytes, &needs->bytes))
		return stasis_fail(err, STASIS_REFUSED,
				   "the contents of all objects exceed 64 bits in bytes");
	if (content->location_type != LOCATION_DEVICE) {
		needs->host_bytes += content->bytes;
		needs->host_object_count++;
		return 0;
	}
	needs->devices[needs->device_count++] = (struct stasis_device_need){
		.device = content->device, .bytes = content->bytes, .object_count = 1};
	return 0;
}

/* One entry an object becomes one entry a device. */
static void needs_merge(struct stasis_needs *needs)
{
	uint32_t count = 0;

	qsort(needs->devices, needs->device_count, sizeof(needs->devices[0]), device_compare);
	for (uint32_t i = 0; i < needs->device_count; i++) {
		struct stasis_device_need *last = &needs->devices[count > 0 ? count - 1 : 0];

		if (count > 0 && stasis_id_equal(&last->device, &needs->devices[i].device)) {
			last->bytes += needs->devices[i].bytes;
			last->object_count++;
		} else {
			needs->devices[count++] = needs->devices[i];
		}
	}
	needs->device_count = count;
}

int stasis_topology_needs(const struct stasis_topology *topology, struct stasis_needs *ret_needs,
			  struct stasis_error *err)
{
	CLEANUP(needs) struct stasis_needs needs = {.devices = NULL};

	needs.devices = calloc((size_t)topology->object_count + 1, sizeof(needs.devices[0]));
	if (!needs.devices)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	for (uint32_t i = 0; i < topology->object_count; i++) {
		const struct stasis_wire_allocation *content = content_of(&topology->objects[i]);

		if (content && need_add(&needs, content, err) != 0)
			return -1;
	}
	needs_merge(&needs);
	*ret_needs = needs;
	needs = (struct stasis_needs){.devices = NULL};
	return 0;
}

void stasis_needs_free(struct stasis_needs *needs)
{
	free(needs->devices);
	*needs = (struct stasis_needs){.devices = NULL};
}
