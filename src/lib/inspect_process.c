/*
 * inspect of running programs: what the interposers in them know of their memory, and whether they could be captured
 * together. Read-only: nothing of theirs is held or changed.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "group/participant.h"
#include "group/topology.h"
#include "lib/library.h"

/* For each process; an interposer answers in milliseconds unless its program keeps the machine busy. */
#define ANSWER_NS (30 * STASIS_NS_PER_S)
#define HOLDERS_BYTES 1024

struct summary {
	uint64_t created_count, created_bytes;
	uint64_t imported_count, imported_bytes;
	uint64_t shared_count, shared_bytes;
	uint64_t mapping_count;
	uint64_t multicast_count;
};

static void allocation_count(struct summary *summary, const struct stasis_wire_allocation *record)
{
	if (record->role == STASIS_WIRE_CREATOR) {
		summary->created_count++;
		summary->created_bytes += record->bytes;
	} else {
		summary->imported_count++;
		summary->imported_bytes += record->bytes;
	}
	if (record->flags & STASIS_WIRE_IS_SHARED) {
		summary->shared_count++;
		summary->shared_bytes += record->bytes;
	}
}

static void note_report(const struct stasis_lib_sink *sink, size_t index,
			const struct stasis_wire_note *note)
{
	static const char *const members[] = {
		[STASIS_WIRE_NOTE_UNKNOWN_FUNCTION] = "ungated",
		[STASIS_WIRE_NOTE_FOREIGN_IMPORT] = "foreign_imports",
		[STASIS_WIRE_NOTE_UNSUPPORTED] = "unsupported",
		[STASIS_WIRE_NOTE_REMARK] = "remark",
	};

	if (note->kind >= ARRAY_COUNT(members) || !members[note->kind])
		return;
	if (note->kind == STASIS_WIRE_NOTE_FOREIGN_IMPORT)
		stasis_lib_event_of(sink, "process", index, members[note->kind], "%" PRIu64,
				    note->count);
	else
		stasis_lib_event_of(sink, "process", index, members[note->kind], "%s", note->text);
}

static void records_report(const struct stasis_lib_sink *sink, size_t index,
			   const struct stasis_wire_record *records, uint32_t count)
{
	struct summary summary = {.created_count = 0};
	const struct {
		const char *member;
		const uint64_t *value;
	} numbers[] = {
		{"created", &summary.created_count},
		{"created_bytes", &summary.created_bytes},
		{"imported", &summary.imported_count},
		{"imported_bytes", &summary.imported_bytes},
		{"shared", &summary.shared_count},
		{"shared_bytes", &summary.shared_bytes},
		{"mappings", &summary.mapping_count},
		{"multicast_objects", &summary.multicast_count},
	};

	for (uint32_t i = 0; i < count; i++) {
		if (records[i].type == STASIS_WIRE_ALLOCATION)
			allocation_count(&summary, &records[i].allocation);
		summary.mapping_count += records[i].type == STASIS_WIRE_MAPPING;
		summary.multicast_count += records[i].type == STASIS_WIRE_MULTICAST;
	}
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
		stasis_lib_event_of(sink, "process", index, numbers[i].member, "%" PRIu64,
				    *numbers[i].value);
	for (uint32_t i = 0; i < count; i++) {
		if (records[i].type == STASIS_WIRE_NOTE)
			note_report(sink, index, &records[i].note);
	}
}

/* Adds it to the topology if the interposer is in it. */
static int process_report(const struct stasis_lib_sink *sink, size_t index, int32_t pid,
			  const struct stasis_id *operation, struct stasis_topology *topology,
			  struct stasis_error *err)
{
	CLEANUP(participant) struct stasis_participant participant = STASIS_PARTICIPANT_EMPTY;
	CLEANUP(free) struct stasis_wire_record *records = NULL;
	uint64_t deadline_ns = stasis_deadline_after_ns(ANSWER_NS);
	struct stasis_member member = {.pid = pid};
	char text[STASIS_ID_TEXT_BYTES];
	bool is_participant = false;

	if (stasis_participant_open(pid, operation, NULL, deadline_ns, &is_participant,
				    &participant, err) != 0)
		return -1;
	stasis_lib_event_of(sink, "process", index, "pid", "%d", pid);
	if (!is_participant) {
		stasis_lib_event_of(sink, "process", index, "participant", "no");
		return 0;
	}
	if (stasis_participant_inspect(&participant, deadline_ns, &records, &member.record_count,
				       err) != 0)
		return -1;
	member.records = records;
	member.start_ticks = participant.process.start_ticks;
	stasis_process_name(pid, member.name);
	member.participant = participant.greeting.participant;
	memcpy(member.build, participant.greeting.build, sizeof(member.build));
	stasis_lib_event_of(sink, "process", index, "participant", "%s",
			    stasis_id_format(&member.participant, text));
	stasis_lib_event_of(sink, "process", index, "build", "%s", member.build);
	records_report(sink, index, records, member.record_count);
	return stasis_topology_add(topology, &member, err);
}

static void object_report(const struct stasis_lib_sink *sink, size_t index,
			  const struct stasis_topology *topology,
			  const struct stasis_group_object *object)
{
	char text[STASIS_ID_TEXT_BYTES];
	char holders[HOLDERS_BYTES] = "";
	size_t used = 0;

	stasis_lib_event_of(sink, "object", index, "id", "%s", stasis_id_format(&object->id, text));
	stasis_lib_event_of(sink, "object", index, "kind", "%s",
			    object->is_multicast ? "multicast" : "memory");
	stasis_lib_event_of(sink, "object", index, "bytes", "%" PRIu64, object->bytes);
	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (stasis_id_equal(&topology->members[i].participant, &object->creator))
			stasis_lib_event_of(sink, "object", index, "creator_pid", "%d",
					    (int)topology->members[i].pid);
	}
	for (uint32_t i = 0; i < object->holder_count && used + 16 < sizeof(holders); i++)
		used += (size_t)snprintf(holders + used, sizeof(holders) - used, "%s%d",
					 i > 0 ? " " : "", (int)object->holders[i].member->pid);
	stasis_lib_event_of(sink, "object", index, "holder_pids", "%s", holders);
}

static void topology_report(const struct stasis_lib_sink *sink, struct stasis_topology *topology)
{
	struct stasis_error reason = STASIS_ERROR_INIT;
	size_t index = 0;

	if (topology->member_count == 0) {
		stasis_lib_event(sink, "capturable",
				 "no: none of the processes runs under "
				 "'stasis run'");
		return;
	}
	if (stasis_topology_check(topology, &reason) != 0) {
		stasis_lib_event(sink, "capturable", "no: %s", reason.text);
		return;
	}
	for (uint32_t i = 0; i < topology->object_count; i++) {
		if (topology->objects[i].is_ours)
			object_report(sink, index++, topology, &topology->objects[i]);
	}
	stasis_lib_event(sink, "capturable", "yes");
}

static int processes_report(const struct stasis_lib_sink *sink, const int32_t *pids, size_t count,
			    struct stasis_error *err)
{
	CLEANUP(topology) struct stasis_topology topology = {.members = NULL};
	struct stasis_id operation;

	if (stasis_id_random(&operation, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (process_report(sink, i, pids[i], &operation, &topology, err) != 0)
			return -1;
	}
	topology_report(sink, &topology);
	return 0;
}

enum stasis_status stasis_library_inspect_processes(struct stasis_library *library,
						    const int32_t *pids, size_t count)
{
	struct stasis_error *err = stasis_lib_begin(library);

	return stasis_lib_end(library, processes_report(&library->sink, pids, count, err));
}
