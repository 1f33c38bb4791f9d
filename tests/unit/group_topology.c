/*
 * Description: what participants say of their memory is put together in any order; what cannot be captured is refused
 * with the process and the object; a difference between two topologies is named.
 */

#include "topology_fixture.h"

/* ---- what it makes of a good group ---- */

static void puts_together(void **state)
{
	const struct stasis_group_object *object;
	struct stasis_id id;

	(void)state;
	assert_done(build(&topology), &err);
	assert_int_equal(topology.object_count, 5);
	id = id_of('X');
	object = stasis_topology_find(&topology, &id);
	assert_int_equal(object->holder_count, 2);
	assert_int_equal(object->holders[object->owner_index].member->pid, 100);
	assert_true(object->is_ours);
	id = id_of('Y');
	object = stasis_topology_find(&topology, &id);
	assert_false(object->is_ours);
	assert_int_equal(object->bytes, 2 * BLOCK);
	/* Its creator has let go: who holds it hands it out. */
	id = id_of('Z');
	object = stasis_topology_find(&topology, &id);
	assert_int_equal(object->holder_count, 1);
	assert_int_equal(object->holders[object->owner_index].member->pid, 100);
	assert_true(object->is_ours);
	id = id_of('M');
	assert_true(stasis_topology_find(&topology, &id)->is_multicast);
	id = id_of('Q');
	assert_null(stasis_topology_find(&topology, &id));
}

static void rotate(int member)
{
	struct stasis_wire_record first = records[member][0];
	uint32_t count = members[member].record_count;

	memmove(&records[member][0], &records[member][1], (count - 1) * sizeof(first));
	records[member][count - 1] = first;
}

/* Every rotation of the records of both, with the members in either order. */
static void order_does_not_matter(void **state)
{
	struct stasis_topology other = {.members = NULL};

	(void)state;
	assert_done(build(&topology), &err);
	for (uint32_t i = 0; i < members[A].record_count; i++) {
		for (uint32_t j = 0; j < members[B].record_count; j++) {
			struct stasis_member swap = members[A];

			rotate(B);
			members[A] = members[B];
			members[B] = swap;
			assert_done(build(&other), &err);
			assert_done(stasis_topology_compare(&topology, &other, &err), &err);
			stasis_topology_free(&other);
			members[B] = members[A];
			members[A] = swap;
		}
		rotate(A);
	}
}

/* ---- what it refuses ---- */

static void refuses_members(void **state)
{
	(void)state;
	members[B].pid = members[A].pid;
	refused("process 100", "named twice");
	stasis_topology_free(&topology);
	begin(NULL);
	members[B].participant = members[A].participant;
	refused("process 101", "a copy of the other");
	stasis_topology_free(&topology);
	begin(NULL);
	members[B].build[0] = 'c';
	refused("process 101", "another build");
	stasis_topology_free(&topology);
	memset(&err, 0, sizeof(err));
	assert_refused(stasis_topology_check(&topology, &err), &err, STASIS_REFUSED,
		       "no process was named");
}

struct change {
	const char *name;
	void (*make)(void);
	const char *process;
	const char *text;
};

static void creator_missing(void)
{
	find(A, STASIS_WIRE_ALLOCATION, 'Z')->allocation.creator = id_of('C');
}

static void creators_differ(void)
{
	find(B, STASIS_WIRE_ALLOCATION, 'X')->allocation.creator = id_of('B');
}

static void role_wrong(void)
{
	find(B, STASIS_WIRE_ALLOCATION, 'X')->allocation.role = STASIS_WIRE_CREATOR;
}

static void size_differs(void)
{
	find(B, STASIS_WIRE_ALLOCATION, 'X')->allocation.bytes = 4 * BLOCK;
}

static void device_differs(void)
{
	find(B, STASIS_WIRE_ALLOCATION, 'X')->allocation.device = id_of('h');
}

static void size_zero(void)
{
	drop(find(A, STASIS_WIRE_MAPPING, 'Y'), A);
	members[A].record_count = 0;
	allocation_add(A, 'Y', 'A', 0);
	find(A, STASIS_WIRE_ALLOCATION, 'Y')->allocation.bytes = 0;
	members[B].record_count = 0;
}

static void object_twice(void)
{
	allocation_add(A, 'X', 'A', 0);
}

static void mapping_unknown(void)
{
	find(A, STASIS_WIRE_MAPPING, 'Y')->mapping.object = id_of('Q');
}

static void mapping_beyond(void)
{
	find(A, STASIS_WIRE_MAPPING, 'Y')->mapping.offset = BLOCK;
}

static void mapping_wraps(void)
{
	find(A, STASIS_WIRE_MAPPING, 'Y')->mapping.offset = UINT64_MAX - BLOCK;
}

static void mapping_unaligned(void)
{
	find(A, STASIS_WIRE_MAPPING, 'Y')->mapping.address += 8;
}

static void mappings_overlap(void)
{
	struct stasis_wire_record *mapping = find(A, STASIS_WIRE_MAPPING, 'Y');

	/* Its right stands behind it. */
	mapping[1].access.address -= BLOCK;
	mapping->mapping.address -= BLOCK;
}

static void access_of_nothing(void)
{
	find(A, STASIS_WIRE_ACCESS, 'X')->access.address = BASE + 100 * BLOCK;
}

static void handle_of_nothing(void)
{
	find(B, STASIS_WIRE_HANDLE, 'X')->handle.object = id_of('Q');
}

static void note_add(uint32_t kind, const char *text)
{
	struct stasis_wire_note *note = &add(B, STASIS_WIRE_NOTE)->note;

	note->kind = kind;
	note->count = 2;
	(void)snprintf(note->text, sizeof(note->text), "%s", text);
}

static void foreign_import(void)
{
	note_add(STASIS_WIRE_NOTE_FOREIGN_IMPORT, "x");
}

static void unsupported(void)
{
	note_add(STASIS_WIRE_NOTE_UNSUPPORTED, "what it uses cannot be captured");
}

static void team_incomplete(void)
{
	drop(find(B, STASIS_WIRE_TEAM_DEVICE, 'M'), B);
	drop(find(B, STASIS_WIRE_BINDING, 'M'), B);
}

static void nothing_bound(void)
{
	drop(find(B, STASIS_WIRE_BINDING, 'M'), B);
}

static void binding_elsewhere(void)
{
	struct stasis_wire_binding *second = &add(B, STASIS_WIRE_BINDING)->binding;

	*second = find(B, STASIS_WIRE_BINDING, 'M')->binding;
	second->ordinal = 5;
}

static void binding_beyond(void)
{
	find(B, STASIS_WIRE_BINDING, 'M')->binding.member_offset = BLOCK;
}

static void binding_unknown(void)
{
	find(B, STASIS_WIRE_BINDING, 'M')->binding.member = id_of('Q');
}

static void bindings_overlap(void)
{
	struct stasis_wire_binding *binding = &find(B, STASIS_WIRE_BINDING, 'M')->binding;
	struct stasis_wire_binding *second = &add(B, STASIS_WIRE_BINDING)->binding;

	*second = *binding;
	second->offset = BLOCK;
}

static void binding_far(void)
{
	find(B, STASIS_WIRE_BINDING, 'M')->binding.offset = UINT64_C(512) << 20;
}

static void device_twice(void)
{
	find(B, STASIS_WIRE_TEAM_DEVICE, 'M')->team_device.device = id_of('g');
}

static void handles_of_fabric(void)
{
	find(A, STASIS_WIRE_ALLOCATION, 'X')->allocation.handle_types = 8;
}

static void place_odd(void)
{
	find(A, STASIS_WIRE_ALLOCATION, 'Y')->allocation.location_type = 2;
}

static void team_differs(void)
{
	find(B, STASIS_WIRE_MULTICAST, 'M')->multicast.device_count = 3;
}

static void team_of_none(void)
{
	find(A, STASIS_WIRE_MULTICAST, 'M')->multicast.flags = 1;
	find(B, STASIS_WIRE_MULTICAST, 'M')->multicast.flags = 1;
}

static void team_of_fabric(void)
{
	find(A, STASIS_WIRE_MULTICAST, 'M')->multicast.handle_types = 9;
	find(B, STASIS_WIRE_MULTICAST, 'M')->multicast.handle_types = 9;
}

/* All that A has of it is at the end of its records. */
static void team_without_creator(void)
{
	assert_int_equal(records[A][members[A].record_count - 3].type, STASIS_WIRE_MULTICAST);
	members[A].record_count -= 3;
}

static void kinds_differ(void)
{
	find(B, STASIS_WIRE_ALLOCATION, 'X')->type = STASIS_WIRE_MULTICAST;
	for (uint32_t i = members[B].record_count; i > 0; i--) {
		if (records[B][i - 1].type == STASIS_WIRE_MULTICAST &&
		    records[B][i - 1].multicast.object.bytes[0] == 'X')
			records[B][i - 1].multicast =
				(struct stasis_wire_multicast){.object = id_of('X'),
							       .creator = id_of('A'),
							       .bytes = 2 * BLOCK,
							       .device_count = 1,
							       .handle_types = 1,
							       .role = STASIS_WIRE_IMPORTER};
	}
}

static const struct change changes[] = {
	{"creator_missing", creator_missing, "process 100: object 5a5a", "not among those named"},
	{"creators_differ", creators_differ, "process 101: object 5858", "different creators"},
	{"role_wrong", role_wrong, "process 101: object 5858", "another is named as its creator"},
	{"size_differs", size_differs, "process 101: object 5858", "others here than"},
	{"device_differs", device_differs, "process 101: object 5858", "others here than"},
	{"size_zero", size_zero, "process 100: object 5959", "0 bytes"},
	{"object_twice", object_twice, "process 100: object 5858", "told of twice"},
	{"mapping_unknown", mapping_unknown, "process 100: object 5151", "nothing is known"},
	{"mapping_beyond", mapping_beyond, "process 100: object 5959", "goes beyond"},
	{"mapping_wraps", mapping_wraps, "process 100: object 5959", "goes beyond"},
	{"mapping_unaligned", mapping_unaligned, "process 100: object 5959", "with a page"},
	{"mappings_overlap", mappings_overlap, "process 100: object 5959", "overlaps another"},
	{"access_of_nothing", access_of_nothing, "process 100", "nothing is mapped"},
	{"handle_of_nothing", handle_of_nothing, "process 101: object 5151", "but a part"},
	{"foreign_import", foreign_import, "process 101", "without the interposer"},
	{"unsupported", unsupported, "process 101", "what it uses cannot be captured"},
	{"team_incomplete", team_incomplete, "object 4d4d", "1 of 2 devices"},
	{"nothing_bound", nothing_bound, "process 101: object 4d4d", "nothing is bound"},
	{"binding_elsewhere", binding_elsewhere, "process 101: object 4d4d", "did not add"},
	{"binding_beyond", binding_beyond, "process 101: object 4d4d", "goes beyond"},
	{"binding_unknown", binding_unknown, "process 101: object 4d4d", "nothing is known"},
	{"bindings_overlap", bindings_overlap, "process 101: object 4d4d", "overlap"},
	{"binding_far", binding_far, "process 101: object 4d4d", "goes beyond its"},
	{"device_twice", device_twice, "object 4d4d", "in its team twice"},
	{"handles_of_fabric", handles_of_fabric, "process 100: object 5858", "handles of type 8"},
	{"place_odd", place_odd, "process 100: object 5959", "a place of type 2"},
	{"team_differs", team_differs, "process 101: object 4d4d", "others here than"},
	{"team_of_none", team_of_none, "object 4d4d", "cannot be captured"},
	{"team_of_fabric", team_of_fabric, "object 4d4d", "handle types 9"},
	{"team_without_creator", team_without_creator, "process 101: object 4d4d",
	 "has let go of it"},
	{"kinds_differ", kinds_differ, "process 101: object 5858", ""},
};

static void refuses_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		begin(NULL);
		changes[i].make();
		if (build(&topology) == 0)
			fail_msg("%s was not refused", changes[i].name);
		if (!strstr(err.text, changes[i].process) || !strstr(err.text, changes[i].text))
			fail_msg("%s: %s", changes[i].name, err.text);
		assert_int_equal(err.status, STASIS_REFUSED);
		stasis_topology_free(&topology);
	}
}

/* What is refused is put together all the same: there is something to tell of. */
static void assembles_what_is_refused(void **state)
{
	struct stasis_id id = id_of('Z');

	(void)state;
	assert_refused(stasis_topology_assemble(&topology, &err), &err, STASIS_REFUSED,
		       "no process was named");
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		begin(NULL);
		changes[i].make();
		for (int j = 0; j < MEMBERS; j++)
			assert_done(stasis_topology_add(&topology, &members[j], &err), &err);
		assert_done(stasis_topology_assemble(&topology, &err), &err);
		assert_true(topology.object_count > 0);
		/* Not a second time. */
		assert_done(stasis_topology_assemble(&topology, &err), &err);
		if (changes[i].make == creator_missing)
			assert_int_equal(stasis_topology_find(&topology, &id)->bytes, 2 * BLOCK);
		if (stasis_topology_check(&topology, &err) == 0)
			fail_msg("%s was not refused", changes[i].name);
		stasis_topology_free(&topology);
	}
}

/* ---- comparing ---- */

static void right_taken(void)
{
	find(B, STASIS_WIRE_ACCESS, 'X')->access.rights = 1;
}

static void mapping_moved(void)
{
	find(A, STASIS_WIRE_MAPPING, 'Y')->mapping.address = BASE + 40 * BLOCK;
	for (uint32_t i = members[A].record_count; i > 0; i--) {
		if (records[A][i - 1].type == STASIS_WIRE_ACCESS)
			drop(&records[A][i - 1], A);
	}
}

static void handle_gone(void)
{
	drop(find(B, STASIS_WIRE_HANDLE, 'X'), B);
}

static void handle_new(void)
{
	add(A, STASIS_WIRE_HANDLE)->handle =
		(struct stasis_wire_handle){.object = id_of('X'), .handle = 9, .count = 1};
}

static void build_other(void)
{
	members[A].build[1] = '2';
	members[B].build[1] = '2';
}

static void other_participant(void)
{
	members[A].record_count = 0;
	members[B].record_count = 0;
	members[B].participant = id_of('C');
}

static const struct change differences[] = {
	{"right_taken", right_taken, "process 101", "the access right is not"},
	{"mapping_moved", mapping_moved, "process 100", "is missing"},
	{"handle_gone", handle_gone, "process 101: object 5858", "captured handle is missing"},
	{"handle_new", handle_new, "process 100: object 5858", "handle that was not captured"},
	{"build_other", build_other, "process 100", "is build b2, and b1 when"},
	{"other_participant", other_participant, "process 101", "was not captured with"},
};

static void names_differences(void **state)
{
	struct stasis_topology captured = {.members = NULL};

	(void)state;
	assert_done(build(&captured), &err);
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		begin(NULL);
		differences[i].make();
		assert_done(build(&topology), &err);
		assert_int_equal(stasis_topology_compare(&captured, &topology, &err), -1);
		if (!strstr(err.text, differences[i].process) ||
		    !strstr(err.text, differences[i].text))
			fail_msg("%s: %s", differences[i].name, err.text);
		stasis_topology_free(&topology);
	}
	begin(NULL);
	assert_done(stasis_topology_add(&topology, &members[A], &err), &err);
	assert_refused(stasis_topology_compare(&captured, &topology, &err), &err, STASIS_REFUSED,
		       "2 processes were captured, and there are 1");
	stasis_topology_free(&captured);
}

/* What a rebuild changes by right, and remarks. */
static void overlooks_what_may_change(void **state)
{
	struct stasis_topology captured = {.members = NULL};

	(void)state;
	assert_done(build(&captured), &err);
	find(A, STASIS_WIRE_ALLOCATION, 'X')->allocation.flags |= STASIS_WIRE_IS_REATTACHED;
	note_add(STASIS_WIRE_NOTE_REMARK, "x");
	note_add(STASIS_WIRE_NOTE_UNKNOWN_FUNCTION, "cuNew");
	members[A].pid = 500;
	assert_done(build(&topology), &err);
	assert_done(stasis_topology_compare(&captured, &topology, &err), &err);
	stasis_topology_free(&captured);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(puts_together),
		TEST(order_does_not_matter),
		TEST(refuses_members),
		TEST(refuses_by_name),
		TEST(assembles_what_is_refused),
		TEST(names_differences),
		TEST(overlooks_what_may_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
