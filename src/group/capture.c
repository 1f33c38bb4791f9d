/* See capture.h. */

#include "group/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "group/ask.h"
#include "group/census.h"
#include "group/contents.h"
#include "group/foreign.h"
#include "group/held.h"
#include "group/native.h"
#include "group/obstacles.h"
#include "group/shared.h"

/* The least that is accepted of a participant that gives memory up or takes it back, and of its pages. */
#define RATE_BYTES_PER_S (UINT64_C(1) << 30)
#define PHASE_NS (60 * STASIS_NS_PER_S)

static int begin(struct stasis_capture *capture, enum stasis_group_phase phase,
		 struct stasis_error *err)
{
	const struct stasis_group_watch *watch = capture->group->watch;

	return watch->begin(watch->data, phase, err);
}

/* The journal says so before it is done. */
static int begin_journalled(struct stasis_capture *capture, enum stasis_group_phase phase,
			    struct stasis_error *err)
{
	if (stasis_journal_write(&capture->journal, phase, err) != 0)
		return -1;
	return begin(capture, phase, err);
}

uint64_t stasis_capture_phase_ns(const struct stasis_layout *layout)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < layout->extent_count; i++)
		bytes += layout->extents[i].bytes;
	return PHASE_NS + bytes / RATE_BYTES_PER_S * STASIS_NS_PER_S;
}

/* ---- looking ---- */

static int look(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_group *group = capture->group;

	stasis_topology_free(&group->topology);
	if (stasis_group_inspect(group, &group->topology, err) != 0 ||
	    stasis_topology_assemble(&group->topology, err) != 0 ||
	    stasis_census_creators(group, err) != 0)
		return -1;
	return stasis_topology_check(&group->topology, err);
}

/* What would go on holding the memory that the group gives up, beside or inside its processes. */
static int outsiders_check(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_group *group = capture->group;
	bool releases_memory = stasis_capture_content_bytes(&group->topology) > 0;

	for (size_t i = 0; i < group->count; i++) {
		if (stasis_foreign_check(group->driver, &group->processes[i].target.process,
					 releases_memory, err) != 0)
			return -1;
	}
	if (stasis_obstacles_check_descriptors(group, err) != 0)
		return -1;
	return stasis_census_check(group, err);
}

static int inspect(struct stasis_capture *capture, struct stasis_error *err)
{
	if (begin(capture, STASIS_GROUP_INSPECT, err) != 0 ||
	    stasis_obstacles_check(capture->group, err) != 0 ||
	    stasis_group_introduce(capture->group, err) != 0 || look(capture, err) != 0)
		return -1;
	return outsiders_check(capture, err);
}

/* ---- while everything still stands ---- */

static int gate(struct stasis_capture *capture, struct stasis_error *err)
{
	const struct stasis_capture_options *options = capture->options;

	if (begin(capture, STASIS_GROUP_GATE, err) != 0)
		return -1;
	if (stasis_gates_close(capture->group, options->gate_ns, err) != 0)
		return -1;
	capture->stage = STASIS_CAPTURE_GATED;
	if (begin(capture, STASIS_GROUP_INSPECT_AGAIN, err) != 0 || look(capture, err) != 0 ||
	    outsiders_check(capture, err) != 0 ||
	    (options->census && options->census(options->census_data, err) != 0))
		return -1;
	return stasis_layout_make(&capture->group->topology, &capture->layout, err);
}

struct pages {
	enum stasis_wire_phase phase;
	struct stasis_kept *kept; /* one a process */
};

static int pages_ask(struct stasis_group *group, size_t index, void *argument,
		     struct stasis_error *err)
{
	const struct pages *pages = argument;

	return stasis_ask_exports(&group->processes[index].participant, pages->phase, PHASE_NS,
				  &pages->kept[index], err);
}

/*
 * Of each object what its owner hands out: other holders may name it, too, and theirs are let go. An object whose
 * holders have all ended is left out.
 */
static int owners_take(struct stasis_group *group, const struct stasis_layout *layout,
		       struct stasis_kept *by_process, struct stasis_kept *ret_kept,
		       struct stasis_error *err)
{
	for (size_t i = 0; i < layout->item_count; i++) {
		const struct stasis_group_object *object = layout->items[i].object;
		const struct stasis_group_process *owner = stasis_group_owner(group, object);
		char text[STASIS_ID_TEXT_BYTES];
		int fd;

		if (!owner)
			continue;
		fd = stasis_kept_take(&by_process[owner - group->processes], &object->id);
		if (fd < 0)
			return stasis_fail(
				err, STASIS_REFUSED,
				"object %s: its owner, process %d (%s), does not hand it "
				"out",
				stasis_id_format(&object->id, text), (int)owner->target.process.pid,
				owner->name);
		if (stasis_kept_add(ret_kept, &object->id, object->bytes, fd, err) != 0)
			return -1;
	}
	return 0;
}

int stasis_capture_exports(struct stasis_group *group, enum stasis_wire_phase phase,
			   const struct stasis_layout *layout, struct stasis_kept *ret_kept,
			   struct stasis_error *err)
{
	CLEANUP(free) struct stasis_kept *by_process = calloc(group->count, sizeof(*by_process));
	struct pages pages = {.phase = phase, .kept = by_process};
	int result;

	if (!by_process)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "keep descriptors");
	result = stasis_group_each_participant(group, pages_ask, &pages, err);
	if (result == 0)
		result = owners_take(group, layout, by_process, ret_kept, err);
	for (size_t i = 0; i < group->count; i++)
		stasis_kept_close(&by_process[i]);
	return result;
}

/* Host memory is moved through whatever GPU there is. */
void stasis_capture_hosts_place(struct stasis_layout *layout,
				const struct stasis_contexts *contexts)
{
	for (size_t i = 0; i < layout->extent_count; i++) {
		if (layout->extents[i].is_host && contexts->count > 0)
			layout->extents[i].device = contexts->items[0].device.uuid;
	}
}

static int save(struct stasis_capture *capture, struct stasis_error *err)
{
	CLEANUP(group_views) struct stasis_group_views views = {.count = 0};
	const struct stasis_contents_target target = {
		.writer = capture->writer,
		.chunk_bytes = capture->options->chunk_bytes,
		.reserve = capture->reserve,
	};

	if (begin(capture, STASIS_GROUP_SAVE_ALLOCATIONS, err) != 0)
		return -1;
	stasis_capture_hosts_place(&capture->layout, &capture->contexts);
	if (stasis_capture_exports(capture->group, STASIS_WIRE_SAVE_ALLOCATIONS, &capture->layout,
				   &capture->kept, err) != 0 ||
	    stasis_group_views_open(capture->group->driver, &capture->contexts, &capture->layout,
				    &capture->kept, &views, err) != 0)
		return -1;
	return stasis_contents_save(capture->group, &capture->layout, &views, &target,
				    capture->transfer, err);
}

static int shared_write(struct stasis_capture *capture, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_shared_place *places = NULL;
	CLEANUP(free) char *text = NULL;
	size_t bytes = 0;

	if (!stasis_group_has_participants(capture->group))
		return 0;
	if (stasis_layout_places(&capture->layout, &places, err) != 0 ||
	    stasis_shared_encode(&capture->group->topology, places, capture->layout.item_count,
				 &text, &bytes, err) != 0)
		return -1;
	return stasis_image_writer_shared_set(capture->writer, text, bytes, err);
}

static int seal(struct stasis_capture *capture, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = capture->group->watch;

	if (begin(capture, STASIS_GROUP_SEAL, err) != 0 || shared_write(capture, err) != 0 ||
	    stasis_image_writer_seal(capture->writer, err) != 0 ||
	    stasis_image_writer_stage(capture->writer, err) != 0)
		return -1;
	watch->durable(watch->data);
	return 0;
}

static int arm_ask(struct stasis_group *group, size_t index, void *argument,
		   struct stasis_error *err)
{
	const struct stasis_capture *capture = argument;

	return stasis_ask_arm(&group->processes[index].participant, capture->journal.path,
			      capture->options->image_path, STASIS_GROUP_ANSWER_NS, err);
}

static int journal_begin(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_journal *journal = &capture->journal;
	const struct stasis_group *group = capture->group;

	journal->capture = group->operation;
	(void)snprintf(journal->image, sizeof(journal->image), "%s", capture->options->image_path);
	(void)snprintf(journal->partial, sizeof(journal->partial), "%s",
		       stasis_image_writer_partial_path(capture->writer));
	journal->processes = calloc(group->count, sizeof(journal->processes[0]));
	if (!journal->processes)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "begin the journal");
	for (size_t i = 0; i < group->count; i++) {
		journal->processes[i].pid = group->processes[i].target.process.pid;
		journal->processes[i].start_ticks = group->processes[i].start_ticks;
	}
	journal->process_count = group->count;
	return stasis_journal_path(&journal->capture, journal->path, err);
}

/* Without it the capture is as safe, but slower to undo by somebody else. */
static void keeper_fill(struct stasis_capture *capture)
{
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (capture->options->keeper_fd >= 0 &&
	    stasis_kept_send(&capture->kept, capture->options->keeper_fd, &failure) != 0)
		stasis_group_event(capture->group->watch, "warning",
				   "%s: if this process dies, the memory is read back from the "
				   "image",
				   failure.text);
}

static int arm(struct stasis_capture *capture, struct stasis_error *err)
{
	if (journal_begin(capture, err) != 0 ||
	    begin_journalled(capture, STASIS_GROUP_ARM, err) != 0)
		return -1;
	keeper_fill(capture);
	capture->stage = STASIS_CAPTURE_ARMED;
	return stasis_group_each_participant(capture->group, arm_ask, capture, err);
}

/* ---- taking apart ---- */

static int prepare(struct stasis_capture *capture, struct stasis_error *err)
{
	uint64_t limit_ns = stasis_capture_phase_ns(&capture->layout);

	if (begin_journalled(capture, STASIS_GROUP_PREPARE_MULTICAST, err) != 0)
		return -1;
	capture->stage = STASIS_CAPTURE_MULTICAST;
	if (stasis_group_ask(capture->group, STASIS_WIRE_PREPARE_MULTICAST, limit_ns, err) != 0 ||
	    begin_journalled(capture, STASIS_GROUP_PREPARE_UNICAST, err) != 0)
		return -1;
	capture->stage = STASIS_CAPTURE_UNICAST;
	return stasis_group_ask(capture->group, STASIS_WIRE_PREPARE_UNICAST, limit_ns, err);
}

/* What each frees is held at once, before somebody else can have it. */
static int checkpoint_each(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_group *group = capture->group;

	if (stasis_hold_begin(&capture->hold, group->driver, &capture->contexts, err) != 0)
		return -1;
	for (size_t i = 0; i < group->count; i++) {
		if (stasis_target_checkpoint(&group->processes[i].target, err) != 0)
			return -1;
		if (stasis_hold_take(&capture->hold, err) != 0)
			return -1;
	}
	return 0;
}

static int native(struct stasis_capture *capture, struct stasis_error *err)
{
	struct stasis_group *group = capture->group;
	uint64_t start_ns = stasis_clock_now_ns();

	if (begin_journalled(capture, STASIS_GROUP_LOCK, err) != 0)
		return -1;
	capture->stage = STASIS_CAPTURE_NATIVE;
	if (stasis_native_lock(group, err) != 0 ||
	    begin_journalled(capture, STASIS_GROUP_CHECKPOINT, err) != 0 ||
	    checkpoint_each(capture, err) != 0 ||
	    begin(capture, STASIS_GROUP_CONFIRM_CHECKPOINTED, err) != 0 ||
	    stasis_native_confirm(group, CU_PROCESS_STATE_CHECKPOINTED, err) != 0)
		return -1;
	stasis_held_tell(group);
	stasis_group_event(group->watch, "native_bytes", "%" PRIu64, capture->hold.bytes);
	return stasis_image_writer_phase_add(capture->writer, "checkpoint",
					     stasis_clock_now_ns() - start_ns, capture->hold.bytes,
					     err);
}

/* From here on the image is the truth. */
static int publish(struct stasis_capture *capture, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = capture->group->watch;

	if (begin_journalled(capture, STASIS_GROUP_PUBLISH, err) != 0 ||
	    stasis_image_writer_publish(capture->writer, err) != 0)
		return -1;
	capture->stage = STASIS_CAPTURE_PUBLISHED;
	watch->enter(watch->data, STASIS_GROUP_COMMIT);
	stasis_kept_close(&capture->kept);
	stasis_hold_release(&capture->hold);
	return 0;
}

static int capture_run(struct stasis_capture *capture, struct stasis_error *err)
{
	if (inspect(capture, err) != 0 || stasis_capture_preflight(capture, err) != 0 ||
	    gate(capture, err) != 0 || save(capture, err) != 0 || seal(capture, err) != 0 ||
	    arm(capture, err) != 0 || prepare(capture, err) != 0 || native(capture, err) != 0)
		return -1;
	return publish(capture, err);
}

static void capture_free(struct stasis_capture *capture)
{
	stasis_kept_close(&capture->kept);
	stasis_hold_release(&capture->hold);
	stasis_layout_free(&capture->layout);
	stasis_transfer_free(capture->transfer);
	stasis_contexts_release(&capture->contexts);
	stasis_image_writer_close(capture->writer);
	stasis_journal_free(&capture->journal);
}

int stasis_group_capture(struct stasis_group *group, const struct stasis_capture_options *options,
			 struct stasis_error *err)
{
	struct stasis_capture capture = {
		.group = group,
		.options = options,
		.journal = STASIS_JOURNAL_EMPTY,
	};
	struct stasis_error ignored = STASIS_ERROR_INIT;
	int result = capture_run(&capture, err);

	if (result != 0)
		stasis_capture_undo(&capture, err);
	else if (stasis_journal_remove(&capture.journal, &ignored) != 0)
		stasis_group_event(group->watch, "warning", "%s", ignored.text);
	capture_free(&capture);
	return result;
}
