/* Whether what was rebuilt is what was captured; see topology.h. */

#include <string.h>

#include "group/topology_parts.h"

static const char *const type_names[STASIS_WIRE_RECORD_TYPE_COUNT] = {
	[STASIS_WIRE_ALLOCATION] = "allocation",
	[STASIS_WIRE_HANDLE] = "handle",
	[STASIS_WIRE_MAPPING] = "mapping",
	[STASIS_WIRE_ACCESS] = "access right",
	[STASIS_WIRE_MULTICAST] = "multicast object",
	[STASIS_WIRE_TEAM_DEVICE] = "multicast device",
	[STASIS_WIRE_BINDING] = "multicast binding",
	[STASIS_WIRE_NOTE] = "note",
};

/* As it is compared: without what a rebuild changes by right. */
static struct stasis_wire_record comparable(const struct stasis_wire_record *record)
{
	struct stasis_wire_record copy = *record;

	if (copy.type == STASIS_WIRE_ALLOCATION)
		copy.allocation.flags &= ~(uint32_t)STASIS_WIRE_IS_REATTACHED;
	return copy;
}

/* Remarks hinder nothing and may come and go; other notes are refused before it comes to this. */
static const struct stasis_wire_record *next_record(const struct stasis_member *member,
						    uint32_t *index)
{
	while (*index < member->record_count && member->records[*index].type == STASIS_WIRE_NOTE)
		++*index;
	return *index < member->record_count ? &member->records[(*index)++] : NULL;
}

static bool is_equal(const struct stasis_wire_record *a, const struct stasis_wire_record *b)
{
	uint8_t x[STASIS_WIRE_RECORD_BYTES];
	uint8_t y[STASIS_WIRE_RECORD_BYTES];
	struct stasis_wire_codec to_x = stasis_wire_writer(x, sizeof(x));
	struct stasis_wire_codec to_y = stasis_wire_writer(y, sizeof(y));
	struct stasis_wire_record copy_a = comparable(a);
	struct stasis_wire_record copy_b = comparable(b);

	/* As they travel: structures have padding. */
	stasis_wire_record(&to_x, &copy_a);
	stasis_wire_record(&to_y, &copy_b);
	return !to_x.fault && !to_y.fault && memcmp(x, y, sizeof(x)) == 0;
}

static int members_compare(const struct stasis_member *captured,
			   const struct stasis_member *present, struct stasis_error *err)
{
	uint32_t i = 0;
	uint32_t j = 0;

	for (;;) {
		const struct stasis_wire_record *before = next_record(captured, &i);
		const struct stasis_wire_record *now = next_record(present, &j);

		if (!before && !now)
			return 0;
		if (before && now && is_equal(before, now))
			continue;
		if (!now || (before && stasis_record_compare(before, now) < 0))
			return stasis_topology_refuse(err, present, stasis_record_object(before),
						      "a captured %s is missing",
						      type_names[before->type]);
		if (!before || stasis_record_compare(before, now) > 0)
			return stasis_topology_refuse(err, present, stasis_record_object(now),
						      "there is a %s that was not captured",
						      type_names[now->type]);
		return stasis_topology_refuse(err, present, stasis_record_object(now),
					      "the %s is not what was captured",
					      type_names[now->type]);
	}
}

static int participant_compare(const struct stasis_member *captured,
			       const struct stasis_member *present, struct stasis_error *err)
{
	char id[STASIS_ID_TEXT_BYTES];

	if (!stasis_id_equal(&captured->participant, &present->participant))
		return stasis_topology_refuse(err, present, NULL,
					      "the participant %s was not captured with the others",
					      stasis_id_format(&present->participant, id));
	if (strcmp(captured->build, present->build) != 0)
		return stasis_topology_refuse(
			err, present, NULL,
			"its interposer is build %s, and %s when it was captured", present->build,
			captured->build);
	return 0;
}

int stasis_topology_compare(const struct stasis_topology *captured,
			    const struct stasis_topology *present, struct stasis_error *err)
{
	if (captured->member_count != present->member_count)
		return stasis_fail(err, STASIS_REFUSED,
				   "%u processes were captured, and there are %u",
				   captured->member_count, present->member_count);
	for (uint32_t i = 0; i < captured->member_count; i++) {
		if (participant_compare(&captured->members[i], &present->members[i], err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < captured->member_count; i++) {
		if (members_compare(&captured->members[i], &present->members[i], err) != 0)
			return -1;
	}
	return 0;
}
