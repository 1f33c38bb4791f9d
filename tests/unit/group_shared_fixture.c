/*
 * See group_shared_fixture.h.
 */

#include "group_shared_fixture.h"

void t_group_free(struct t_group *group)
{
	stasis_topology_free(&group->topology);
	free(group->places);
	memset(group, 0, sizeof(*group));
}

void t_place_add(struct t_group *group, struct stasis_id object, struct stasis_id extent,
		 uint64_t offset)
{
	group->places = realloc(group->places, (group->place_count + 1) * sizeof(*group->places));
	assert_non_null(group->places);
	group->places[group->place_count++] =
		(struct stasis_shared_place){.object = object, .extent = extent, .offset = offset};
}

/* One member with one record of each type, and a place of its allocation. */
void t_group_small(struct t_group *ret_group)
{
	struct stasis_wire_record records[STASIS_WIRE_NOTE] = {
		{.type = STASIS_WIRE_ALLOCATION,
		 .allocation = {.object = {{1}},
				.creator = {{9}},
				.device = {{3}},
				.bytes = 4096,
				.role = STASIS_WIRE_CREATOR,
				.flags = STASIS_WIRE_HAS_CONTENT}},
		{.type = STASIS_WIRE_HANDLE, .handle = {.object = {{1}}, .handle = 7, .count = 1}},
		{.type = STASIS_WIRE_MAPPING,
		 .mapping = {.object = {{1}}, .address = 0x7f0000200000, .bytes = 4096}},
		{.type = STASIS_WIRE_ACCESS, .access = {.address = 0x7f0000200000, .rights = 3}},
		{.type = STASIS_WIRE_MULTICAST,
		 .multicast = {.object = {{2}},
			       .creator = {{9}},
			       .bytes = 4096,
			       .device_count = 1,
			       .role = STASIS_WIRE_CREATOR}},
		{.type = STASIS_WIRE_TEAM_DEVICE,
		 .team_device = {.object = {{2}}, .device = {{3}}}},
		{.type = STASIS_WIRE_BINDING,
		 .binding = {.object = {{2}},
			     .member = {{1}},
			     .bytes = 4096,
			     .kind = STASIS_WIRE_BIND_MEMORY,
			     .call_version = 1}},
		{.type = STASIS_WIRE_NOTE,
		 .note = {.kind = STASIS_WIRE_NOTE_REMARK, .count = 1, .text = "hello"}},
	};

	const struct stasis_member member = {
		.participant = {{9}},
		.pid = 77,
		.start_ticks = 4711,
		.name = "workload",
		.build = "b1",
		.records = records,
		.record_count = ARRAY_COUNT(records),
	};
	struct stasis_error err = STASIS_ERROR_INIT;

	memset(ret_group, 0, sizeof(*ret_group));
	assert_done(stasis_topology_add(&ret_group->topology, &member, &err), &err);
	t_place_add(ret_group, records[0].allocation.object, (struct stasis_id){{5}}, 8192);
}

char *t_group_text(const struct t_group *group, size_t *ret_bytes)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	char *text = NULL;

	assert_done(stasis_shared_encode(&group->topology, group->places, group->place_count, &text,
					 ret_bytes, &err),
		    &err);
	assert_int_equal(strlen(text), *ret_bytes);
	return text;
}

char *t_group_small_text(size_t *ret_bytes)
{
	struct t_group group;
	char *text;

	t_group_small(&group);
	text = t_group_text(&group, ret_bytes);
	t_group_free(&group);
	return text;
}

void t_group_read(const char *text, size_t bytes, struct t_group *ret_group)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	memset(ret_group, 0, sizeof(*ret_group));
	assert_done(stasis_shared_decode(text, bytes, &ret_group->topology, &ret_group->places,
					 &ret_group->place_count, &err),
		    &err);
}
