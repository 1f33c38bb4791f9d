/* See rebuild.h. */

#include "group/rebuild.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "driver/report.h"
#include "group/ask.h"
#include "group/assemble.h"
#include "group/capture.h"
#include "group/contents.h"
#include "group/layout.h"
#include "group/native.h"
#include "group/shared.h"
#include "group/views.h"

/* How far it has come: what is to be taken apart again where it fails. */
enum stage {
	LOOKED,
	NATIVE,    /* the driver was asked to restore */
	LOADED,    /* LOAD_ALLOCATIONS was asked for */
	MULTICAST, /* RESTORE_MULTICAST_… was asked for */
	OPENED,
};

struct rebuild {
	struct stasis_group *group;
	const struct stasis_rebuild_options *options;
	enum stage stage;
	struct stasis_image *image;
	struct stasis_layout layout;
	struct stasis_contexts contexts;
	struct stasis_transfer *transfer;
	struct stasis_kept made; /* what the owners hand out of what they made anew */
	struct stasis_journal journal;
	struct stasis_error lost; /* of processes that did not come back */
};

static int begin(struct rebuild *rebuild, enum stasis_group_phase phase, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = rebuild->group->watch;

	return watch->begin(watch->data, phase, err);
}

/* ---- before anything is touched ---- */

static const struct stasis_group_process *process_find(const struct stasis_group *group,
						       const struct stasis_image_process *process)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->processes[i].target.process.pid == process->pid &&
		    group->processes[i].start_ticks == process->start_ticks)
			return &group->processes[i];
	}
	return NULL;
}

static int process_check(const struct rebuild *rebuild, const struct stasis_image_process *process,
			 struct stasis_error *err)
{
	const struct stasis_group_process *found = process_find(rebuild->group, process);

	if (!found && rebuild->options->is_without_missing)
		return 0;
	if (!found)
		return stasis_fail(err, STASIS_SUSPENDED,
				   "the image '%s' is of process %d (%s), too, which is not among "
				   "those named, or has ended",
				   rebuild->options->image_path, process->pid, process->executable);
	if (found->is_participant != process->has_participant ||
	    (found->is_participant &&
	     !stasis_id_equal(&found->participant.greeting.participant, &process->participant)))
		return stasis_fail(err, STASIS_SUSPENDED,
				   "process %d is not the participant that the image '%s' knows",
				   process->pid, rebuild->options->image_path);
	return 0;
}

/* The very processes of the image, no others and none less. */
static int processes_check(const struct rebuild *rebuild,
			   const struct stasis_image_manifest *manifest, struct stasis_error *err)
{
	size_t known = 0;

	for (size_t i = 0; i < manifest->process_count; i++) {
		if (process_check(rebuild, &manifest->processes[i], err) != 0)
			return -1;
		known += process_find(rebuild->group, &manifest->processes[i]) != NULL;
	}
	if (known == rebuild->group->count)
		return 0;
	return stasis_fail(err, STASIS_SUSPENDED,
			   "a process was named that the image '%s' does not know",
			   rebuild->options->image_path);
}

static int shared_read(struct rebuild *rebuild, struct stasis_error *err)
{
	const struct stasis_image_manifest *manifest = stasis_image_manifest(rebuild->image);
	CLEANUP(free) struct stasis_shared_place *places = NULL;
	struct stasis_topology *topology = &rebuild->group->topology;
	size_t place_count = 0;
	size_t bytes = 0;
	const char *text = stasis_image_shared(rebuild->image, &bytes);

	stasis_topology_free(topology);
	if (!text && stasis_group_has_participants(rebuild->group))
		return stasis_fail(err, STASIS_BAD_IMAGE, "image '%s' has no shared.json",
				   rebuild->options->image_path);
	if (text && stasis_shared_decode(text, bytes, topology, &places, &place_count, err) != 0)
		return -1;
	if (stasis_topology_check(topology, err) != 0) {
		err->status = STASIS_BAD_IMAGE;
		return -1;
	}
	return stasis_layout_read(topology, places, place_count, manifest, &rebuild->layout, err);
}

/* Not for what is attached to: that memory is there. */
static bool is_attached(const struct rebuild *rebuild)
{
	const struct stasis_kept *kept = rebuild->options->kept;

	if (!kept)
		return false;
	for (size_t i = 0; i < rebuild->layout.item_count; i++) {
		if (!stasis_kept_find(kept, &rebuild->layout.items[i].object->id))
			return false;
	}
	return true;
}

static int room_check(const struct rebuild *rebuild, struct stasis_error *err)
{
	struct stasis_gpu_room rooms[STASIS_DEVICES_MAX];
	const struct stasis_contexts *contexts = &rebuild->contexts;

	for (unsigned int i = 0; i < contexts->count; i++) {
		rooms[i] = (struct stasis_gpu_room){.uuid = contexts->items[i].device.uuid};
		for (size_t j = 0; j < rebuild->layout.extent_count; j++) {
			const struct stasis_layout_extent *extent = &rebuild->layout.extents[j];

			if (!extent->is_host && stasis_id_equal(&extent->device, &rooms[i].uuid))
				rooms[i].need_bytes += extent->bytes;
		}
	}
	if (stasis_gpu_rooms_read(rebuild->group->driver, rooms, contexts->count, err) != 0)
		return -1;
	return stasis_gpu_rooms_check(rooms, contexts->count, STASIS_CONTEXT_BYTES, err);
}

static int engine_make(struct rebuild *rebuild, struct stasis_error *err)
{
	struct stasis_transfer_options options = rebuild->options->transfer;
	struct stasis_gpu_set all = {.count = 0};

	options.driver = rebuild->group->driver;
	if (stasis_contexts_retain(rebuild->group->driver, &all, &rebuild->contexts, err) != 0 ||
	    stasis_transfer_new(&options, &rebuild->transfer, err) != 0)
		return -1;
	for (unsigned int i = 0; i < rebuild->contexts.count; i++) {
		const struct stasis_context *context = &rebuild->contexts.items[i];

		if (stasis_transfer_prepare(rebuild->transfer, context->context,
					    context->device.ordinal, err) != 0)
			return -1;
	}
	return 0;
}

static int validate(struct rebuild *rebuild, struct stasis_error *err)
{
	const struct stasis_rebuild_options *options = rebuild->options;
	const struct stasis_image_open_options open_options = {
		.is_trusted = options->is_trusted,
		.is_partial = options->is_partial,
	};
	const struct stasis_image_manifest *manifest;

	if (begin(rebuild, STASIS_GROUP_VALIDATE, err) != 0 ||
	    stasis_image_open(options->image_path, &open_options, &rebuild->image, err) != 0)
		return -1;
	manifest = stasis_image_manifest(rebuild->image);
	if (manifest->store != STASIS_IMAGE_STORE_NATIVE)
		return stasis_fail(err, STASIS_SUSPENDED,
				   "image '%s' has the store '%s', and only 'native' is resumed in "
				   "place",
				   options->image_path, stasis_image_store_name(manifest->store));
	if (processes_check(rebuild, manifest, err) != 0 || shared_read(rebuild, err) != 0 ||
	    engine_make(rebuild, err) != 0)
		return -1;
	return is_attached(rebuild) ? 0 : room_check(rebuild, err);
}

static int verify(struct rebuild *rebuild, struct stasis_error *err)
{
	if (rebuild->options->verify != STASIS_REBUILD_VERIFY_BEFORE || is_attached(rebuild))
		return 0;
	if (begin(rebuild, STASIS_GROUP_VERIFY, err) != 0)
		return -1;
	return stasis_contents_verify(rebuild->group, rebuild->image, err);
}

/* ---- back to life ---- */

static int journal_begin(struct rebuild *rebuild, struct stasis_error *err)
{
	const struct stasis_image_manifest *manifest = stasis_image_manifest(rebuild->image);
	struct stasis_journal *journal = &rebuild->journal;
	const struct stasis_group *group = rebuild->group;

	journal->capture = manifest->capture_id;
	(void)snprintf(rebuild->options->is_partial ? journal->partial : journal->image,
		       STASIS_JOURNAL_PATH_BYTES, "%s", rebuild->options->image_path);
	journal->processes = calloc(group->count, sizeof(journal->processes[0]));
	if (!journal->processes)
		return stasis_fail_code(err, STASIS_SUSPENDED, ENOMEM, "begin the journal");
	for (size_t i = 0; i < group->count; i++) {
		journal->processes[i].pid = group->processes[i].target.process.pid;
		journal->processes[i].start_ticks = group->processes[i].start_ticks;
	}
	journal->process_count = group->count;
	return stasis_journal_write(journal, STASIS_GROUP_RESTORE, err);
}

/* One that does not come back is lost; the others go on without it. */
static int native(struct rebuild *rebuild, struct stasis_error *err)
{
	struct stasis_group *group = rebuild->group;
	struct stasis_error failure = STASIS_ERROR_INIT;
	uint64_t start_ns = stasis_clock_now_ns();

	if (journal_begin(rebuild, err) != 0 || begin(rebuild, STASIS_GROUP_RESTORE, err) != 0)
		return -1;
	rebuild->stage = NATIVE;
	if (stasis_native_return(group, &failure) != 0)
		rebuild->lost = failure;
	if (!stasis_group_is_any_left(group)) {
		stasis_error_take(err, &rebuild->lost);
		return -1;
	}
	stasis_group_event(group->watch, "native_seconds", "%.6f",
			   stasis_seconds(stasis_clock_now_ns() - start_ns));
	return stasis_native_confirm(group, CU_PROCESS_STATE_RUNNING, err);
}

static int contents_load(struct rebuild *rebuild, struct stasis_error *err)
{
	CLEANUP(group_views) struct stasis_group_views views = {.count = 0};

	if (stasis_capture_exports(rebuild->group, STASIS_WIRE_EXPORT_ALLOCATIONS, &rebuild->layout,
				   &rebuild->made, err) != 0 ||
	    stasis_group_views_open(rebuild->group->driver, &rebuild->contexts, &rebuild->layout,
				    &rebuild->made, &views, err) != 0)
		return -1;
	return stasis_contents_load(rebuild->group, &rebuild->layout, &views, rebuild->image,
				    rebuild->options->verify == STASIS_REBUILD_VERIFY_LOADING,
				    rebuild->transfer, err);
}

static int unicast_anew(struct rebuild *rebuild, uint64_t limit_ns, struct stasis_error *err)
{
	int result;

	if (stasis_assemble_owned(rebuild->group, &rebuild->layout, limit_ns, err) != 0 ||
	    contents_load(rebuild, err) != 0 ||
	    begin(rebuild, STASIS_GROUP_RESTORE_UNICAST, err) != 0)
		return -1;
	result = stasis_assemble_attached(rebuild->group, &rebuild->made, false, limit_ns, err);
	stasis_kept_close(&rebuild->made);
	return result;
}

static int memory(struct rebuild *rebuild, struct stasis_error *err)
{
	struct stasis_group *group = rebuild->group;
	uint64_t limit_ns = stasis_capture_phase_ns(&rebuild->layout);
	int result;

	if (begin(rebuild, STASIS_GROUP_LOAD_ALLOCATIONS, err) != 0 ||
	    stasis_group_introduce(group, err) != 0)
		return -1;
	rebuild->stage = LOADED;
	result = is_attached(rebuild) ? stasis_assemble_attached(group, rebuild->options->kept,
								 true, limit_ns, err)
				      : unicast_anew(rebuild, limit_ns, err);
	if (result != 0 || begin(rebuild, STASIS_GROUP_RESTORE_MULTICAST, err) != 0)
		return -1;
	rebuild->stage = MULTICAST;
	return stasis_assemble_multicast(group, limit_ns, err);
}

/* Without those that are lost there is nothing to compare with. */
static int compare(struct rebuild *rebuild, struct stasis_error *err)
{
	CLEANUP(topology) struct stasis_topology present = {.members = NULL};

	if (begin(rebuild, STASIS_GROUP_COMPARE, err) != 0)
		return -1;
	if (stasis_error_is_set(&rebuild->lost) || rebuild->options->is_without_missing)
		return 0;
	if (stasis_group_inspect(rebuild->group, &present, err) != 0 ||
	    stasis_topology_check(&present, err) != 0)
		return -1;
	return stasis_topology_compare(&rebuild->group->topology, &present, err);
}

static int open_gates(struct rebuild *rebuild, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = rebuild->group->watch;

	watch->enter(watch->data, STASIS_GROUP_OPEN);
	rebuild->stage = OPENED;
	return stasis_group_ask(rebuild->group, STASIS_WIRE_OPEN, STASIS_GROUP_ANSWER_NS, err);
}

/* ---- and back to sleep ---- */

static int sleep_again(struct rebuild *rebuild, struct stasis_error *err)
{
	struct stasis_group *group = rebuild->group;
	uint64_t limit_ns = stasis_capture_phase_ns(&rebuild->layout);

	if (rebuild->stage == MULTICAST &&
	    stasis_group_ask(group, STASIS_WIRE_PREPARE_MULTICAST, limit_ns, err) != 0)
		return -1;
	if (rebuild->stage >= LOADED &&
	    stasis_group_ask(group, STASIS_WIRE_PREPARE_UNICAST, limit_ns, err) != 0)
		return -1;
	if (stasis_native_lock(group, err) != 0 || stasis_native_checkpoint(group, err) != 0)
		return -1;
	return stasis_native_confirm(group, CU_PROCESS_STATE_CHECKPOINTED, err);
}

static void journal_end(struct rebuild *rebuild)
{
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (stasis_journal_remove(&rebuild->journal, &failure) != 0)
		stasis_group_event(rebuild->group->watch, "warning", "%s", failure.text);
}

/* Everything is together again: those that live only have to be let go on. */
static enum stasis_group_fate opened_settle(struct rebuild *rebuild, struct stasis_error *err)
{
	struct stasis_error failure = STASIS_ERROR_INIT;

	stasis_error_worsen(err, STASIS_LOST);
	if (stasis_group_ask(rebuild->group, STASIS_WIRE_OPEN, STASIS_GROUP_ANSWER_NS, &failure) !=
	    0) {
		stasis_error_append(err, "; then: %s; 'stasis recover' tries again", failure.text);
		return STASIS_GROUP_UNSETTLED;
	}
	stasis_error_append(err, "; the other processes run");
	journal_end(rebuild);
	return STASIS_GROUP_RUNNING;
}

/* A process that has ended is left out. Only a journal knows of a partial, and so stays. */
static enum stasis_group_fate undo(struct rebuild *rebuild, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = rebuild->group->watch;
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (stasis_group_bury(rebuild->group, &failure) != 0)
		stasis_error_take(&rebuild->lost, &failure);
	if (rebuild->stage == OPENED)
		return opened_settle(rebuild, err);
	watch->enter(watch->data, STASIS_GROUP_UNDO);
	failure = (struct stasis_error)STASIS_ERROR_INIT;
	if (rebuild->stage >= NATIVE && sleep_again(rebuild, &failure) != 0) {
		stasis_error_worsen(err, STASIS_LOST);
		stasis_error_append(err, "; then: %s; 'stasis recover' tries again", failure.text);
		return STASIS_GROUP_UNSETTLED;
	}
	stasis_kept_close(&rebuild->made);
	if (stasis_error_is_set(&rebuild->lost))
		err->status = STASIS_LOST;
	else if (err->status != STASIS_BAD_IMAGE && err->status != STASIS_USAGE)
		err->status = STASIS_SUSPENDED;
	stasis_error_append(err, "; the %sprocesses are suspended, and the image is kept: %s",
			    stasis_error_is_set(&rebuild->lost) ? "other " : "",
			    rebuild->options->image_path);
	if (!rebuild->options->is_partial)
		journal_end(rebuild);
	return STASIS_GROUP_SUSPENDED;
}

static int rebuild_run(struct rebuild *rebuild, struct stasis_error *err)
{
	if (validate(rebuild, err) != 0 || verify(rebuild, err) != 0 || native(rebuild, err) != 0 ||
	    memory(rebuild, err) != 0 || compare(rebuild, err) != 0)
		return -1;
	return open_gates(rebuild, err);
}

static void rebuild_free(struct rebuild *rebuild)
{
	stasis_kept_close(&rebuild->made);
	stasis_layout_free(&rebuild->layout);
	stasis_transfer_free(rebuild->transfer);
	stasis_contexts_release(&rebuild->contexts);
	stasis_image_close(rebuild->image);
	stasis_journal_free(&rebuild->journal);
}

int stasis_group_rebuild(struct stasis_group *group, const struct stasis_rebuild_options *options,
			 enum stasis_group_fate *ret_fate, struct stasis_error *err)
{
	struct rebuild rebuild = {
		.group = group,
		.options = options,
		.journal = STASIS_JOURNAL_EMPTY,
		.lost = STASIS_ERROR_INIT,
	};
	int result = rebuild_run(&rebuild, err);

	if (result != 0) {
		*ret_fate = undo(&rebuild, err);
	} else {
		*ret_fate = STASIS_GROUP_RUNNING;
		journal_end(&rebuild);
		if (stasis_error_is_set(&rebuild.lost)) {
			stasis_error_take(err, &rebuild.lost);
			stasis_error_append(err, "; the other processes run");
			result = -1;
		}
	}
	rebuild_free(&rebuild);
	return result;
}
