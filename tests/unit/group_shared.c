/*
 * Description: the text of shared.json is read back as it was written, whatever the members say of their memory, and
 * nothing is written that would be refused.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "group_shared_fixture.h"

#define MEMBERS_MAX 5
#define RECORDS_MAX 40
#define ROUNDS 300

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t random_below(uint64_t end)
{
	return random_next() % end;
}

/* Small, large, and at the border beyond which numbers become texts. */
static uint64_t random_wide(void)
{
	static const uint64_t edges[] = {0,
					 1,
					 4096,
					 (UINT64_C(1) << 53) - 1,
					 UINT64_C(1) << 53,
					 (UINT64_C(1) << 53) + 1,
					 UINT64_MAX - 4096};
	uint64_t edge = edges[random_below(ARRAY_COUNT(edges))];

	return random_below(2) == 0 ? edge : random_next() >> random_below(64);
}

static struct stasis_id random_id(void)
{
	struct stasis_id id;

	for (size_t i = 0; i < sizeof(id.bytes); i++)
		id.bytes[i] = (uint8_t)(1 + random_below(255));
	return id;
}

static struct stasis_id random_id_or_none(void)
{
	return random_below(2) == 0 ? random_id() : (struct stasis_id){{0}};
}

/* Bytes, and an offset such that their end is a number. */
static void random_range(uint64_t *ret_offset, uint64_t *ret_bytes)
{
	*ret_bytes = 1 + random_wide() / 2;
	*ret_offset = random_wide() / 2;
}

static void allocation_make(struct stasis_wire_record *record)
{
	struct stasis_wire_allocation *a = &record->allocation;

	a->object = random_id();
	a->creator = random_id();
	a->device = random_id_or_none();
	a->bytes = 1 + random_wide();
	a->role = random_below(2) == 0 ? STASIS_WIRE_CREATOR : STASIS_WIRE_IMPORTER;
	a->flags = (uint32_t)random_below(STASIS_WIRE_ALLOCATION_FLAGS + 1);
	if (a->role == STASIS_WIRE_IMPORTER)
		a->flags &= ~(uint32_t)STASIS_WIRE_HAS_CONTENT;
	a->location_type = (uint32_t)random_next();
	a->location_id = (int32_t)random_next();
	a->handle_types = (uint32_t)random_next();
	a->compression = (uint8_t)random_next();
	a->gpu_direct_rdma = (uint8_t)random_next();
	a->usage = (uint16_t)random_next();
}

static void handle_make(struct stasis_wire_record *record)
{
	record->handle.object = random_id();
	record->handle.handle = random_wide();
	record->handle.count = 1 + random_wide();
}

static void mapping_make(struct stasis_wire_record *record)
{
	struct stasis_wire_mapping *m = &record->mapping;

	m->object = random_id();
	random_range(&m->offset, &m->bytes);
	m->address = 1 + random_wide() / 2 - (m->bytes > UINT64_MAX / 4);
	m->address += m->address == 0;
	m->handle = random_wide();
	m->flags = random_wide();
}

static void access_make(struct stasis_wire_record *record)
{
	record->access.address = 1 + random_wide();
	record->access.location_type = (uint32_t)random_next();
	record->access.location_id = (int32_t)random_next();
	record->access.rights = (uint32_t)random_next();
}

static void multicast_make(struct stasis_wire_record *record)
{
	struct stasis_wire_multicast *m = &record->multicast;

	m->object = random_id();
	m->creator = random_id();
	m->bytes = 1 + random_wide();
	m->flags = random_wide();
	m->device_count = 1 + (uint32_t)random_below(1000);
	m->handle_types = (uint32_t)random_next();
	m->role = random_below(2) == 0 ? STASIS_WIRE_CREATOR : STASIS_WIRE_IMPORTER;
}

static void team_device_make(struct stasis_wire_record *record)
{
	record->team_device.object = random_id();
	record->team_device.device = random_id();
	record->team_device.ordinal = (int32_t)random_below(INT32_MAX);
}

static void binding_make(struct stasis_wire_record *record)
{
	struct stasis_wire_binding *b = &record->binding;

	b->object = random_id();
	b->kind = random_below(2) == 0 ? STASIS_WIRE_BIND_MEMORY : STASIS_WIRE_BIND_ADDRESS;
	random_range(&b->offset, &b->bytes);
	b->member_offset = random_wide() / 2;
	b->member = b->kind == STASIS_WIRE_BIND_MEMORY ? random_id() : random_id_or_none();
	if (b->kind == STASIS_WIRE_BIND_ADDRESS)
		b->address = 1 + random_wide() / 4;
	b->flags = random_wide();
	b->ordinal = (int32_t)random_below(INT32_MAX);
	b->call_version = 1 + (uint32_t)random_below(2);
}

static void note_make(struct stasis_wire_record *record)
{
	record->note.kind = 1 + (uint32_t)random_below(STASIS_WIRE_NOTE_REMARK);
	record->note.count = random_wide();
	(void)snprintf(record->note.text, sizeof(record->note.text), "\"%s\" \\ ü %llx",
		       random_below(2) == 0 ? "cuSomething" : "",
		       (unsigned long long)random_next());
}

static struct stasis_wire_record random_record(void)
{
	static void (*const makers[STASIS_WIRE_RECORD_TYPE_COUNT])(struct stasis_wire_record *) = {
		[STASIS_WIRE_ALLOCATION] = allocation_make,
		[STASIS_WIRE_HANDLE] = handle_make,
		[STASIS_WIRE_MAPPING] = mapping_make,
		[STASIS_WIRE_ACCESS] = access_make,
		[STASIS_WIRE_MULTICAST] = multicast_make,
		[STASIS_WIRE_TEAM_DEVICE] = team_device_make,
		[STASIS_WIRE_BINDING] = binding_make,
		[STASIS_WIRE_NOTE] = note_make,
	};
	struct stasis_wire_record record;

	/* What is between fields is compared, too. */
	memset(&record, 0, sizeof(record));
	record.type = (enum stasis_wire_record_type)(1 + random_below(STASIS_WIRE_NOTE));
	makers[record.type](&record);
	return record;
}

static void member_add(struct t_group *group, struct stasis_wire_record *records, uint32_t count,
		       int32_t pid)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_member member = {
		.participant = random_id(),
		.pid = pid,
		.start_ticks = random_wide(),
		.build = "b1",
		.records = records,
		.record_count = count,
	};

	if (random_below(2) == 0)
		(void)snprintf(member.name, sizeof(member.name), "a \"name\" %llu",
			       (unsigned long long)random_below(1000));
	assert_done(stasis_topology_add(&group->topology, &member, &err), &err);
}

static void random_group(struct t_group *ret_group)
{
	uint32_t members = (uint32_t)random_below(MEMBERS_MAX + 1);

	memset(ret_group, 0, sizeof(*ret_group));
	for (uint32_t i = 0; i < members; i++) {
		struct stasis_wire_record records[RECORDS_MAX];
		uint32_t count = (uint32_t)random_below(RECORDS_MAX);

		for (uint32_t k = 0; k < count; k++) {
			records[k] = random_record();
			if (records[k].type == STASIS_WIRE_ALLOCATION && random_below(2) == 0)
				t_place_add(ret_group, records[k].allocation.object, random_id(),
					    random_wide());
		}
		member_add(ret_group, records, count, (int32_t)(1 + i));
	}
}

static const struct stasis_shared_place *place_of(const struct t_group *group,
						  const struct stasis_id *object)
{
	for (size_t i = 0; i < group->place_count; i++) {
		if (stasis_id_equal(&group->places[i].object, object))
			return &group->places[i];
	}
	return NULL;
}

static void assert_same(const struct t_group *wanted, const struct t_group *found)
{
	assert_int_equal(found->topology.member_count, wanted->topology.member_count);
	for (uint32_t i = 0; i < wanted->topology.member_count; i++) {
		const struct stasis_member *a = &wanted->topology.members[i];
		const struct stasis_member *b = &found->topology.members[i];

		assert_true(stasis_id_equal(&a->participant, &b->participant));
		assert_int_equal(a->pid, b->pid);
		assert_int_equal(a->start_ticks, b->start_ticks);
		assert_string_equal(a->name, b->name);
		assert_string_equal(a->build, b->build);
		assert_int_equal(a->record_count, b->record_count);
		for (uint32_t k = 0; k < a->record_count; k++)
			assert_memory_equal(&a->records[k], &b->records[k], sizeof(a->records[k]));
	}
	assert_int_equal(found->place_count, wanted->place_count);
	for (size_t i = 0; i < wanted->place_count; i++) {
		const struct stasis_shared_place *place =
			place_of(found, &wanted->places[i].object);

		assert_non_null(place);
		assert_memory_equal(place, &wanted->places[i], sizeof(*place));
	}
}

static void is_read_back_as_written(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct t_group wanted;
		struct t_group found;
		size_t bytes = 0;
		char *text;
		char *again;

		random_group(&wanted);
		text = t_group_text(&wanted, &bytes);
		t_group_read(text, bytes, &found);
		assert_same(&wanted, &found);
		again = t_group_text(&found, &bytes);
		assert_string_equal(text, again);
		free(text);
		free(again);
		t_group_free(&wanted);
		t_group_free(&found);
	}
}

static void encode_refused(const struct t_group *group, enum stasis_status status,
			   const char *wanted)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	char *text = NULL;
	size_t bytes = 0;

	if (stasis_shared_encode(&group->topology, group->places, group->place_count, &text, &bytes,
				 &err) == 0)
		fail_msg("written; wanted: %s", wanted);
	if (err.status != status || !strstr(err.text, wanted))
		fail_msg("status %d, '%s' does not hold '%s'", (int)err.status, err.text, wanted);
	assert_null(text);
}

static void what_would_be_refused_is_not_written(void **state)
{
	struct t_group group;

	(void)state;
	t_group_small(&group);
	group.topology.members[0].records[2].mapping.address = 0;
	encode_refused(&group, STASIS_INTERNAL,
		       "process 77: record 2 cannot be written: a mapping is at address 0");
	group.topology.members[0].records[2].type = (enum stasis_wire_record_type)99;
	encode_refused(&group, STASIS_INTERNAL, "a record is of no type that is known");
	t_group_free(&group);

	t_group_small(&group);
	t_place_add(&group, group.places[0].object, (struct stasis_id){{6}}, 0);
	encode_refused(&group, STASIS_INTERNAL, "two places of object 01");
	group.places[1].object = (struct stasis_id){{8}};
	encode_refused(&group, STASIS_INTERNAL, "of which no member has an allocation");
	t_group_free(&group);
}

/* Names are what a program gave itself: any bytes. */
static void odd_texts_are_made_fit(void **state)
{
	struct t_group wanted;
	struct t_group found;
	size_t bytes = 0;
	char *text;

	(void)state;
	t_group_small(&wanted);
	(void)snprintf(wanted.topology.members[0].name, STASIS_PROCESS_NAME_BYTES, "a\377b\tc");
	text = t_group_text(&wanted, &bytes);
	t_group_read(text, bytes, &found);
	assert_string_equal(found.topology.members[0].name, "a?b?c");
	free(text);
	t_group_free(&wanted);
	t_group_free(&found);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_read_back_as_written),
		cmocka_unit_test(what_would_be_refused_is_not_written),
		cmocka_unit_test(odd_texts_are_made_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
