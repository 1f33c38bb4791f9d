/*
 * See process.h.
 */

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"

#define ENDING_MS 2000

struct stat_fields {
	char state;
	pid_t parent;
	uint64_t start_ticks;
};

/* Reads a small file of /proc whole; false: not there. */
static bool proc_read(pid_t pid, const char *name, char *text, size_t text_bytes)
{
	CLEANUP(fd) int fd = -1;
	char path[64];
	size_t used = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (used + 1 < text_bytes) {
		ssize_t count = read(fd, text + used, text_bytes - used - 1);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return false;
		if (count == 0)
			break;
		used += (size_t)count;
	}
	text[used] = '\0';
	return used > 0;
}

/*
 * /proc/PID/stat: "pid (comm) state ppid … start_ticks …". comm may hold spaces and parentheses, so fields
 * are counted from the last ')': state is the first behind it, the parent the second, the start time (field 22) the
 * twentieth.
 */
static bool stat_read(pid_t pid, struct stat_fields *ret_fields)
{
	char text[1024];
	char *at;
	char *rest = NULL;
	char *field;
	int index = 0;

	if (!proc_read(pid, "stat", text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	if (!at)
		return false;
	for (field = strtok_r(at + 1, " ", &rest); field; field = strtok_r(NULL, " ", &rest)) {
		if (index == 0)
			ret_fields->state = *field;
		if (index == 1)
			ret_fields->parent = (pid_t)strtol(field, NULL, 10);
		if (index == 19) {
			ret_fields->start_ticks = strtoull(field, NULL, 10);
			return true;
		}
		index++;
	}
	return false;
}

bool stasis_process_status_kib(pid_t pid, const char *key, uint64_t *ret_kib)
{
	char text[8192];
	char *line;
	char *rest = NULL;
	size_t key_bytes = strlen(key);

	if (!proc_read(pid, "status", text, sizeof(text)))
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, key, key_bytes) == 0) {
			*ret_kib = strtoull(line + key_bytes, NULL, 10);
			return true;
		}
	}
	return false;
}

void stasis_process_name(pid_t pid, char ret_name[STASIS_PROCESS_NAME_BYTES])
{
	ret_name[0] = '\0';
	if (!proc_read(pid, "comm", ret_name, STASIS_PROCESS_NAME_BYTES))
		ret_name[0] = '\0';
	for (char *at = ret_name; *at; at++) {
		if (*at == '\n')
			*at = '\0';
		else if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
}

bool stasis_process_start_ticks(pid_t pid, uint64_t *ret_start_ticks)
{
	struct stat_fields fields = {0};

	if (!stat_read(pid, &fields))
		return false;
	*ret_start_ticks = fields.start_ticks;
	return true;
}

bool stasis_process_parent(pid_t pid, pid_t *ret_parent)
{
	struct stat_fields fields = {0};

	if (!stat_read(pid, &fields) || fields.state == 'Z' || fields.state == 'X')
		return false;
	*ret_parent = fields.parent;
	return true;
}

bool stasis_process_is_stopped(pid_t pid)
{
	struct stat_fields fields = {0};

	return stat_read(pid, &fields) && (fields.state == 'T' || fields.state == 't');
}

bool stasis_process_lives(pid_t pid, uint64_t start_ticks)
{
	struct stat_fields fields = {0};

	return stat_read(pid, &fields) && fields.start_ticks == start_ticks &&
	       fields.state != 'Z' && fields.state != 'X';
}

static int pid_refuse(pid_t pid, struct stasis_error *err)
{
	uint64_t leader = 0;

	if (pid <= 0)
		return stasis_fail(err, STASIS_REFUSED, "pid %d is not a process id", (int)pid);
	if (pid == getpid())
		return stasis_fail(err, STASIS_REFUSED,
				   "pid %d is this program itself, which cannot checkpoint itself",
				   (int)pid);
	if (!stasis_process_status_kib(pid, "Tgid:", &leader))
		return stasis_fail_code(err, STASIS_REFUSED, ESRCH, "process %d", (int)pid);
	if (leader != (uint64_t)pid)
		return stasis_fail(err, STASIS_REFUSED,
				   "pid %d is a thread of process %llu; name the process", (int)pid,
				   (unsigned long long)leader);
	return 0;
}

int stasis_process_open(pid_t pid, struct stasis_process *ret_process, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	struct stat_fields fields = {0};

	if (pid_refuse(pid, err) != 0)
		return -1;
	/* By syscall: glibc has a wrapper only from 2.36 on. */
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "process %d", (int)pid);
	if (!stat_read(pid, &fields) || fields.state == 'Z' || fields.state == 'X')
		return stasis_fail(err, STASIS_REFUSED, "process %d has ended", (int)pid);
	ret_process->pid = pid;
	ret_process->start_ticks = fields.start_ticks;
	ret_process->pidfd = fd_steal(&fd);
	return 0;
}

void stasis_process_close(struct stasis_process *process)
{
	cleanup_fd(&process->pidfd);
}

int stasis_process_take_descriptor(const struct stasis_process *process, int number, int *ret_fd,
				   struct stasis_error *err)
{
	int fault = stasis_fault_point("process_take_descriptor");
	/* By syscall: glibc has a wrapper only from 2.36 on. */
	long taken = fault == 0 ? syscall(SYS_pidfd_getfd, process->pidfd, number, 0) : -1;

	if (fault != 0)
		errno = fault;
	if (taken < 0 && errno == EMFILE)
		return stasis_fail_errno(
			err, STASIS_REFUSED,
			"process %d: take its descriptor %d: this program has none "
			"left (raise 'ulimit -n')",
			(int)process->pid, number);
	if (taken < 0 && errno != EBADF)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "process %d: take its descriptor %d (needs the right to "
					 "ptrace it; stasis doctor says what is missing)",
					 (int)process->pid, number);
	*ret_fd = (int)taken;
	return 0;
}

/*
 * One thread of a process that is killed may be gone, and with it what the kernel tells of the process, before the last
 * one is; with the main thread nearly always all end.
 */
bool stasis_process_is_alive(const struct stasis_process *process)
{
	struct stat_fields fields = {0};
	bool is_ending =
		!stat_read(process->pid, &fields) || fields.state == 'Z' || fields.state == 'X';

	return !stasis_process_ends(process, is_ending ? ENDING_MS : 0);
}

bool stasis_process_ends(const struct stasis_process *process, int timeout_ms)
{
	struct pollfd wait = {.fd = process->pidfd, .events = POLLIN};
	int result;

	/* A pidfd turns readable when its process ends (pidfd_open(2)). */
	do
		result = process->pidfd < 0 ? 1 : poll(&wait, 1, timeout_ms);
	while (result < 0 && errno == EINTR);
	return result != 0;
}
