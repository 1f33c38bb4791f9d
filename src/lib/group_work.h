#ifndef STASIS_LIB_GROUP_WORK_H
#define STASIS_LIB_GROUP_WORK_H

/*
 * What suspend, resume and recover have in common: a worker that makes the CUDA calls, the watch of a group over the
 * channel to its supervisor, and what the supervisor does where the worker was lost.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "driver/driver.h"
#include "group/group.h"
#include "group/rebuild.h"
#include "lib/channel.h"
#include "lib/hands.h"
#include "lib/supervise.h"

/* Of the worker. */
struct stasis_lib_group_work {
	struct stasis_lib_hands hands; /* its driver, and the channel */
	struct stasis_group_watch watch;
};

/* Loads and starts the driver; `work` must stay where it is. Ended by _fini. */
NODISCARD int stasis_lib_group_work_init(struct stasis_lib_group_work *work,
					 struct stasis_lib_channel *channel,
					 struct stasis_error *err);
void stasis_lib_group_work_fini(struct stasis_lib_group_work *work);

/* The same process as then, and no zombie, which nobody can bring back. */
NODISCARD bool stasis_lib_process_lives(int32_t pid, uint64_t start_ticks);

/* Adds pids that are not there yet; the caller frees the array. */
struct stasis_lib_pids {
	int32_t *items;
	size_t count;
};

NODISCARD int stasis_lib_pids_add(struct stasis_lib_pids *pids, int32_t pid,
				  struct stasis_error *err);

/* What to do for a group whose coordinator was lost: `argument` of stasis_lib_group_recover_run. */
struct stasis_lib_group_recovery {
	const char *journal_path;
	int keeper_fd; /* where duplicates of the descriptors wait; -1: nowhere */
	/* Where there is no journal any more, or was none yet: this image's processes show what they are. NULL: none */
	const char *image_path;
	const struct stasis_id *capture; /* that the image must be of */
	enum stasis_rebuild_verify verify;
};

stasis_lib_child_function stasis_lib_group_recover_run;

/* What a worker does, and what is needed to recover where it was lost; see above. */
struct stasis_lib_group_task {
	stasis_lib_child_function *function;
	void *argument;
	const struct stasis_id *capture;
	int keeper_fd;
	const char *image_path;
};

/*
 * Has a child do the task, watches it, and where it was lost has another child recover what the journal of the capture
 * says. The error says in one line what became of the processes.
 */
NODISCARD int stasis_lib_group_supervise(const struct stasis_lib_watch *watch,
					 const struct stasis_lib_group_task *task,
					 struct stasis_error *err);

#endif
