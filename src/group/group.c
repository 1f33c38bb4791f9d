/* See group.h. */

#include "group/group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "group/ask.h"

/* ---- opening ---- */

/* The session of another coordinator that has just ended, or is about to. */
#define BUSY_TRIES 100
#define BUSY_PAUSE_US 50000

static int session_open_once(struct stasis_group *group, const struct stasis_id *capture,
			     struct stasis_group_process *process, struct stasis_error *err)
{
	return stasis_participant_open(process->target.process.pid, &group->operation, capture,
				       stasis_deadline_after_ns(STASIS_GROUP_ANSWER_NS),
				       &process->is_participant, &process->participant, err);
}

static int session_open_patiently(struct stasis_group *group, const struct stasis_id *capture,
				  struct stasis_group_process *process, struct stasis_error *err)
{
	for (int try = 0;; try++) {
		struct stasis_error refusal = STASIS_ERROR_INIT;

		if (session_open_once(group, capture, process, &refusal) == 0)
			return 0;
		if (refusal.os_errno != EBUSY || try == BUSY_TRIES) {
			stasis_error_take(err, &refusal);
			return -1;
		}
		(void)usleep(BUSY_PAUSE_US);
	}
}

/* A participant whose coordinator went away before it was armed is in no capture any more. */
static int session_open(struct stasis_group *group, const struct stasis_group_plan *plan,
			struct stasis_group_process *process, struct stasis_error *err)
{
	struct stasis_error refusal = STASIS_ERROR_INIT;

	if (session_open_patiently(group, plan->capture, process, &refusal) == 0 ||
	    (plan->is_capture_optional && session_open_once(group, NULL, process, NULL) == 0))
		return 0;
	stasis_error_take(err, &refusal);
	return -1;
}

static int process_open(struct stasis_group *group, const struct stasis_group_plan *plan, pid_t pid,
			struct stasis_group_process *process, struct stasis_error *err)
{
	process->target = (struct stasis_target)STASIS_TARGET_EMPTY;
	process->participant = (struct stasis_participant)STASIS_PARTICIPANT_EMPTY;
	if (stasis_target_open(group->driver, pid, &process->target, err) != 0)
		return -1;
	process->start_ticks = process->target.process.start_ticks;
	stasis_process_name(pid, process->name);
	return session_open(group, plan, process, err);
}

static int pids_check(const struct stasis_group_plan *plan, struct stasis_error *err)
{
	if (plan->count == 0)
		return stasis_fail(err, STASIS_USAGE, "no process is named");
	if (plan->count > STASIS_WIRE_PEERS_MAX)
		return stasis_fail(err, STASIS_USAGE, "at most %d processes go together",
				   STASIS_WIRE_PEERS_MAX);
	for (size_t i = 0; i < plan->count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (plan->pids[i] == plan->pids[j])
				return stasis_fail(err, STASIS_USAGE, "process %d is named twice",
						   plan->pids[i]);
		}
	}
	return 0;
}

/* Whether processes without the interposer share memory with each other is not to be seen. */
static int unwatched_check(const struct stasis_group *group, struct stasis_error *err)
{
	const struct stasis_group_process *first = NULL;

	for (size_t i = 0; i < group->count; i++) {
		const struct stasis_group_process *process = &group->processes[i];

		if (process->is_participant)
			continue;
		if (group->count > 1)
			return stasis_fail(
				err, STASIS_REFUSED,
				"process %d (%s) runs without the interposer, so that it "
				"cannot be known whether it shares GPU memory with the "
				"others; start it with 'stasis run', or name it alone",
				(int)process->target.process.pid, process->name);
		first = process;
	}
	if (first)
		stasis_group_event(group->watch, "warning",
				   "process %d (%s) runs without the interposer: whether it shares "
				   "GPU memory with others, which would be lost, cannot be known",
				   (int)first->target.process.pid, first->name);
	return 0;
}

int stasis_group_open(struct stasis_group *group, const struct stasis_group_plan *plan,
		      struct stasis_error *err)
{
	if (pids_check(plan, err) != 0)
		return -1;
	*group = (struct stasis_group){
		.driver = plan->driver,
		.watch = plan->watch,
		.operation = plan->operation,
		.processes = calloc(plan->count, sizeof(group->processes[0])),
	};
	if (!group->processes)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "hold the processes");
	for (size_t i = 0; i < plan->count; i++) {
		group->count++;
		if (process_open(group, plan, plan->pids[i], &group->processes[i], err) != 0)
			goto failed;
	}
	if (unwatched_check(group, err) == 0)
		return 0;
failed:
	stasis_group_close(group);
	return -1;
}

void stasis_group_close(struct stasis_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		stasis_participant_close(&group->processes[i].participant);
		stasis_target_close(&group->processes[i].target);
	}
	free(group->processes);
	stasis_topology_free(&group->topology);
	*group = (struct stasis_group){.count = 0};
}

/* ---- those that have ended ---- */

int stasis_group_bury(struct stasis_group *group, struct stasis_error *err)
{
	int result = 0;

	for (size_t i = 0; i < group->count; i++) {
		struct stasis_group_process *process = &group->processes[i];

		if (process->is_out || stasis_process_is_alive(&process->target.process))
			continue;
		process->is_out = true;
		result = stasis_fail(err, STASIS_LOST, "process %d (%s) has ended",
				     (int)process->target.process.pid, process->name);
	}
	return result;
}

bool stasis_group_is_any_left(const struct stasis_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		if (!group->processes[i].is_out)
			return true;
	}
	return false;
}

/* ---- all at once ---- */

struct turn {
	struct stasis_group *group;
	size_t index;
	stasis_group_function *function;
	void *argument;
	pthread_t thread;
	bool has_thread;
	int result;
	struct stasis_error err;
};

static void *turn_run(void *data)
{
	struct turn *turn = data;

	turn->result = turn->function(turn->group, turn->index, turn->argument, &turn->err);
	return NULL;
}

/* Without a thread it is done here, after the others were begun. */
static void turns_run(struct turn *turns, size_t count)
{
	for (size_t i = 1; i < count; i++)
		turns[i].has_thread =
			pthread_create(&turns[i].thread, NULL, turn_run, &turns[i]) == 0;
	for (size_t i = 0; i < count; i++) {
		if (!turns[i].has_thread)
			(void)turn_run(&turns[i]);
	}
	for (size_t i = 0; i < count; i++) {
		if (turns[i].has_thread)
			(void)pthread_join(turns[i].thread, NULL);
	}
}

static int turns_judge(const struct turn *turns, size_t count, struct stasis_error *err)
{
	struct stasis_error first = STASIS_ERROR_INIT;
	size_t failed = 0;

	for (size_t i = 0; i < count; i++) {
		if (turns[i].result == 0)
			continue;
		failed++;
		stasis_error_take(&first, &turns[i].err);
		stasis_error_worsen(&first, turns[i].err.status);
	}
	if (failed == 0)
		return 0;
	if (failed > 1)
		stasis_error_append(&first, "; %zu processes failed", failed);
	stasis_error_take(err, &first);
	return -1;
}

static int each(struct stasis_group *group, bool is_participants_only,
		stasis_group_function *function, void *argument, struct stasis_error *err)
{
	CLEANUP(free) struct turn *turns = calloc(group->count, sizeof(*turns));
	size_t count = 0;

	if (!turns)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "ask the processes");
	for (size_t i = 0; i < group->count; i++) {
		const struct stasis_group_process *process = &group->processes[i];

		if (!process->is_out && (!is_participants_only || process->is_participant))
			turns[count++] = (struct turn){.group = group,
						       .index = i,
						       .function = function,
						       .argument = argument,
						       .err = STASIS_ERROR_INIT};
	}
	if (count == 0)
		return 0;
	turns_run(turns, count);
	return turns_judge(turns, count, err);
}

int stasis_group_each(struct stasis_group *group, stasis_group_function *function, void *argument,
		      struct stasis_error *err)
{
	return each(group, false, function, argument, err);
}

int stasis_group_each_participant(struct stasis_group *group, stasis_group_function *function,
				  void *argument, struct stasis_error *err)
{
	return each(group, true, function, argument, err);
}

struct question {
	enum stasis_wire_phase phase;
	uint64_t timeout_ns;
};

static int question_ask(struct stasis_group *group, size_t index, void *argument,
			struct stasis_error *err)
{
	const struct question *question = argument;

	return stasis_ask(&group->processes[index].participant, question->phase,
			  question->timeout_ns, err);
}

int stasis_group_ask(struct stasis_group *group, enum stasis_wire_phase phase, uint64_t timeout_ns,
		     struct stasis_error *err)
{
	struct question question = {.phase = phase, .timeout_ns = timeout_ns};

	return stasis_group_each_participant(group, question_ask, &question, err);
}

/* ---- who is there, and what they hold ---- */

struct introduction {
	struct stasis_wire_peer peers[STASIS_WIRE_PEERS_MAX];
	uint32_t count;
};

static int introduction_send(struct stasis_group *group, size_t index, void *argument,
			     struct stasis_error *err)
{
	const struct introduction *introduction = argument;

	return stasis_ask_peers(&group->processes[index].participant, introduction->peers,
				introduction->count, STASIS_GROUP_ANSWER_NS, err);
}

int stasis_group_introduce(struct stasis_group *group, struct stasis_error *err)
{
	CLEANUP(free) struct introduction *introduction = calloc(1, sizeof(*introduction));

	if (!introduction)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "introduce the processes");
	for (size_t i = 0; i < group->count; i++) {
		const struct stasis_group_process *process = &group->processes[i];
		struct stasis_wire_peer *peer = &introduction->peers[introduction->count];

		if (!process->is_participant || process->is_out)
			continue;
		peer->participant = process->participant.greeting.participant;
		peer->incarnation = process->participant.greeting.incarnation;
		introduction->count++;
	}
	return stasis_group_each_participant(group, introduction_send, introduction, err);
}

struct answer {
	struct stasis_wire_record *records;
	uint32_t count;
};

static int answer_get(struct stasis_group *group, size_t index, void *argument,
		      struct stasis_error *err)
{
	struct answer *answer = &((struct answer *)argument)[index];

	return stasis_participant_inspect(&group->processes[index].participant,
					  stasis_deadline_after_ns(STASIS_GROUP_ANSWER_NS),
					  &answer->records, &answer->count, err);
}

static int answer_add(const struct stasis_group_process *process, const struct answer *answer,
		      struct stasis_topology *topology, struct stasis_error *err)
{
	const struct stasis_wire_session_reply *greeting = &process->participant.greeting;
	struct stasis_member member = {
		.participant = greeting->participant,
		.pid = process->target.process.pid,
		.start_ticks = process->start_ticks,
		.records = answer->records,
		.record_count = answer->count,
	};

	memcpy(member.name, process->name, sizeof(member.name));
	memcpy(member.build, greeting->build, sizeof(member.build));
	return stasis_topology_add(topology, &member, err);
}

int stasis_group_inspect(struct stasis_group *group, struct stasis_topology *ret_topology,
			 struct stasis_error *err)
{
	CLEANUP(free) struct answer *answers = calloc(group->count, sizeof(*answers));
	struct stasis_topology topology = {.members = NULL};
	int result;

	if (!answers)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "inspect the processes");
	result = stasis_group_each_participant(group, answer_get, answers, err);
	for (size_t i = 0; i < group->count; i++) {
		if (result == 0 && group->processes[i].is_participant &&
		    !group->processes[i].is_out)
			result = answer_add(&group->processes[i], &answers[i], &topology, err);
		free(answers[i].records);
	}
	if (result != 0)
		stasis_topology_free(&topology);
	else
		*ret_topology = topology;
	return result;
}

struct stasis_group_process *stasis_group_find(const struct stasis_group *group,
					       const struct stasis_id *participant)
{
	for (size_t i = 0; i < group->count; i++) {
		struct stasis_group_process *process = &group->processes[i];

		if (process->is_participant && !process->is_out &&
		    stasis_id_equal(&process->participant.greeting.participant, participant))
			return process;
	}
	return NULL;
}

struct stasis_group_process *stasis_group_owner(const struct stasis_group *group,
						const struct stasis_group_object *object)
{
	struct stasis_group_process *process =
		stasis_group_find(group, &object->holders[object->owner_index].member->participant);

	for (uint32_t i = 0; !process && i < object->holder_count; i++)
		process = stasis_group_find(group, &object->holders[i].member->participant);
	return process;
}

bool stasis_group_is_holder(const struct stasis_group_process *process,
			    const struct stasis_group_object *object)
{
	for (uint32_t i = 0; i < object->holder_count; i++) {
		if (stasis_id_equal(&object->holders[i].member->participant,
				    &process->participant.greeting.participant))
			return true;
	}
	return false;
}

bool stasis_group_has_participants(const struct stasis_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->processes[i].is_participant)
			return true;
	}
	return false;
}
