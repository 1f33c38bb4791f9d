/*
 * inspect of running programs: what the interposers in them know of their memory, and whether they could be captured
 * together. Read-only: nothing of theirs is held or changed.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "group/participant.h"
#include "group/topology.h"
#include "lib/library.h"
#include "wire/session.h"

/* For each process; an interposer answers in milliseconds unless its program keeps the machine busy. */
#define ANSWER_NS (30 * STASIS_NS_PER_S)

/* Room for a member of a member: "holder_pids.255". */
#define MEMBER_BYTES 32

/* "process.0.unsupported.1": an element of a list, which is what it becomes in JSON. */
FORMAT(6, 7)
static void element_report(const struct stasis_lib_sink *sink, const char *what, size_t index,
			   const char *list, size_t number, const char *format, ...)
{
	char member[MEMBER_BYTES];
	char value[STASIS_WIRE_NOTE_TEXT_BYTES + 32];
	va_list arguments;

	(void)snprintf(member, sizeof(member), "%s.%zu", list, number);
	va_start(arguments, format);
	(void)vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	stasis_lib_event_of(sink, what, index, member, "%s", value);
}

/* ---- one process ---- */

struct summary {
	uint64_t created_count, created_bytes;
	uint64_t imported_count, imported_bytes;
	uint64_t shared_count, shared_bytes;
	uint64_t private_count, private_bytes;
	uint64_t reattached_count, reattached_bytes;
	uint64_t mapping_count;
	uint64_t multicast_count;
};

static void count(bool is_counted, uint64_t bytes, uint64_t *total_count, uint64_t *total_bytes)
{
	if (!is_counted)
		return;
	++*total_count;
	*total_bytes += bytes;
}

static void allocation_count(struct summary *summary, const struct stasis_wire_allocation *record)
{
	bool is_creator = record->role == STASIS_WIRE_CREATOR;
	bool is_shared = (record->flags & STASIS_WIRE_IS_SHARED) != 0;
	bool is_reattached = (record->flags & STASIS_WIRE_IS_REATTACHED) != 0;

	count(is_creator, record->bytes, &summary->created_count, &summary->created_bytes);
	count(!is_creator, record->bytes, &summary->imported_count, &summary->imported_bytes);
	count(is_shared, record->bytes, &summary->shared_count, &summary->shared_bytes);
	count(is_creator && !is_shared, record->bytes, &summary->private_count,
	      &summary->private_bytes);
	count(is_reattached, record->bytes, &summary->reattached_count, &summary->reattached_bytes);
}

static void summary_report(const struct stasis_lib_sink *sink, size_t index,
			   const struct stasis_wire_record *records, uint32_t record_count)
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
		{"private", &summary.private_count},
		{"private_bytes", &summary.private_bytes},
		{"reattached", &summary.reattached_count},
		{"reattached_bytes", &summary.reattached_bytes},
		{"mappings", &summary.mapping_count},
		{"multicast_objects", &summary.multicast_count},
	};

	for (uint32_t i = 0; i < record_count; i++) {
		if (records[i].type == STASIS_WIRE_ALLOCATION)
			allocation_count(&summary, &records[i].allocation);
		summary.mapping_count += records[i].type == STASIS_WIRE_MAPPING;
		summary.multicast_count += records[i].type == STASIS_WIRE_MULTICAST;
	}
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
		stasis_lib_event_of(sink, "process", index, numbers[i].member, "%" PRIu64,
				    *numbers[i].value);
}

static void notes_report(const struct stasis_lib_sink *sink, size_t index,
			 const struct stasis_wire_record *records, uint32_t record_count)
{
	static const char *const lists[] = {
		[STASIS_WIRE_NOTE_UNKNOWN_FUNCTION] = "ungated",
		[STASIS_WIRE_NOTE_UNSUPPORTED] = "unsupported",
		[STASIS_WIRE_NOTE_REMARK] = "remarks",
	};
	size_t counts[ARRAY_COUNT(lists)] = {0};
	uint64_t foreign_count = 0;

	for (uint32_t i = 0; i < record_count; i++) {
		const struct stasis_wire_note *note = &records[i].note;

		if (records[i].type != STASIS_WIRE_NOTE)
			continue;
		if (note->kind == STASIS_WIRE_NOTE_FOREIGN_IMPORT)
			foreign_count += note->count;
		else if (note->kind < ARRAY_COUNT(lists) && lists[note->kind] && note->count > 1)
			element_report(sink, "process", index, lists[note->kind],
				       counts[note->kind]++, "%s (%" PRIu64 ")", note->text,
				       note->count);
		else if (note->kind < ARRAY_COUNT(lists) && lists[note->kind])
			element_report(sink, "process", index, lists[note->kind],
				       counts[note->kind]++, "%s", note->text);
	}
	stasis_lib_event_of(sink, "process", index, "foreign_imports", "%" PRIu64, foreign_count);
}

/*
 * What its control file says, which can be read while another coordinator speaks to it: whether an operation runs, how
 * far that is, and where it writes.
 */
static int control_report(const struct stasis_lib_sink *sink, size_t index, int32_t pid,
			  bool *ret_is_participant, struct stasis_error *err)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	CLEANUP(free) struct stasis_wire_control *control = malloc(sizeof(*control));
	CLEANUP(fd) int door_fd = -1;
	static const struct stasis_id none;
	char text[STASIS_ID_TEXT_BYTES];
	const char *phase;

	if (!control)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	if (stasis_process_open(pid, &process, err) != 0)
		return -1;
	if (stasis_wire_control_take(pid, process.pidfd, ret_is_participant, control, &door_fd,
				     err) != 0) {
		if (err->os_errno == EACCES || err->os_errno == EPERM)
			stasis_error_append(err, "; to ask it needs the right to ptrace it: call "
						 "as its user, or as root");
		return -1;
	}
	if (!*ret_is_participant || stasis_id_equal(&control->operation, &none))
		return 0;
	phase = control->phase > 0 ? stasis_wire_phase_name(control->phase) : NULL;
	stasis_lib_event_of(sink, "process", index, "operation", "%s",
			    stasis_id_format(&control->operation, text));
	stasis_lib_event_of(sink, "process", index, "phase", "%s", phase ? phase : "none");
	if (control->image[0] != '\0')
		stasis_lib_event_of(sink, "process", index, "image", "%s", control->image);
	if (control->journal[0] != '\0')
		stasis_lib_event_of(sink, "process", index, "journal", "%s", control->journal);
	return 0;
}

static void greeting_report(const struct stasis_lib_sink *sink, size_t index,
			    const struct stasis_wire_session_reply *greeting)
{
	char text[STASIS_ID_TEXT_BYTES];
	const char *phase = greeting->reached_phase > 0
				    ? stasis_wire_phase_name(greeting->reached_phase)
				    : NULL;

	stasis_lib_event_of(sink, "process", index, "participant", "%s",
			    stasis_id_format(&greeting->participant, text));
	stasis_lib_event_of(sink, "process", index, "build", "%s", greeting->build);
	stasis_lib_event_of(sink, "process", index, "reached_phase", "%s", phase ? phase : "none");
	stasis_lib_event_of(sink, "process", index, "gate", "%s",
			    greeting->reached_phase > 0 ? "closed" : "open");
}

/* Asks one that has the interposer in it, and adds it to the topology. */
static int participant_report(const struct stasis_lib_sink *sink, size_t index,
			      struct stasis_participant *participant, uint64_t deadline_ns,
			      struct stasis_topology *topology, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_record *records = NULL;
	struct stasis_member member = {
		.pid = participant->process.pid,
		.start_ticks = participant->process.start_ticks,
		.participant = participant->greeting.participant,
	};

	greeting_report(sink, index, &participant->greeting);
	if (stasis_participant_inspect(participant, deadline_ns, &records, &member.record_count,
				       err) != 0)
		return -1;
	member.records = records;
	stasis_process_name(member.pid, member.name);
	memcpy(member.build, participant->greeting.build, sizeof(member.build));
	summary_report(sink, index, records, member.record_count);
	notes_report(sink, index, records, member.record_count);
	return stasis_topology_add(topology, &member, err);
}

static int process_report(const struct stasis_lib_sink *sink, size_t index, int32_t pid,
			  const struct stasis_id *operation, struct stasis_topology *topology,
			  struct stasis_error *err)
{
	CLEANUP(participant) struct stasis_participant participant = STASIS_PARTICIPANT_EMPTY;
	uint64_t deadline_ns = stasis_deadline_after_ns(ANSWER_NS);
	char name[STASIS_PROCESS_NAME_BYTES];
	bool is_participant = false;

	stasis_process_name(pid, name);
	stasis_lib_event_of(sink, "process", index, "pid", "%d", pid);
	stasis_lib_event_of(sink, "process", index, "name", "%s", name);
	if (control_report(sink, index, pid, &is_participant, err) != 0)
		return -1;
	if (is_participant && stasis_participant_open(pid, operation, NULL, deadline_ns,
						      &is_participant, &participant, err) != 0)
		return -1;
	if (is_participant)
		return participant_report(sink, index, &participant, deadline_ns, topology, err);
	stasis_lib_event_of(sink, "process", index, "participant", "no");
	return 0;
}

/* ---- all of them ---- */

static void place_report(const struct stasis_lib_sink *sink, size_t index,
			 const struct stasis_wire_allocation *allocation)
{
	static const struct stasis_id none;
	char text[STASIS_UUID_TEXT_BYTES];

	stasis_lib_event_of(sink, "object", index, "device", "%s",
			    stasis_id_equal(&allocation->device, &none)
				    ? "host"
				    : stasis_uuid_format(&allocation->device, text));
}

static void object_report(const struct stasis_lib_sink *sink, size_t index,
			  const struct stasis_topology *topology,
			  const struct stasis_group_object *object)
{
	const struct stasis_holder *owner = &object->holders[object->owner_index];
	char text[STASIS_ID_TEXT_BYTES];

	stasis_lib_event_of(sink, "object", index, "id", "%s", stasis_id_format(&object->id, text));
	stasis_lib_event_of(sink, "object", index, "kind", "%s",
			    object->is_multicast ? "multicast" : "memory");
	stasis_lib_event_of(sink, "object", index, "bytes", "%" PRIu64, object->bytes);
	if (owner->record->type == STASIS_WIRE_ALLOCATION)
		place_report(sink, index, &owner->record->allocation);
	stasis_lib_event_of(sink, "object", index, "carried_by", "%s",
			    object->is_ours ? "stasis" : "driver");
	for (uint32_t i = 0; i < topology->member_count; i++) {
		if (stasis_id_equal(&topology->members[i].participant, &object->creator))
			stasis_lib_event_of(sink, "object", index, "creator_pid", "%d",
					    (int)topology->members[i].pid);
	}
	stasis_lib_event_of(sink, "object", index, "owner_pid", "%d", (int)owner->member->pid);
	for (uint32_t i = 0; i < object->holder_count; i++)
		element_report(sink, "object", index, "holder_pids", i, "%d",
			       (int)object->holders[i].member->pid);
}

/* What a capture would have to save, and a restore to find room for. */
static int needs_report(const struct stasis_lib_sink *sink, const struct stasis_topology *topology,
			struct stasis_error *err)
{
	CLEANUP(needs) struct stasis_needs needs = {.devices = NULL};
	char text[STASIS_UUID_TEXT_BYTES];

	if (stasis_topology_needs(topology, &needs, err) != 0)
		return -1;
	for (uint32_t i = 0; i < needs.device_count; i++) {
		stasis_lib_event_of(sink, "device", i, "uuid", "%s",
				    stasis_uuid_format(&needs.devices[i].device, text));
		stasis_lib_event_of(sink, "device", i, "carried_bytes", "%" PRIu64,
				    needs.devices[i].bytes);
	}
	stasis_lib_event(sink, "host_carried_bytes", "%" PRIu64, needs.host_bytes);
	stasis_lib_event(sink, "carried_bytes", "%" PRIu64, needs.bytes);
	return 0;
}

/* All objects are told of, also where they cannot be captured. */
static int topology_report(const struct stasis_lib_sink *sink, struct stasis_topology *topology,
			   struct stasis_error *err)
{
	struct stasis_error reason = STASIS_ERROR_INIT;

	if (topology->member_count == 0) {
		stasis_lib_event(sink, "capturable",
				 "no: none of the processes runs under "
				 "'stasis run'");
		return 0;
	}
	if (stasis_topology_assemble(topology, err) != 0)
		return -1;
	for (uint32_t i = 0; i < topology->object_count; i++)
		object_report(sink, i, topology, &topology->objects[i]);
	if (stasis_topology_check(topology, &reason) != 0 ||
	    needs_report(sink, topology, &reason) != 0)
		stasis_lib_event(sink, "capturable", "no: %s", reason.text);
	else
		stasis_lib_event(sink, "capturable", "yes");
	return 0;
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
	return topology_report(sink, &topology, err);
}

enum stasis_status stasis_library_inspect_processes(struct stasis_library *library,
						    const int32_t *pids, size_t count)
{
	struct stasis_error *err = stasis_lib_begin(library);

	return stasis_lib_end(library, processes_report(&library->sink, pids, count, err));
}
