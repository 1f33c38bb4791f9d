/* See census.h. */

#include "group/census.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "wire/session.h"

/* As the kernel shows the control file's descriptor (docs/protocol.md). */
#define CONTROL_LINK "/memfd:stasis-control (deleted)"

/* It may have all the observers that it takes, or be about to end. */
#define TRIES 20
#define PAUSE_US 50000

static bool link_is_control(int dir_fd, const char *name)
{
	char link[sizeof(CONTROL_LINK) + 1];
	ssize_t bytes = readlinkat(dir_fd, name, link, sizeof(link));

	return bytes == (ssize_t)strlen(CONTROL_LINK) &&
	       memcmp(link, CONTROL_LINK, (size_t)bytes) == 0;
}

/* False also where we may not look. */
static bool is_participant(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	bool is_found = false;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !is_found && (entry = stasis_dir_next(dir)) != NULL)
		is_found = link_is_control(dirfd(dir), entry->d_name);
	if (dir)
		(void)closedir(dir);
	return is_found;
}

static bool is_of_group(const struct stasis_group *group, pid_t pid)
{
	for (size_t i = 0; i < group->count; i++) {
		if (group->processes[i].target.process.pid == pid)
			return true;
	}
	return false;
}

static const struct stasis_id *object_of(const struct stasis_wire_record *record)
{
	if (record->type == STASIS_WIRE_ALLOCATION)
		return &record->allocation.object;
	if (record->type == STASIS_WIRE_MULTICAST)
		return &record->multicast.object;
	return NULL;
}

static int records_check(const struct stasis_group *group, pid_t pid,
			 const struct stasis_wire_record *records, uint32_t count,
			 struct stasis_error *err)
{
	char name[STASIS_PROCESS_NAME_BYTES];

	for (uint32_t i = 0; i < count; i++) {
		const struct stasis_id *object = object_of(&records[i]);

		if (!object || !stasis_topology_find(&group->topology, object))
			continue;
		stasis_process_name(pid, name);
		return stasis_fail(err, STASIS_REFUSED,
				   "process %d (%s) shares GPU memory with those named and is not "
				   "among them; name it, too",
				   (int)pid, name);
	}
	return 0;
}

static int records_ask(struct stasis_group *group, pid_t pid, struct stasis_wire_record **records,
		       uint32_t *count, struct stasis_error *err)
{
	CLEANUP(participant) struct stasis_participant participant = STASIS_PARTICIPANT_EMPTY;
	uint64_t deadline_ns = stasis_deadline_after_ns(STASIS_GROUP_ANSWER_NS);
	bool is_one = false;

	*count = 0;
	if (stasis_participant_observe(pid, &group->operation, deadline_ns, &is_one, &participant,
				       err) != 0)
		return -1;
	return is_one ? stasis_participant_inspect(&participant, deadline_ns, records, count, err)
		      : 0;
}

/* What a process says of itself as a participant, without being asked. The caller frees it; NULL: it is none. */
static struct stasis_wire_control *control_take(pid_t pid)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));
	CLEANUP(fd) int door_fd = -1;
	bool is_one = false;

	if (!control || stasis_process_open(pid, &process, NULL) != 0 ||
	    stasis_wire_control_take(pid, process.pidfd, &is_one, control, &door_fd, NULL) != 0 ||
	    !is_one)
		return NULL;
	return ptr_steal(&control);
}

/* It runs under another release's interposer, which need not understand what it is asked. */
static bool is_of_other_release(const struct stasis_group *group, pid_t pid)
{
	CLEANUP(free) struct stasis_wire_control *control = control_take(pid);

	if (!control)
		return false;
	for (uint32_t i = 0; i < group->topology.member_count; i++) {
		if (strcmp(group->topology.members[i].build, control->build) == 0)
			return false;
	}
	return true;
}

/* One that ends while it is asked holds nothing. */
static int participant_ask(struct stasis_group *group, pid_t pid, struct stasis_error *err)
{
	for (int try = 1;; try++) {
		CLEANUP(free) struct stasis_wire_record *records = NULL;
		struct stasis_error failure = STASIS_ERROR_INIT;
		uint32_t count = 0;

		if (records_ask(group, pid, &records, &count, &failure) == 0)
			return records_check(group, pid, records, count, err);
		/* As it dies it loses its descriptors at once; its number stays until its parent has asked for it. */
		if (!is_participant(pid))
			return 0;
		if (is_of_other_release(group, pid)) {
			stasis_group_event(
				group->watch, "warning",
				"process %d runs under the interposer of another release "
				"of stasis, and does not say whether it shares GPU memory "
				"with those named",
				(int)pid);
			return 0;
		}
		if (try == TRIES) {
			stasis_error_take(err, &failure);
			stasis_error_append(err,
					    "; whether process %d shares GPU memory with "
					    "those named cannot be known",
					    (int)pid);
			return -1;
		}
		(void)usleep(PAUSE_US);
	}
}

/* ---- all on this machine ---- */

typedef int look_function(struct stasis_group *group, pid_t pid, struct stasis_error *err);

/* Looks at every participant that is not of the group. */
static int outsiders_each(struct stasis_group *group, look_function *function,
			  struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return stasis_fail_errno(err, STASIS_REFUSED, "read /proc");
	while ((entry = stasis_dir_next(dir)) != NULL) {
		uint64_t pid = 0;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    stasis_parse_u64("pid", entry->d_name, &pid, NULL) != 0 || pid > INT32_MAX ||
		    is_of_group(group, (pid_t)pid) || (pid_t)pid == getpid() ||
		    !is_participant((pid_t)pid))
			continue;
		if (function(group, (pid_t)pid, err) != 0)
			return -1;
	}
	return 0;
}

int stasis_census_check(struct stasis_group *group, struct stasis_error *err)
{
	return group->topology.object_count > 0 ? outsiders_each(group, participant_ask, err) : 0;
}

static int creator_check(struct stasis_group *group, pid_t pid, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_control *control = control_take(pid);
	char name[STASIS_PROCESS_NAME_BYTES];

	for (uint32_t i = 0; control && i < group->topology.object_count; i++) {
		const struct stasis_group_object *object = &group->topology.objects[i];
		const struct stasis_member *holder = object->holders[0].member;

		if (!stasis_id_equal(&object->creator, &control->participant))
			continue;
		stasis_process_name(pid, name);
		return stasis_fail(err, STASIS_REFUSED,
				   "process %d (%s) made GPU memory that process %d (%s) shares, "
				   "and is not among those named; name every process that shares "
				   "memory with them",
				   (int)pid, name, (int)holder->pid, holder->name);
	}
	return 0;
}

static bool has_foreign_creator(const struct stasis_group *group)
{
	for (uint32_t i = 0; i < group->topology.object_count; i++) {
		if (!stasis_group_find(group, &group->topology.objects[i].creator))
			return true;
	}
	return false;
}

int stasis_census_creators(struct stasis_group *group, struct stasis_error *err)
{
	return has_foreign_creator(group) ? outsiders_each(group, creator_check, err) : 0;
}
