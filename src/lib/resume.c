/*
 * stasis_library_resume: finds the image of the processes, or the processes of the image, and has a worker rebuild the
 * group (group/rebuild.h).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/process_tree.h"
#include "lib/control_file.h"
#include "lib/group_work.h"
#include "lib/memory_dir.h"

struct resume {
	struct stasis_resume_options options;
	struct stasis_id capture;
	char image_path[STASIS_LIB_PATH_BYTES];
	struct stasis_lib_pids named; /* with is_tree: those of the tree that are in a capture */
	struct stasis_lib_pids pids;  /* all of the image */
};

/* What the process itself says, else what lies in memory. */
static int image_find(int32_t pid, char ret_path[STASIS_LIB_PATH_BYTES], struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));
	bool is_participant = false;

	if (!control)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	if (stasis_lib_control_read(pid, &is_participant, control, err) != 0)
		return -1;
	ret_path[0] = '\0';
	if (is_participant)
		(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", control->image);
	if (ret_path[0] == '\0')
		stasis_lib_memory_image_find(pid, ret_path);
	if (ret_path[0] != '\0')
		return 0;
	return stasis_fail(
		err, STASIS_REFUSED,
		"process %d is in no capture that is known here; it is not suspended, or "
		"its image is to be named: stasis resume DIR",
		pid);
}

static int tree_add(struct resume *resume, int32_t pid, struct stasis_error *err)
{
	char path[STASIS_LIB_PATH_BYTES];

	if (image_find(pid, path, NULL) != 0)
		return 0; /* in no capture: a shell, or one that runs */
	if (resume->named.count > 0 && strcmp(path, resume->image_path) != 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "processes %d and %d of the tree were suspended apart, into "
				   "'%s' and '%s'; resume one after the other",
				   (int)resume->named.items[0], (int)pid, resume->image_path, path);
	(void)snprintf(resume->image_path, sizeof(resume->image_path), "%s", path);
	return stasis_lib_pids_add(&resume->named, pid, err);
}

/* The members of the trees that are in a capture take the place of the processes that were named. */
static int tree_settle(struct resume *resume, struct stasis_error *err)
{
	CLEANUP(free) int32_t *pids = NULL;
	size_t count = 0;

	if (stasis_process_tree(resume->options.pids, resume->options.count, &pids, &count, err) !=
	    0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (tree_add(resume, pids[i], err) != 0)
			return -1;
	}
	if (resume->named.count == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "none of the %zu processes of the tree of process %d is in a "
				   "capture that is known here; they are not suspended, or their "
				   "image is to be named: stasis resume DIR",
				   count, (int)resume->options.pids[0]);
	resume->options.pids = resume->named.items;
	resume->options.count = resume->named.count;
	return 0;
}

static int path_settle(struct resume *resume, struct stasis_error *err)
{
	const char *path = resume->options.image_path;
	CLEANUP(free) char *real = NULL;

	if (!path) {
		if (resume->options.count == 0)
			return stasis_fail(err, STASIS_USAGE,
					   "resume: neither a process nor an image is named");
		if (resume->options.is_tree)
			return tree_settle(resume, err);
		return image_find(resume->options.pids[0], resume->image_path, err);
	}
	real = realpath(path, NULL);
	if (!real)
		return stasis_fail_errno(err, STASIS_BAD_IMAGE, "image '%s'", path);
	if (snprintf(resume->image_path, sizeof(resume->image_path), "%s", real) >=
	    (int)sizeof(resume->image_path))
		return stasis_fail(err, STASIS_USAGE, "resume: the path of the image is too long");
	return 0;
}

static bool has_process(const struct stasis_image_manifest *manifest, int32_t pid)
{
	for (size_t i = 0; i < manifest->process_count; i++) {
		if (manifest->processes[i].pid == pid)
			return true;
	}
	return false;
}

/* All processes of the image go together; whoever names one that is not of it means another. */
static int pids_settle(struct resume *resume, struct stasis_error *err)
{
	const struct stasis_image_open_options options = {.is_trusted = resume->options.is_trusted};
	CLEANUP(image) struct stasis_image *image = NULL;
	const struct stasis_image_manifest *manifest;

	if (stasis_image_open(resume->image_path, &options, &image, err) != 0)
		return -1;
	manifest = stasis_image_manifest(image);
	resume->capture = manifest->capture_id;
	for (size_t i = 0; i < resume->options.count; i++) {
		if (!has_process(manifest, resume->options.pids[i]))
			return stasis_fail(err, STASIS_SUSPENDED,
					   "process %d is not of the image '%s'",
					   resume->options.pids[i], resume->image_path);
	}
	for (size_t i = 0; i < manifest->process_count; i++) {
		bool is_there = stasis_lib_process_lives(manifest->processes[i].pid,
							 manifest->processes[i].start_ticks);

		if (!is_there && resume->options.is_without_missing)
			continue;
		if (!is_there)
			return stasis_fail(err, STASIS_SUSPENDED,
					   "process %d (%s) of the image '%s' has ended; "
					   "--without-missing resumes the others",
					   manifest->processes[i].pid,
					   manifest->processes[i].executable, resume->image_path);
		if (stasis_lib_pids_add(&resume->pids, manifest->processes[i].pid, err) != 0)
			return -1;
	}
	return resume->pids.count > 0
		       ? 0
		       : stasis_fail(
				 err, STASIS_REFUSED,
				 "all processes of the image '%s' have ended; 'stasis gc' and rm "
				 "remove it",
				 resume->image_path);
}

/* One that was left half-way is not simply to be resumed. */
static int standings_check(const struct stasis_group *group, struct stasis_error *err)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct stasis_group_process *process = &group->processes[i];
		uint8_t phase = process->participant.greeting.reached_phase;

		if (process->is_participant && phase != STASIS_WIRE_PREPARE_UNICAST)
			return stasis_fail(err, STASIS_SUSPENDED,
					   "process %d (%s) was left in the middle of a suspend or "
					   "resume, after %s; 'stasis recover' settles that first",
					   (int)process->target.process.pid, process->name,
					   phase ? stasis_wire_phase_name(phase) : "nothing");
	}
	return 0;
}

/* Whether all of them run: somebody else has resumed them meanwhile. */
static bool are_running(const struct stasis_lib_group_work *work, const struct resume *resume)
{
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));

	for (size_t i = 0; control && i < resume->pids.count; i++) {
		CUprocessState state = CU_PROCESS_STATE_FAILED;
		bool is_participant = false;

		if (work->hands.driver.cuCheckpointProcessGetState(resume->pids.items[i], &state) !=
			    CUDA_SUCCESS ||
		    state != CU_PROCESS_STATE_RUNNING ||
		    stasis_lib_control_read(resume->pids.items[i], &is_participant, control,
					    NULL) != 0 ||
		    (is_participant && stasis_lib_control_is_armed(control)))
			return false;
	}
	return control != NULL;
}

static int group_rebuild(struct stasis_lib_group_work *work, const struct resume *resume,
			 struct stasis_error *err)
{
	CLEANUP(group) struct stasis_group group = {.count = 0};
	struct stasis_group_plan plan = {
		.driver = &work->hands.driver,
		.watch = &work->watch,
		.capture = &resume->capture,
		.pids = resume->pids.items,
		.count = resume->pids.count,
	};
	const struct stasis_rebuild_options options = {
		.image_path = resume->image_path,
		.is_trusted = resume->options.is_trusted,
		.is_without_missing = resume->options.is_without_missing,
		.verify = (enum stasis_rebuild_verify)resume->options.verify,
		.transfer = {.workers = resume->options.workers},
	};

	enum stasis_group_fate fate = STASIS_GROUP_UNSETTLED;
	int result;

	if (stasis_id_random(&plan.operation, err) != 0)
		return -1;
	if (stasis_group_open(&group, &plan, err) != 0 || standings_check(&group, err) != 0) {
		if (!are_running(work, resume))
			stasis_error_worsen(err, STASIS_SUSPENDED);
		return -1;
	}
	result = stasis_group_rebuild(&group, &options, &fate, err);
	if (fate == STASIS_GROUP_RUNNING)
		stasis_lib_memory_image_drop(resume->image_path, &work->hands.channel->sink);
	return result;
}

/* The worker. */
static int resume_run(struct stasis_lib_channel *channel, void *argument, struct stasis_error *err)
{
	const struct resume *resume = argument;
	struct stasis_lib_group_work work;
	int result = stasis_lib_group_work_init(&work, channel, err);

	if (result == 0)
		result = group_rebuild(&work, resume, err);
	(void)stasis_fault_point("group_end");
	if (result == 0)
		stasis_lib_event(&channel->sink, "resumed", "%zu", resume->pids.count);
	stasis_lib_group_work_fini(&work);
	return result;
}

static int resume_supervise(struct stasis_library *library, struct resume *resume,
			    struct stasis_error *err)
{
	struct stasis_lib_knowledge knowledge = {.has_phase = false};
	const struct stasis_lib_watch watch = {
		.sink = &library->sink,
		.timeout_ns = resume->options.timeout_ns,
		.cancel_fd = resume->options.cancel_fd,
		.knowledge = &knowledge,
	};
	const struct stasis_lib_group_task task = {
		.function = resume_run,
		.argument = resume,
		.capture = &resume->capture,
		.keeper_fd = -1,
		.image_path = resume->image_path,
	};

	return stasis_lib_group_supervise(&watch, &task, err);
}

enum stasis_status stasis_library_resume(struct stasis_library *library,
					 const struct stasis_resume_options *options)
{
	struct stasis_error *err = stasis_lib_begin(library);
	CLEANUP(free) struct resume *resume = calloc(1, sizeof(*resume));
	int result;

	if (!resume) {
		(void)stasis_fail(err, STASIS_REFUSED, "out of memory");
		return stasis_lib_end(library, -1);
	}
	resume->options = (struct stasis_resume_options)STASIS_RESUME_OPTIONS_INIT;
	result = stasis_lib_options_copy("resume", options, &resume->options,
					 sizeof(resume->options), err);
	if (result == 0 && resume->options.timeout_ns == 0)
		result = stasis_fail(err, STASIS_USAGE, "resume: the timeout must not be 0");
	if (result == 0)
		result = path_settle(resume, err);
	if (result == 0)
		result = pids_settle(resume, err);
	if (result == 0)
		result = resume_supervise(library, resume, err);
	free(resume->named.items);
	free(resume->pids.items);
	return stasis_lib_end(library, result);
}
