#ifndef STASIS_GROUP_GROUP_H
#define STASIS_GROUP_GROUP_H

/*
 * A group: the processes that are captured and rebuilt together, each with what the coordinator holds of it. It is
 * taken apart by capture.h, put together by rebuild.h; both work on one of these. The driver must have been
 * started. One thread at a time; inside a phase all processes are asked at once, by threads that end with it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "group/kept.h"
#include "group/participant.h"
#include "group/topology.h"
#include "group/watch.h"

/* For an answer that moves nothing. */
#define STASIS_GROUP_ANSWER_NS (UINT64_C(30) * 1000000000)

struct stasis_group_process {
	struct stasis_target target;
	struct stasis_participant participant;
	bool is_participant; /* false: the interposer is not in it */
	bool is_out;         /* lost: it is asked for nothing more */
	char name[STASIS_PROCESS_NAME_BYTES];
	uint64_t start_ticks;
};

struct stasis_group {
	const struct stasis_driver *driver; /* borrowed */
	const struct stasis_group_watch *watch;
	struct stasis_id operation; /* that the sessions are of */
	size_t count;
	struct stasis_group_process *processes;
	struct stasis_topology topology; /* of the last inspection */
};

struct stasis_group_plan {
	const struct stasis_driver *driver;
	const struct stasis_group_watch *watch;
	struct stasis_id operation;
	const struct stasis_id *capture; /* that the processes are in; NULL: they run */
	bool is_capture_optional; /* one that is in none, because it had let itself go, is opened all the same */
	const int32_t *pids;
	size_t count;
};

/*
 * Holds every process and opens sessions. Refused: no process, one named twice, one without CUDA or the right to
 * trace it, one that another coordinator speaks to; of a capture also several without the interposer.
 */
NODISCARD int stasis_group_open(struct stasis_group *group, const struct stasis_group_plan *plan,
				struct stasis_error *err);
void stasis_group_close(struct stasis_group *group);

static inline void cleanup_group(struct stasis_group *group)
{
	stasis_group_close(group);
}

/* Called for one process, on a thread of its own. */
typedef int stasis_group_function(struct stasis_group *group, size_t index, void *argument,
				  struct stasis_error *err);

/* No later step asks those that have ended. -1: there are some anew, and the error, STASIS_LOST, names one. */
NODISCARD int stasis_group_bury(struct stasis_group *group, struct stasis_error *err);

bool stasis_group_is_any_left(const struct stasis_group *group);

/*
 * Calls it for every process at once, or only for participants, and waits for all; those that are out are left out. Fails with the error of the first
 * that failed, its status raised to the worst of all.
 */
NODISCARD int stasis_group_each(struct stasis_group *group, stasis_group_function *function,
				void *argument, struct stasis_error *err);
NODISCARD int stasis_group_each_participant(struct stasis_group *group,
					    stasis_group_function *function, void *argument,
					    struct stasis_error *err);

/* A phase without a body, of every participant. */
NODISCARD int stasis_group_ask(struct stasis_group *group, enum stasis_wire_phase phase,
			       uint64_t timeout_ns, struct stasis_error *err);

/* Tells every participant of the others. */
NODISCARD int stasis_group_introduce(struct stasis_group *group, struct stasis_error *err);

/* Everything that all participants say, put together, not yet checked. The caller frees it. */
NODISCARD int stasis_group_inspect(struct stasis_group *group, struct stasis_topology *ret_topology,
				   struct stasis_error *err);

/* NULL: it is not of this group. */
struct stasis_group_process *stasis_group_find(const struct stasis_group *group,
					       const struct stasis_id *participant);

/*
 * Who hands an object out and makes it anew: the topology's owner, or, where that is out, the first holder that is not.
 * NULL: all its holders are out.
 */
struct stasis_group_process *stasis_group_owner(const struct stasis_group *group,
						const struct stasis_group_object *object);

bool stasis_group_is_holder(const struct stasis_group_process *process,
			    const struct stasis_group_object *object);

bool stasis_group_has_participants(const struct stasis_group *group);

#endif
