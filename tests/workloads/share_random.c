/*
 * Processes that do random things with memory that they share, and never pause: a plain program of the CUDA driver API.
 * They allocate memory, exportable or not, on devices and in host memory, export and import it over sockets, import and
 * export it again, map it at several addresses, change rights, unmap, retain and release in any order, form multicast
 * teams and end them, fill, copy, add and compare; and they check every byte, handle, address, right and property
 * against a model of their own. In the end all must be free again.
 *
 *     share_random --processes N [--devices D] [--seed S] [--seconds S] [--multicast] [--status FILE] [--ready FILE]
 *
 * Process i uses device i % D, by two threads. What each thread draws follows from the seed; what the others do
 * meanwhile does not. It ends by SIGTERM to the parent, or after so many seconds: "share_random=passed processes=N
 * rounds=R" and exit status 0. What is wrong is named in one line; all end, exit status 1. --status: a line "PID ROUNDS"
 * a process, made anew five times a second. --ready: the pids, one a line, once each thread has gone round.
 * This file is the parent, which uses no CUDA, and the beginning of a process.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "device.h"
#include "share_random.h"

#define STATUS_MS 200
#define EXIT_USAGE 2

static struct {
	struct options options;
	struct model *model;
	const char *status_path;
	const char *ready_path;
	long seconds; /* 0: without end */
	pid_t pids[PROCESSES_MAX];
	bool is_ready;
} run;

/* ---- options ---- */

static const struct option long_options[] = {
	{"processes", required_argument, NULL, 'p'}, {"devices", required_argument, NULL, 'd'},
	{"seed", required_argument, NULL, 's'},      {"seconds", required_argument, NULL, 't'},
	{"multicast", no_argument, NULL, 'm'},       {"status", required_argument, NULL, 'f'},
	{"ready", required_argument, NULL, 'r'},     {0},
};

NORETURN static void usage(const char *why)
{
	(void)fprintf(stderr,
		      "share_random: %s\n"
		      "usage: share_random --processes N [--devices D] [--seed S] [--seconds S] "
		      "[--multicast] [--status FILE] [--ready FILE]\n",
		      why);
	exit(EXIT_USAGE); /* NOLINT(concurrency-mt-unsafe): there is no second thread */
}

static unsigned long number_of(const char *text, unsigned long least, unsigned long most)
{
	unsigned long value;
	char *end = NULL;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < least || value > most)
		usage(text);
	return value;
}

static void option_take(int option, const char *text)
{
	switch (option) {
	case 'p':
		run.options.processes = (unsigned)number_of(text, 1, PROCESSES_MAX);
		break;
	case 'd':
		run.options.devices = (unsigned)number_of(text, 1, DEVICES_MAX);
		break;
	case 's':
		run.options.seed = number_of(text, 0, UINT32_MAX);
		break;
	case 't':
		run.seconds = (long)number_of(text, 1, 1000000);
		break;
	case 'm':
		run.options.has_multicast = true;
		break;
	case 'f':
		run.status_path = text;
		break;
	case 'r':
		run.ready_path = text;
		break;
	default:
		usage("unknown option");
	}
}

static void options_read(int argc, char **argv)
{
	int option;

	run.options.devices = 1;
	run.options.seed = 1;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		option_take(option, optarg);
	if (optind < argc)
		usage(argv[optind]);
	if (run.options.processes == 0)
		usage("--processes is missing");
	if (run.options.devices > run.options.processes)
		run.options.devices = run.options.processes;
}

/* ---- a process ---- */

static struct actor actors[THREADS];

static void *actor_main(void *argument)
{
	actor_run(argument);
	return NULL;
}

/* Whether an interposer is there that lets an import be exported again; no driver does by itself. */
static bool has_reexports(void)
{
	struct t_vmm own = t_vmm(BLOCK_BYTES, T_FD_TYPE);
	int fd = t_export(own.handle);
	CUmemGenericAllocationHandle import = t_import(fd);
	int again = -1;
	CUresult result = cuMemExportToShareableHandle(&again, import, T_FD_TYPE, 0);

	if (result == CUDA_SUCCESS)
		T_SYS(close(again));
	T_SYS(close(fd));
	T_OK(cuMemRelease(import));
	t_vmm_release(&own);
	T_OK(cuMemAddressFree(own.address, own.bytes));
	return result == CUDA_SUCCESS;
}

static CUcontext cuda_begin(unsigned process, CUdevice *ret_device)
{
	CUcontext context = NULL;
	int version = 0;

	t_init_only();
	t_need_devices((int)run.options.devices);
	T_OK(cuDeviceGet(ret_device, (int)(process % run.options.devices)));
	T_OK(cuDevicePrimaryCtxRetain(&context, *ret_device));
	T_OK(cuCtxSetCurrent(context));
	if (run.options.has_multicast)
		t_need_multicast(*ret_device);
	T_OK(cuDriverGetVersion(&version));
	/* a driver of before CUDA 13.1 would give its older entry for that version */
	run.options.has_newer_binds = version >= 13010;
	run.options.reexports = has_reexports();
	return context;
}

static void process_run(unsigned process)
{
	pthread_t threads[THREADS];
	CUdevice device = 0;
	CUcontext context = cuda_begin(process, &device);

	for (unsigned i = 0; i < THREADS; i++) {
		unsigned index = process * THREADS + i;

		actors[i] = (struct actor){
			.options = &run.options,
			.model = run.model,
			.index = index,
			.process = process,
			.chance = run.options.seed * 1000003U + index,
			.device = device,
			.context = context,
		};
		T_EQ(pthread_create(&threads[i], NULL, actor_main, &actors[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		T_EQ(pthread_join(threads[i], NULL), 0);
	T_OK(cuDevicePrimaryCtxRelease_v2(device));
}

/* ---- the parent ---- */

static int signals_open(void)
{
	sigset_t set;

	T_SYS(sigemptyset(&set));
	T_SYS(sigaddset(&set, SIGTERM));
	T_SYS(sigaddset(&set, SIGINT));
	T_SYS(sigprocmask(SIG_BLOCK, &set, NULL));
	return (int)T_SYS(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static void processes_start(void)
{
	pid_t parent = getpid();

	for (unsigned i = 0; i < run.options.processes; i++) {
		run.pids[i] = (pid_t)T_SYS(fork());
		if (run.pids[i] != 0)
			continue;
		T_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
		if (getppid() != parent)
			_exit(1);
		process_run(i);
		exit(0); /* NOLINT(concurrency-mt-unsafe): there is no second thread any more */
	}
}

static uint64_t rounds_of(unsigned process)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = process * THREADS; i < (process + 1) * THREADS; i++)
		if (run.model->rounds[i] < least)
			least = run.model->rounds[i];
	return least;
}

static uint64_t rounds_least(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < run.options.processes; i++)
		if (rounds_of(i) < least)
			least = rounds_of(i);
	return least;
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
		t_fail("share_random: cannot write '%s': errno %d", partial, errno);
	for (unsigned i = 0; i < run.options.processes; i++) {
		(void)fprintf(file, "%d", (int)run.pids[i]);
		if (with_rounds)
			(void)fprintf(file, " %llu", (unsigned long long)rounds_of(i));
		(void)fprintf(file, "\n");
	}
	T_EQ(fclose(file), 0);
	T_SYS(rename(partial, path));
}

/* One has failed and said why: the others could only wait for it. */
NORETURN static void processes_end(pid_t failed, int status)
{
	for (unsigned i = 0; i < run.options.processes; i++)
		(void)kill(run.pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == T_EXIT_SKIPPED)
		_exit(T_EXIT_SKIPPED);
	if (WIFSIGNALED(status))
		(void)printf("share_random=failed process=%d signal=%d\n", (int)failed,
			     WTERMSIG(status));
	else
		(void)printf("share_random=failed process=%d status=%d\n", (int)failed,
			     WEXITSTATUS(status));
	(void)fflush(stdout);
	_exit(1);
}

/* How many have ended well by now. */
static unsigned processes_reap(void)
{
	static unsigned ended;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (status != 0)
			processes_end(pid, status);
		ended++;
	}
	return ended;
}

static void processes_watch(int signal_fd)
{
	struct timespec step = {.tv_nsec = STATUS_MS * 1000000L};
	struct signalfd_siginfo information;
	long steps = 0;

	while (processes_reap() < run.options.processes) {
		(void)nanosleep(&step, NULL);
		if (read(signal_fd, &information, sizeof(information)) > 0)
			run.model->is_ending = true;
		if (run.seconds > 0 && run.is_ready && ++steps * STATUS_MS >= run.seconds * 1000)
			run.model->is_ending = true;
		file_write(run.status_path, true);
		if (!run.is_ready && rounds_least() > 0) {
			run.is_ready = true;
			file_write(run.ready_path, false);
		}
	}
}

int main(int argc, char **argv)
{
	int signal_fd;

	options_read(argc, argv);
	if (run.options.has_multicast)
		t_allow_multicast();
	t_ask_devices((int)run.options.devices);
	run.model = mmap(NULL, sizeof(*run.model), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	T_TRUE(run.model != MAP_FAILED);
	model_make(run.model, run.options.processes * THREADS);
	(void)printf("share_random seed=%llu\n", (unsigned long long)run.options.seed);
	(void)fflush(stdout);
	signal_fd = signals_open();
	processes_start();
	processes_watch(signal_fd);
	(void)printf("share_random=passed processes=%u rounds=%llu\n", run.options.processes,
		     (unsigned long long)rounds_least());
	return 0;
}
