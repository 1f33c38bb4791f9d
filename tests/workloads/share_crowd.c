/*
 * Processes that share memory and need nothing of each other: each has made a block, mapped that of its left
 * neighbour, and looks at every byte of both for ever. Where one ends, the others go on.
 *
 *     share_crowd --processes N [--status FILE] [--ready FILE]
 *
 * --status: a line "PID ROUNDS" a living process, made anew five times a second; --ready: the pids, one a line, once
 * each has been through a round. SIGTERM to the parent, which uses no CUDA, ends it in good order:
 * "share_crowd=passed processes=LIVING of=N" and exit status 0 where nobody has found a wrong byte.
 */

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"

#define MEMBERS_MAX 16
#define BYTES (2 * T_BLOCK_BYTES)
#define STATUS_MS 200

/* Beside each process's own memory there is only this, which the parent reads. */
struct board {
	atomic_bool is_ending;
	atomic_ullong rounds[MEMBERS_MAX];
};

static struct {
	int count;
	const char *status_path;
	const char *ready_path;
	struct board *board;
	struct t_child members[MEMBERS_MAX];
	bool has_ended[MEMBERS_MAX];
	bool is_wrong;
} crowd;

static volatile sig_atomic_t is_told_to_end;

static void end_hear(int signal_number)
{
	(void)signal_number;
	is_told_to_end = 1;
}

static void member_run(int fd, void *argument)
{
	int index = (int)(intptr_t)argument;
	int left = (index + crowd.count - 1) % crowd.count;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	struct t_vmm own;
	int descriptor;

	T_TRUE(signal(SIGTERM, SIG_IGN) != SIG_ERR);
	(void)t_cuda();
	own = t_vmm(BYTES, T_FD_TYPE);
	t_fill(own.address, BYTES, (uint32_t)index + 1);
	descriptor = t_export(own.handle);
	t_send_fd(fd, descriptor);
	T_SYS(close(descriptor));
	descriptor = t_receive_fd(fd);
	handle = t_import(descriptor);
	T_SYS(close(descriptor));
	address = t_map(handle, BYTES);
	while (!atomic_load(&crowd.board->is_ending)) {
		t_verify(own.address, BYTES, (uint32_t)index + 1);
		t_verify(address, BYTES, (uint32_t)left + 1);
		atomic_fetch_add(&crowd.board->rounds[index], 1);
	}
}

static void members_start(void)
{
	int descriptors[MEMBERS_MAX] = {0};

	for (int i = 0; i < crowd.count; i++)
		crowd.members[i] = t_child_start(member_run, (void *)(intptr_t)i);
	for (int i = 0; i < crowd.count; i++)
		descriptors[i] = t_receive_fd(crowd.members[i].fd);
	for (int i = 0; i < crowd.count; i++) {
		t_send_fd(crowd.members[(i + 1) % crowd.count].fd, descriptors[i]);
		T_SYS(close(descriptors[i]));
	}
}

/* A whole file at once: who reads it sees the old one or the new one. */
static void file_write(const char *path, bool with_rounds)
{
	char partial[4096];
	FILE *file;

	if (!path)
		return;
	T_TRUE((size_t)snprintf(partial, sizeof(partial), "%s.new", path) < sizeof(partial));
	file = fopen(partial, "we");
	if (!file)
		t_fail("share_crowd: cannot write '%s': errno %d", partial, errno);
	for (int i = 0; i < crowd.count; i++) {
		if (crowd.has_ended[i])
			continue;
		(void)fprintf(file, "%d", (int)crowd.members[i].pid);
		if (with_rounds)
			(void)fprintf(file, " %llu", atomic_load(&crowd.board->rounds[i]));
		(void)fprintf(file, "\n");
	}
	T_EQ(fclose(file), 0);
	T_SYS(rename(partial, path));
}

/* One that was killed from outside is no failure; one that ended by itself has found something. */
static int members_reap(void)
{
	int living = 0;

	for (int i = 0; i < crowd.count; i++) {
		int status = 0;

		if (!crowd.has_ended[i] && waitpid(crowd.members[i].pid, &status, WNOHANG) > 0) {
			crowd.has_ended[i] = true;
			crowd.is_wrong |= WIFEXITED(status) && WEXITSTATUS(status) != 0;
		}
		living += !crowd.has_ended[i];
	}
	return living;
}

static bool is_ready(void)
{
	for (int i = 0; i < crowd.count; i++) {
		if (atomic_load(&crowd.board->rounds[i]) == 0)
			return false;
	}
	return true;
}

static int crowd_watch(void)
{
	bool was_ready = false;
	int last = crowd.count;
	int living;

	while ((living = members_reap()) > 0) {
		(void)poll(NULL, 0, STATUS_MS);
		if (!was_ready && is_ready()) {
			was_ready = true;
			file_write(crowd.ready_path, false);
		}
		file_write(crowd.status_path, true);
		if (!is_told_to_end) {
			last = living;
			continue;
		}
		atomic_store(&crowd.board->is_ending, true);
	}
	return last;
}

static void options_read(int argc, char **argv)
{
	static const struct option options[] = {
		{"processes", required_argument, NULL, 'p'},
		{"status", required_argument, NULL, 's'},
		{"ready", required_argument, NULL, 'r'},
		{0},
	};
	int option;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread */
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'p')
			crowd.count = (int)strtol(optarg, NULL, 10);
		else if (option == 's')
			crowd.status_path = optarg;
		else if (option == 'r')
			crowd.ready_path = optarg;
	}
	if (crowd.count < 1 || crowd.count > MEMBERS_MAX)
		t_fail("share_crowd: --processes from 1 to %d", MEMBERS_MAX);
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = end_hear};
	int living;

	options_read(argc, argv);
	crowd.board = mmap(NULL, sizeof(*crowd.board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	T_TRUE(crowd.board != MAP_FAILED);
	T_SYS(sigaction(SIGTERM, &action, NULL));
	members_start();
	living = crowd_watch();
	(void)printf("share_crowd=%s processes=%d of=%d\n", crowd.is_wrong ? "failed" : "passed",
		     living, crowd.count);
	return crowd.is_wrong ? 1 : 0;
}
