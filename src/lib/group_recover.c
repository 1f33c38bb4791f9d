/*
 * stasis_library_recover: what coordinators that died have left is finished or taken back, each by its journal.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "group/journal.h"
#include "image/image.h"
#include "lib/control_file.h"
#include "lib/group_work.h"
#include "lib/memory_dir.h"

/* Those of the journal that still live. */
static int survivors_list(const struct stasis_journal *journal, struct stasis_lib_pids *pids,
			  struct stasis_error *err)
{
	for (size_t i = 0; i < journal->process_count; i++) {
		if (!stasis_lib_process_lives((int32_t)journal->processes[i].pid,
					      journal->processes[i].start_ticks))
			continue;
		if (stasis_lib_pids_add(pids, (int32_t)journal->processes[i].pid, err) != 0)
			return -1;
	}
	return 0;
}

static void recovered_tell(struct stasis_lib_channel *channel, enum stasis_group_fate fate)
{
	if (fate == STASIS_GROUP_SUSPENDED)
		stasis_lib_channel_fact(channel, STASIS_LIB_FACT_SUSPENDED, "");
	if (fate != STASIS_GROUP_UNSETTLED)
		stasis_lib_event(&channel->sink, "recovered", "%s",
				 fate == STASIS_GROUP_SUSPENDED ? "suspended" : "running");
}

static int group_recover(struct stasis_lib_group_work *work, struct stasis_journal *journal,
			 const struct stasis_lib_pids *pids,
			 const struct stasis_lib_group_recovery *recovery, struct stasis_error *err)
{
	CLEANUP(group) struct stasis_group group = {.count = 0};
	CLEANUP(kept) struct stasis_kept kept = {.count = 0};
	struct stasis_error ignored = STASIS_ERROR_INIT;
	struct stasis_group_plan plan = {
		.driver = &work->hands.driver,
		.watch = &work->watch,
		.capture = &journal->capture,
		.is_capture_optional = true,
		.pids = pids->items,
		.count = pids->count,
	};
	struct stasis_rebuild_options options = {
		.image_path = "",
		.verify = recovery->verify,
		.kept = &kept,
	};
	enum stasis_group_fate fate = STASIS_GROUP_UNSETTLED;
	int result;

	if (recovery->keeper_fd >= 0 &&
	    stasis_kept_receive(&kept, recovery->keeper_fd, &ignored) != 0)
		stasis_lib_event(&work->hands.channel->sink, "warning", "%s", ignored.text);
	if (stasis_id_random(&plan.operation, err) != 0 ||
	    stasis_group_open(&group, &plan, err) != 0)
		return -1;
	result = stasis_group_recover(&group, journal, &options, &fate, err);
	recovered_tell(work->hands.channel, fate);
	if (fate == STASIS_GROUP_SUSPENDED && journal->image[0] != '\0')
		stasis_lib_event(&work->hands.channel->sink, "image", "%s", journal->image);
	if (fate == STASIS_GROUP_RUNNING)
		stasis_lib_memory_image_drop(journal->image, &work->hands.channel->sink);
	return result;
}

/* All of its processes have ended: what is left is of no use. */
static int nobody_left(struct stasis_lib_channel *channel, struct stasis_journal *journal,
		       struct stasis_error *err)
{
	stasis_lib_event(&channel->sink, "recovered", "none");
	if (journal->partial[0] != '\0')
		stasis_lib_event(&channel->sink, "warning",
				 "all processes of capture '%s' have ended; 'stasis gc' removes "
				 "'%s'",
				 journal->path, journal->partial);
	return stasis_journal_remove(journal, err);
}

static bool is_suspended(const struct stasis_driver *driver,
			 const struct stasis_image_process *process)
{
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));
	CUprocessState state = CU_PROCESS_STATE_RUNNING;
	bool is_participant = false;

	if (!stasis_lib_process_lives(process->pid, process->start_ticks))
		return false;
	if (driver->cuCheckpointProcessGetState(process->pid, &state) == CUDA_SUCCESS &&
	    state != CU_PROCESS_STATE_RUNNING)
		return true;
	return control &&
	       stasis_lib_control_read(process->pid, &is_participant, control, NULL) == 0 &&
	       is_participant && stasis_lib_control_is_armed(control);
}

/*
 * A capture that has no journal had not taken anything apart, or is finished; a resume without one had not begun, or is
 * finished. The processes of the image, where there is one, tell which.
 */
static enum stasis_group_fate fate_find(const struct stasis_driver *driver,
					const struct stasis_lib_group_recovery *recovery)
{
	const struct stasis_image_open_options options = {.is_trusted = true};
	CLEANUP(image) struct stasis_image *image = NULL;
	const struct stasis_image_manifest *manifest;

	if (!recovery->image_path ||
	    stasis_image_open(recovery->image_path, &options, &image, NULL) != 0)
		return STASIS_GROUP_RUNNING;
	manifest = stasis_image_manifest(image);
	if (!stasis_id_equal(&manifest->capture_id, recovery->capture))
		return STASIS_GROUP_RUNNING;
	for (size_t i = 0; i < manifest->process_count; i++) {
		if (is_suspended(driver, &manifest->processes[i]))
			return STASIS_GROUP_SUSPENDED;
	}
	return STASIS_GROUP_RUNNING;
}

int stasis_lib_group_recover_run(struct stasis_lib_channel *channel, void *argument,
				 struct stasis_error *err)
{
	const struct stasis_lib_group_recovery *recovery = argument;
	CLEANUP(journal) struct stasis_journal journal = STASIS_JOURNAL_EMPTY;
	struct stasis_lib_pids pids = {.count = 0};
	struct stasis_lib_group_work work;
	bool is_there = false;
	int result;

	/* Who began this may be gone by now; what was begun here is finished all the same. */
	channel->is_past_cancel = true;
	stasis_lib_phase_enter(channel, STASIS_LIB_RESCUE);
	if (stasis_journal_read(recovery->journal_path, &is_there, &journal, err) != 0)
		return -1;
	result = stasis_lib_group_work_init(&work, channel, err);
	if (result == 0 && !is_there) {
		recovered_tell(channel, fate_find(&work.hands.driver, recovery));
		stasis_lib_group_work_fini(&work);
		return 0;
	}
	if (result == 0)
		result = survivors_list(&journal, &pids, err);
	if (result == 0)
		result = pids.count == 0 ? nobody_left(channel, &journal, err)
					 : group_recover(&work, &journal, &pids, recovery, err);
	if (result != 0 && (err->status == STASIS_REFUSED || err->status == STASIS_USAGE))
		err->status = STASIS_SUSPENDED;
	stasis_lib_group_work_fini(&work);
	free(pids.items);
	return result;
}

/* ---- the command ---- */

struct recover {
	struct stasis_library *library;
	struct stasis_recover_options options;
	size_t done;
};

static bool is_wanted(const struct recover *recover, const struct stasis_journal *journal)
{
	for (size_t i = 0; i < recover->options.count; i++) {
		for (size_t j = 0; j < journal->process_count; j++) {
			if (journal->processes[j].pid == recover->options.pids[i])
				return true;
		}
	}
	return recover->options.count == 0;
}

static int journal_recover(struct recover *recover, const char *path, struct stasis_error *err)
{
	CLEANUP(journal) struct stasis_journal journal = STASIS_JOURNAL_EMPTY;
	struct stasis_lib_knowledge knowledge = {.has_phase = false};
	struct stasis_lib_watch watch = {
		.sink = &recover->library->sink,
		.timeout_ns = recover->options.timeout_ns,
		.cancel_fd = -1,
		.knowledge = &knowledge,
	};
	struct stasis_lib_group_recovery recovery = {
		.journal_path = path,
		.keeper_fd = -1,
		.verify = STASIS_REBUILD_VERIFY_LOADING,
	};
	enum stasis_lib_ending ending = STASIS_LIB_DIED;
	struct stasis_error outcome = STASIS_ERROR_INIT;
	bool is_there = false;

	if (stasis_journal_read(path, &is_there, &journal, err) != 0)
		return -1;
	if (!is_there || !is_wanted(recover, &journal))
		return 0;
	if (stasis_journal_is_busy(&journal))
		return stasis_fail(err, STASIS_REFUSED,
				   "process %d is at work on the capture of '%s'; nothing is to be "
				   "recovered yet",
				   (int)journal.coordinator.pid, path);
	recover->done++;
	stasis_lib_event(&recover->library->sink, "journal", "%s", path);
	if (stasis_lib_supervise(stasis_lib_group_recover_run, &recovery, &watch, &ending, &outcome,
				 err) != 0)
		return -1;
	stasis_error_take(err, &outcome);
	if (ending != STASIS_LIB_ENDED)
		stasis_error_worsen(err, STASIS_LOST);
	return stasis_error_is_set(err) ? -1 : 0;
}

/* The worst of all is the outcome; one that failed hinders no other. */
static int all_recover(struct recover *recover, char *const *paths, size_t count,
		       struct stasis_error *err)
{
	struct stasis_error worst = STASIS_ERROR_INIT;

	for (size_t i = 0; i < count; i++) {
		struct stasis_error failure = STASIS_ERROR_INIT;

		if (journal_recover(recover, paths[i], &failure) == 0)
			continue;
		stasis_error_take(&worst, &failure);
		stasis_error_worsen(&worst, failure.status);
	}
	stasis_lib_memory_partials_drop(&recover->library->sink);
	if (stasis_error_is_set(&worst)) {
		stasis_error_take(err, &worst);
		return -1;
	}
	if (recover->done == 0 && recover->options.count > 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "no unfinished capture is known of process %d",
				   recover->options.pids[0]);
	stasis_lib_event(&recover->library->sink, "journals", "%zu", recover->done);
	return 0;
}

enum stasis_status stasis_library_recover(struct stasis_library *library,
					  const struct stasis_recover_options *options)
{
	struct stasis_error *err = stasis_lib_begin(library);
	struct recover recover = {.library = library, .options = STASIS_RECOVER_OPTIONS_INIT};
	char **paths = NULL;
	size_t count = 0;
	int result = -1;

	if (stasis_lib_options_copy("recover", options, &recover.options, sizeof(recover.options),
				    err) == 0 &&
	    stasis_journal_list(&paths, &count, err) == 0)
		result = all_recover(&recover, paths, count, err);
	stasis_journal_list_free(paths, count);
	return stasis_lib_end(library, result);
}
