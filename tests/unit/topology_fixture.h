#ifndef STASIS_TESTS_TOPOLOGY_FIXTURE_H
#define STASIS_TESTS_TOPOLOGY_FIXTURE_H

/*
 * Two processes that share memory, as records: what the tests of the topology begin with, and how they change it. Made
 * anew before each test.
 */

#include "unit.h"

#include "group/topology.h"

#define BLOCK (UINT64_C(2) << 20)
#define BASE UINT64_C(0x7e9000000000)
#define RECORDS_MAX 32

/*
 * Two processes: A made X, which both have mapped, and Y, which is its own; B made Z and has let go of it, A has
 * imported it. M is a multicast object of both, with X and a block of B's own, W, bound to it.
 */
enum { A, B, MEMBERS };

static struct stasis_member members[MEMBERS];
static struct stasis_wire_record records[MEMBERS][RECORDS_MAX];
static struct stasis_topology topology;
static struct stasis_error err;

static inline struct stasis_id id_of(char letter)
{
	struct stasis_id id;

	memset(id.bytes, letter, sizeof(id.bytes));
	return id;
}

static inline struct stasis_wire_record *add(int member, enum stasis_wire_record_type type)
{
	struct stasis_wire_record *record = &records[member][members[member].record_count++];

	assert_true(members[member].record_count <= RECORDS_MAX);
	memset(record, 0, sizeof(*record));
	record->type = type;
	return record;
}

static inline void allocation_add(int member, char object, char creator, uint32_t flags)
{
	struct stasis_wire_allocation *record = &add(member, STASIS_WIRE_ALLOCATION)->allocation;

	record->object = id_of(object);
	record->creator = id_of(creator);
	record->device = id_of('g');
	record->bytes = 2 * BLOCK;
	record->role =
		creator == (member == A ? 'A' : 'B') ? STASIS_WIRE_CREATOR : STASIS_WIRE_IMPORTER;
	record->flags = flags;
	record->location_type = 1;
	/* Ordinals are each process's own. */
	record->location_id = member;
	record->handle_types = 1;
}

static inline void mapping_add(int member, char object, uint64_t index)
{
	struct stasis_wire_mapping *mapping = &add(member, STASIS_WIRE_MAPPING)->mapping;
	struct stasis_wire_access *access;

	mapping->object = id_of(object);
	mapping->address = BASE + index * 2 * BLOCK;
	mapping->bytes = 2 * BLOCK;
	access = &add(member, STASIS_WIRE_ACCESS)->access;
	access->address = mapping->address;
	access->location_type = 1;
	access->rights = 3;
}

static inline void multicast_add(int member, char bound)
{
	struct stasis_wire_multicast *multicast = &add(member, STASIS_WIRE_MULTICAST)->multicast;
	struct stasis_wire_team_device *device;
	struct stasis_wire_binding *binding;

	multicast->object = id_of('M');
	multicast->creator = id_of('A');
	multicast->bytes = 2 * BLOCK;
	multicast->device_count = 2;
	multicast->handle_types = 1;
	multicast->role = member == A ? STASIS_WIRE_CREATOR : STASIS_WIRE_IMPORTER;
	device = &add(member, STASIS_WIRE_TEAM_DEVICE)->team_device;
	device->object = id_of('M');
	device->device = id_of(member == A ? 'g' : 'h');
	binding = &add(member, STASIS_WIRE_BINDING)->binding;
	binding->object = id_of('M');
	binding->member = id_of(bound);
	binding->bytes = 2 * BLOCK;
	binding->kind = STASIS_WIRE_BIND_MEMORY;
	binding->call_version = 1;
}

static inline void group_fill(void)
{
	memset(members, 0, sizeof(members));
	for (int i = 0; i < MEMBERS; i++) {
		members[i].participant = id_of((char)('A' + i));
		members[i].pid = 100 + i;
		members[i].records = records[i];
		(void)snprintf(members[i].build, sizeof(members[i].build), "b1");
	}
	allocation_add(A, 'X', 'A', STASIS_WIRE_IS_SHARED | STASIS_WIRE_HAS_CONTENT);
	mapping_add(A, 'X', 0);
	allocation_add(A, 'Y', 'A', 0);
	mapping_add(A, 'Y', 1);
	allocation_add(A, 'Z', 'B', STASIS_WIRE_IS_SHARED);
	mapping_add(A, 'Z', 2);
	multicast_add(A, 'X');
	allocation_add(B, 'X', 'A', STASIS_WIRE_IS_SHARED);
	mapping_add(B, 'X', 3);
	allocation_add(B, 'W', 'B', STASIS_WIRE_IS_SHARED | STASIS_WIRE_HAS_CONTENT);
	mapping_add(B, 'W', 4);
	multicast_add(B, 'W');
	add(B, STASIS_WIRE_HANDLE)->handle =
		(struct stasis_wire_handle){.object = id_of('X'), .handle = 7, .count = 1};
}

static inline int begin(void **state)
{
	(void)state;
	group_fill();
	memset(&err, 0, sizeof(err));
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	stasis_topology_free(&topology);
	return 0;
}

static inline int build(struct stasis_topology *into)
{
	for (int i = 0; i < MEMBERS; i++) {
		if (stasis_topology_add(into, &members[i], &err) != 0)
			return -1;
	}
	return stasis_topology_check(into, &err);
}

static inline void refused(const char *process, const char *text)
{
	assert_refused(build(&topology), &err, STASIS_REFUSED, text);
	assert_non_null(strstr(err.text, process));
}

/* The first record of that type and object in a member. */
static inline struct stasis_wire_record *find(int member, enum stasis_wire_record_type type,
					      char object)
{
	struct stasis_id id = id_of(object);

	for (uint32_t i = 0; i < members[member].record_count; i++) {
		struct stasis_wire_record *record = &records[member][i];

		/* The object's id stands first in every record that has one. */
		if (record->type == type &&
		    (type == STASIS_WIRE_ACCESS || type == STASIS_WIRE_NOTE ||
		     memcmp(&record->allocation, &id, sizeof(id)) == 0))
			return record;
	}
	fail_msg("no record of type %d", (int)type);
	return &records[member][0]; /* not reached */
}

static inline void drop(struct stasis_wire_record *record, int member)
{
	*record = records[member][--members[member].record_count];
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
