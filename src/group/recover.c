/*
 * After a coordinator that died: where every participant still stands, or stands again, the gates are opened. Else all
 * are taken apart to the end, which is legal from wherever they are, and rebuilt from what the journal names. A
 * capture that had been finished is left as it is.
 */

#include <fcntl.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "group/ask.h"
#include "group/native.h"
#include "group/rebuild.h"

#define LIMIT_NS (UINT64_C(300) * 1000000000)

static uint8_t reached(const struct stasis_group_process *process)
{
	return process->participant.greeting.reached_phase;
}

/* Nothing of it was taken apart, or all of it is together again. */
static bool is_whole(const struct stasis_group_process *process)
{
	return !process->is_participant || reached(process) == 0 ||
	       reached(process) == STASIS_WIRE_GATE || reached(process) == STASIS_WIRE_ARM;
}

static bool is_down(const struct stasis_group_process *process)
{
	return process->is_participant && reached(process) == STASIS_WIRE_PREPARE_UNICAST;
}

static int down_bring(struct stasis_group *group, size_t index, void *argument,
		      struct stasis_error *err)
{
	struct stasis_group_process *process = &group->processes[index];
	uint8_t phase = reached(process);

	(void)argument;
	if (phase == STASIS_WIRE_PREPARE_UNICAST)
		return 0;
	if (phase != STASIS_WIRE_LOAD_ALLOCATIONS &&
	    stasis_ask(&process->participant, STASIS_WIRE_PREPARE_MULTICAST, LIMIT_NS, err) != 0)
		return -1;
	return stasis_ask(&process->participant, STASIS_WIRE_PREPARE_UNICAST, LIMIT_NS, err);
}

static int gates_open(struct stasis_group *group, struct stasis_error *err)
{
	if (stasis_native_return(group, err) != 0)
		return -1;
	return stasis_group_ask(group, STASIS_WIRE_OPEN, STASIS_GROUP_ANSWER_NS, err);
}

static bool is_published(const struct stasis_journal *journal)
{
	CLEANUP(image) struct stasis_image *image = NULL;

	return journal->image[0] != '\0' &&
	       stasis_image_open(journal->image, NULL, &image, NULL) == 0 &&
	       stasis_id_equal(&stasis_image_manifest(image)->capture_id, &journal->capture);
}

/* All of them down and put aside by the driver, as a finished capture leaves them. */
static bool is_suspended(const struct stasis_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		CUprocessState state;

		if (stasis_target_state(&group->processes[i].target, &state, NULL) != 0 ||
		    state != CU_PROCESS_STATE_CHECKPOINTED ||
		    (group->processes[i].is_participant && !is_down(&group->processes[i])))
			return false;
	}
	return true;
}

static int rebuild_from(struct stasis_group *group, const struct stasis_journal *journal,
			const struct stasis_rebuild_options *options,
			enum stasis_group_fate *ret_fate, struct stasis_error *err)
{
	struct stasis_rebuild_options from = *options;
	bool is_image = is_published(journal);

	from.image_path = is_image ? journal->image : journal->partial;
	from.is_partial = !is_image;
	from.is_without_missing = true;
	if (from.image_path[0] == '\0')
		return stasis_fail(err, STASIS_LOST,
				   "the journal '%s' names no image that the processes could come "
				   "back from",
				   journal->path);
	if (stasis_group_each_participant(group, down_bring, NULL, err) != 0) {
		stasis_error_worsen(err, STASIS_SUSPENDED);
		return -1;
	}
	return stasis_group_rebuild(group, &from, ret_fate, err);
}

/* What is left of a capture that was taken back. */
static void traces_remove(struct stasis_group *group, struct stasis_journal *journal, bool is_image)
{
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (!is_image && journal->partial[0] != '\0' &&
	    stasis_tree_remove(AT_FDCWD, journal->partial, &failure) != 0)
		stasis_group_event(group->watch, "warning", "%s", failure.text);
	failure = (struct stasis_error)STASIS_ERROR_INIT;
	if (stasis_journal_remove(journal, &failure) != 0)
		stasis_group_event(group->watch, "warning", "%s", failure.text);
}

int stasis_group_recover(struct stasis_group *group, struct stasis_journal *journal,
			 const struct stasis_rebuild_options *options,
			 enum stasis_group_fate *ret_fate, struct stasis_error *err)
{
	bool is_image = is_published(journal);
	bool are_whole = true;
	int result = 0;

	*ret_fate = STASIS_GROUP_UNSETTLED;
	for (size_t i = 0; i < group->count; i++)
		are_whole = are_whole && is_whole(&group->processes[i]);
	if (is_image && is_suspended(group)) {
		*ret_fate = STASIS_GROUP_SUSPENDED;
	} else if (are_whole) {
		result = gates_open(group, err);
		if (result == 0)
			*ret_fate = STASIS_GROUP_RUNNING;
	} else {
		result = rebuild_from(group, journal, options, ret_fate, err);
	}
	if (*ret_fate == STASIS_GROUP_RUNNING || (is_image && *ret_fate == STASIS_GROUP_SUSPENDED))
		traces_remove(group, journal, is_image);
	return result;
}
