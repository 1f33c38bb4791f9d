/* See group_work.h. */

#include "lib/group_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process.h"
#include "group/journal.h"

/* ---- the watch of a group, over the channel ---- */

static int phase_begin(void *data, enum stasis_group_phase phase, struct stasis_error *err)
{
	struct stasis_lib_group_work *work = data;

	return stasis_lib_phase_begin(work->hands.channel, stasis_lib_phase_of_group(phase), err);
}

static void phase_enter(void *data, enum stasis_group_phase phase)
{
	struct stasis_lib_group_work *work = data;

	stasis_lib_phase_enter(work->hands.channel, stasis_lib_phase_of_group(phase));
}

static void event_pass(void *data, const char *key, const char *value)
{
	struct stasis_lib_group_work *work = data;

	stasis_lib_event(&work->hands.channel->sink, key, "%s", value);
}

static struct stasis_transfer_watch transfer_watch(void *data, const char *label, bool can_cancel)
{
	struct stasis_lib_group_work *work = data;

	return stasis_lib_hands_watch(&work->hands, label, can_cancel);
}

static void partial_pass(void *data, const char *path)
{
	struct stasis_lib_group_work *work = data;

	stasis_lib_channel_fact(work->hands.channel, STASIS_LIB_FACT_PARTIAL, path);
}

static void durable_pass(void *data)
{
	struct stasis_lib_group_work *work = data;

	stasis_lib_channel_fact(work->hands.channel, STASIS_LIB_FACT_DURABLE, "");
}

/* Every allocation that is shared takes some; what even the hard limit does not allow is refused later, by its number. */
static void descriptors_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int stasis_lib_group_work_init(struct stasis_lib_group_work *work,
			       struct stasis_lib_channel *channel, struct stasis_error *err)
{
	*work = (struct stasis_lib_group_work){.hands = STASIS_LIB_HANDS_INIT(channel)};
	work->watch = (struct stasis_group_watch){
		.begin = phase_begin,
		.enter = phase_enter,
		.event = event_pass,
		.transfer = transfer_watch,
		.partial = partial_pass,
		.durable = durable_pass,
		.data = work,
	};
	descriptors_allow();
	if (stasis_driver_open(NULL, &work->hands.driver, err) != 0)
		return -1;
	stasis_lib_calls_note(&work->hands.driver, channel->call_word);
	return stasis_driver_start(&work->hands.driver, err);
}

void stasis_lib_group_work_fini(struct stasis_lib_group_work *work)
{
	stasis_lib_hands_fini(&work->hands);
}

bool stasis_lib_process_lives(int32_t pid, uint64_t start_ticks)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;

	return stasis_process_open(pid, &process, NULL) == 0 && process.start_ticks == start_ticks;
}

int stasis_lib_pids_add(struct stasis_lib_pids *pids, int32_t pid, struct stasis_error *err)
{
	int32_t *items;

	for (size_t i = 0; i < pids->count; i++) {
		if (pids->items[i] == pid)
			return 0;
	}
	items = realloc(pids->items, (pids->count + 1) * sizeof(items[0]));
	if (!items)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "list the processes");
	pids->items = items;
	pids->items[pids->count++] = pid;
	return 0;
}

/* ---- after a worker that was lost ---- */

static int lost_recover(const struct stasis_lib_watch *watch,
			const struct stasis_lib_group_task *task, struct stasis_error *err)
{
	char path[STASIS_JOURNAL_PATH_BYTES];
	struct stasis_lib_group_recovery recovery = {
		.journal_path = path,
		.keeper_fd = task->keeper_fd,
		.image_path = task->image_path,
		.capture = task->capture,
		.verify = STASIS_REBUILD_VERIFY_LOADING,
	};
	struct stasis_lib_watch recovery_watch = *watch;
	enum stasis_lib_ending ending = STASIS_LIB_DIED;
	struct stasis_error outcome = STASIS_ERROR_INIT;

	recovery_watch.cancel_fd = -1;
	if (stasis_journal_path(task->capture, path, err) != 0 ||
	    stasis_lib_supervise(stasis_lib_group_recover_run, &recovery, &recovery_watch, &ending,
				 &outcome, err) != 0)
		return -1;
	stasis_error_take(err, &outcome);
	if (ending != STASIS_LIB_ENDED) {
		stasis_error_worsen(err, STASIS_LOST);
		stasis_error_append(err, "; 'stasis recover' tries again");
	}
	return stasis_error_is_set(err) ? -1 : 0;
}

/* What a worker left that was lost before it had a journal. */
static void partial_remove(const struct stasis_lib_watch *watch)
{
	const char *path = watch->knowledge->partial;
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (path[0] == '\0' || access(path, F_OK) != 0)
		return;
	if (stasis_tree_remove(AT_FDCWD, path, &failure) != 0)
		stasis_lib_event(watch->sink, "warning", "%s", failure.text);
}

/* Adds to what became of the worker what became of the processes. */
static void lost_settle(const struct stasis_lib_watch *watch,
			const struct stasis_lib_group_task *task, struct stasis_error *outcome)
{
	struct stasis_error found = STASIS_ERROR_INIT;

	if (lost_recover(watch, task, &found) != 0) {
		stasis_error_worsen(outcome, found.status);
		stasis_error_append(outcome, "; then: %s", found.text);
	} else if (watch->knowledge->is_suspended) {
		outcome->status = STASIS_SUSPENDED;
		stasis_error_append(outcome, "; the processes are suspended; 'stasis resume' "
					     "brings them back");
	} else {
		outcome->status = STASIS_REFUSED;
		stasis_error_append(outcome, "; the processes run");
		partial_remove(watch);
	}
}

int stasis_lib_group_supervise(const struct stasis_lib_watch *watch,
			       const struct stasis_lib_group_task *task, struct stasis_error *err)
{
	enum stasis_lib_ending ending = STASIS_LIB_DIED;
	struct stasis_error outcome = STASIS_ERROR_INIT;

	if (stasis_lib_supervise(task->function, task->argument, watch, &ending, &outcome, err) !=
	    0)
		return -1;
	if (ending != STASIS_LIB_ENDED)
		lost_settle(watch, task, &outcome);
	if (!stasis_error_is_set(&outcome))
		return 0;
	stasis_error_take(err, &outcome);
	return -1;
}
