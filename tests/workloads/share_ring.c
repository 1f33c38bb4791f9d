/*
 * Processes in a ring, each of which has mapped memory of its left neighbour, and none of which ever
 * pauses: a plain program of the CUDA driver API.
 *
 *     share_ring --processes N [--devices D] [--bytes 8M] [--seconds S] [--rounds R]
 *                [--multicast] [--status FILE] [--ready FILE]
 *
 * Process i uses device i % D. It ends by SIGTERM to the parent, after so many seconds from readiness, or after
 * so many rounds: "share_ring=passed processes=N rounds=R" and exit status 0. What is wrong is named in one line; all
 * end, exit status 1. --multicast: all form a team besides (share_ring_team.c). --status: a line "PID ROUNDS" a
 * process, made anew five times a second. --ready: the pids, one a line, once each process has been through a round.
 * This file is the parent, which uses no CUDA; see share_ring.h for the memory, share_ring_member.c for a process.
 */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "child.h"
#include "device.h"
#include "share_ring.h"

#define STATUS_MS 200
#define NS_PER_MS 1000000
#define EXIT_USAGE 2

struct child {
	pid_t pid;
	int fd;
	uint64_t rounds;
	bool has_ended;
};

static struct {
	struct ring_options ring;
	bool is_member;
	int64_t seconds; /* 0: without end */
	const char *status_path;
	const char *ready_path;
	char program[4096];
	struct child children[RING_MEMBERS_MAX];
	int64_t ends_at_ms; /* 0: not yet known */
	bool is_ready;
	bool is_ending;
} ring;

NORETURN static void usage(const char *why)
{
	(void)fprintf(stderr,
		      "share_ring: %s\n"
		      "usage: share_ring --processes N [--devices D] [--bytes 8M] [--seconds S] "
		      "[--rounds R] [--multicast] [--status FILE] [--ready FILE]\n",
		      why);
	exit(EXIT_USAGE); /* NOLINT(concurrency-mt-unsafe): there is no second thread */
}

/* A number from `least` to `most`, with one of the letters K, M, G where `letters` allows it. */
static uint64_t number_of(const char *text, uint64_t least, uint64_t most, bool letters)
{
	static const char units[] = "KMG";
	char *end = NULL;
	const char *unit;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	unit = letters && *end ? strchr(units, *end) : NULL;
	if (unit && value <= most) {
		value <<= 10 * (unit - units + 1);
		end++;
	}
	if (errno || end == text || *end || *text == '-' || value < least || value > most)
		usage(text);
	return value;
}

enum option_number {
	PROCESSES,
	DEVICES,
	BYTES,
	SECONDS,
	ROUNDS,
	MULTICAST,
	STATUS,
	READY,
	MEMBER,
	LEFT,
	RIGHT,
	PARENT
};

static const struct option long_options[] = {
	{"processes", required_argument, NULL, PROCESSES},
	{"devices", required_argument, NULL, DEVICES},
	{"bytes", required_argument, NULL, BYTES},
	{"seconds", required_argument, NULL, SECONDS},
	{"rounds", required_argument, NULL, ROUNDS},
	{"multicast", no_argument, NULL, MULTICAST},
	{"status", required_argument, NULL, STATUS},
	{"ready", required_argument, NULL, READY},
	/* from the parent to its children */
	{"member", required_argument, NULL, MEMBER},
	{"left", required_argument, NULL, LEFT},
	{"right", required_argument, NULL, RIGHT},
	{"parent", required_argument, NULL, PARENT},
	{0},
};

static void option_take(int option, char *text)
{
	if (option == PROCESSES)
		ring.ring.processes = (unsigned)number_of(text, 1, RING_MEMBERS_MAX, false);
	else if (option == DEVICES)
		ring.ring.devices = (unsigned)number_of(text, 1, RING_MEMBERS_MAX, false);
	else if (option == BYTES)
		ring.ring.bytes = number_of(text, 1, (uint64_t)1 << 40, true);
	else if (option == SECONDS)
		ring.seconds = (int64_t)number_of(text, 1, 1000000, false);
	else if (option == ROUNDS)
		ring.ring.last_round = number_of(text, 1, UINT32_MAX, false);
	else if (option == MULTICAST)
		ring.ring.has_multicast = true;
	else if (option == STATUS)
		ring.status_path = text;
	else if (option == READY)
		ring.ready_path = text;
	else if (option == LEFT)
		ring.ring.left_fd = (int)number_of(text, 0, INT32_MAX, false);
	else if (option == RIGHT)
		ring.ring.right_fd = (int)number_of(text, 0, INT32_MAX, false);
	else if (option == PARENT)
		ring.ring.parent_fd = (int)number_of(text, 0, INT32_MAX, false);
	else if (option == MEMBER)
		ring.ring.index = (unsigned)number_of(text, 0, RING_MEMBERS_MAX - 1, false);
	else
		usage("unknown option");
	ring.is_member |= option == MEMBER;
}

static void options_read(int argc, char **argv)
{
	int option;

	ring.ring.devices = 1;
	ring.ring.bytes = 4 * RING_BLOCK_BYTES;
	ring.ring.last_round = ROUNDS_WITHOUT_END;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		option_take(option, optarg);
	if (optind < argc)
		usage(argv[optind]);
	if (ring.ring.processes == 0)
		usage("--processes is missing");
	ring.ring.bytes = (ring.ring.bytes + RING_BLOCK_BYTES - 1) & ~(RING_BLOCK_BYTES - 1);
}

static int64_t now_ms(void)
{
	struct timespec now;

	T_SYS(clock_gettime(CLOCK_MONOTONIC, &now));
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
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
		t_fail("share_ring: cannot write '%s': errno %d", partial, errno);
	for (unsigned i = 0; i < ring.ring.processes; i++) {
		(void)fprintf(file, "%d", (int)ring.children[i].pid);
		if (with_rounds)
			(void)fprintf(file, " %llu", (unsigned long long)ring.children[i].rounds);
		(void)fprintf(file, "\n");
	}
	T_EQ(fclose(file), 0);
	T_SYS(rename(partial, path));
}

/* The program again, as this member of the ring. */
NORETURN static void child_exec(const struct ring_options *member)
{
	const struct {
		const char *name;
		uint64_t value;
	} options[] = {
		{"member", member->index},
		{"processes", member->processes},
		{"devices", member->devices},
		{"bytes", member->bytes},
		{"left", (uint64_t)member->left_fd},
		{"right", (uint64_t)member->right_fd},
		{"parent", (uint64_t)member->parent_fd},
		{"rounds", member->last_round},
	};
	static char multicast[] = "--multicast";
	size_t count = sizeof(options) / sizeof(options[0]);
	char texts[sizeof(options) / sizeof(options[0])][48];
	char *argv[sizeof(options) / sizeof(options[0]) + 3] = {ring.program};

	/* the rounds are the last, so that they can be left out */
	if (member->last_round == ROUNDS_WITHOUT_END)
		count--;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "--%s=%llu", options[i].name,
			       (unsigned long long)options[i].value);
		argv[i + 1] = texts[i];
	}
	if (member->has_multicast)
		argv[count + 1] = multicast;
	T_SYS(execv(ring.program, argv));
	_exit(1);
}

NORETURN static void child_become(pid_t parent, const struct ring_options *member)
{
	sigset_t none;

	T_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
	if (getppid() != parent)
		_exit(1);
	T_SYS(fcntl(member->left_fd, F_SETFD, 0));
	T_SYS(fcntl(member->right_fd, F_SETFD, 0));
	T_SYS(fcntl(member->parent_fd, F_SETFD, 0));
	/* what is sent to all of us is for the parent, which ends the ring in good order */
	T_TRUE(signal(SIGINT, SIG_IGN) != SIG_ERR);
	T_TRUE(signal(SIGTERM, SIG_IGN) != SIG_ERR);
	T_SYS(sigemptyset(&none));
	T_SYS(sigprocmask(SIG_SETMASK, &none, NULL));
	child_exec(member);
}

/* Pair i leads from process i to its right neighbour. */
static void children_start(void)
{
	unsigned count = ring.ring.processes;
	int pairs[RING_MEMBERS_MAX][2];
	pid_t parent = getpid();

	for (unsigned i = 0; i < count; i++)
		T_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]));
	for (unsigned i = 0; i < count; i++) {
		struct ring_options member = ring.ring;
		int ends[2];

		T_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
		member.index = i;
		member.right_fd = pairs[i][0];
		member.left_fd = pairs[(i + count - 1) % count][1];
		member.parent_fd = ends[1];
		ring.children[i].fd = ends[0];
		ring.children[i].pid = (pid_t)T_SYS(fork());
		if (ring.children[i].pid == 0)
			child_become(parent, &member);
		T_SYS(close(ends[1]));
	}
	for (unsigned i = 0; i < count; i++) {
		T_SYS(close(pairs[i][0]));
		T_SYS(close(pairs[i][1]));
	}
}

/* One has failed and said why: the others could only wait for it. */
NORETURN static void children_end(const struct child *failed, int status)
{
	int exit_status = 1;

	for (unsigned i = 0; i < ring.ring.processes; i++)
		if (!ring.children[i].has_ended)
			(void)kill(ring.children[i].pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == T_EXIT_SKIPPED)
		exit_status = T_EXIT_SKIPPED;
	else if (WIFSIGNALED(status))
		(void)printf("share_ring=failed process=%d signal=%d\n", (int)failed->pid,
			     WTERMSIG(status));
	else
		(void)printf("share_ring=failed process=%d status=%d\n", (int)failed->pid,
			     WEXITSTATUS(status));
	(void)fflush(stdout);
	_exit(exit_status);
}

static void child_ended(pid_t pid, int status)
{
	for (unsigned i = 0; i < ring.ring.processes; i++) {
		if (ring.children[i].pid != pid)
			continue;
		ring.children[i].has_ended = true;
		if (status != 0)
			children_end(&ring.children[i], status);
	}
}

static bool children_reap(void)
{
	bool are_gone = true;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		child_ended(pid, status);
	for (unsigned i = 0; i < ring.ring.processes; i++)
		are_gone &= ring.children[i].has_ended;
	return are_gone;
}

static void ring_end(void)
{
	if (!ring.is_ending)
		(void)send(ring.children[0].fd, "q", 1, MSG_NOSIGNAL);
	ring.is_ending = true;
}

static void signals_take(int signal_fd)
{
	struct signalfd_siginfo information;

	while (read(signal_fd, &information, sizeof(information)) == (ssize_t)sizeof(information))
		if (information.ssi_signo != SIGCHLD)
			ring_end();
}

static void rounds_take(struct child *child)
{
	uint64_t round;

	while (recv(child->fd, &round, sizeof(round), MSG_DONTWAIT) == (ssize_t)sizeof(round))
		child->rounds = round;
}

static uint64_t rounds_least(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < ring.ring.processes; i++)
		if (ring.children[i].rounds < least)
			least = ring.children[i].rounds;
	return least;
}

static void become_ready(void)
{
	if (ring.is_ready || rounds_least() == 0)
		return;
	ring.is_ready = true;
	file_write(ring.ready_path, false);
	if (ring.seconds > 0)
		ring.ends_at_ms = now_ms() + ring.seconds * 1000;
}

static int signals_open(void)
{
	sigset_t set;

	T_SYS(sigemptyset(&set));
	T_SYS(sigaddset(&set, SIGCHLD));
	T_SYS(sigaddset(&set, SIGTERM));
	T_SYS(sigaddset(&set, SIGINT));
	T_SYS(sigprocmask(SIG_BLOCK, &set, NULL));
	return (int)T_SYS(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/* Until all children have ended. The rounds are read when the status is due, a few hundred messages at most. */
static void ring_watch(int signal_fd)
{
	struct pollfd wait = {.fd = signal_fd, .events = POLLIN};
	bool are_gone;

	do {
		(void)poll(&wait, 1, ring.is_ready ? STATUS_MS : STATUS_MS / 10);
		are_gone = children_reap();
		signals_take(signal_fd);
		for (unsigned i = 0; i < ring.ring.processes; i++)
			rounds_take(&ring.children[i]);
		become_ready();
		file_write(ring.status_path, true);
		if (ring.ends_at_ms != 0 && now_ms() >= ring.ends_at_ms)
			ring_end();
	} while (!are_gone);
}

static void program_find(void)
{
	ssize_t length = readlink("/proc/self/exe", ring.program, sizeof(ring.program) - 1);

	T_SYS(length);
	ring.program[length] = '\0';
}

int main(int argc, char **argv)
{
	int signal_fd;

	options_read(argc, argv);
	if (ring.is_member) {
		ring_member_run(&ring.ring);
		return 0;
	}
	program_find();
	if (ring.ring.has_multicast)
		t_allow_multicast();
	if (ring.ring.devices > 1)
		t_ask_devices((int)ring.ring.devices);
	signal_fd = signals_open();
	children_start();
	ring_watch(signal_fd);
	(void)printf("share_ring=passed processes=%u rounds=%llu\n", ring.ring.processes,
		     (unsigned long long)rounds_least());
	return 0;
}
