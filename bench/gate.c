/*
 * What the interposer adds to a call: this program runs itself in turn without and with it. Over a driver that does
 * nothing (bench/null), where what is added is all there is: nanoseconds a launch, and a memory call among few and
 * many live allocations. Over a driver that works, the machine's own (libcuda.so.1) or else the simulated one, a
 * launch loop as a program has it, whose ratio is what a program notices. Medians of five runs each. Exit status 1
 * where more is added than we allow ourselves.
 *
 * usage: gate [LIBCUDA]
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "driver/abi.h"
#include "kernels.h"

#define RUNS 5
#define LAUNCHES 20000000
#define ALLOCATIONS 200000
#define CALLS 5 /* create, map, access, unmap, release */
#define LIVE_FEW 1
#define LIVE_MANY 10000
#define LAUNCH_LIMIT_NS 10.0
#define MEMORY_LIMIT_NS 2000.0
#define LOOP_ROUNDS 200
#define LOOP_LAUNCHES 500 /* fewer than a queue takes: none waits for room */
#define BYTES ((size_t)2 << 20)
/* From the folder of this program. */
#define NULL_LIBCUDA "null/libcuda.so.1"
#define SIMULATED_LIBCUDA "../sim/libcuda.so.1"
#define INTERPOSER "../src/interpose/libstasis-interpose.so"
#define ADDRESS ((CUdeviceptr)0x7e9000000000)

typedef CUresult launch_function(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
				 unsigned int, unsigned int, unsigned int, CUstream, void **,
				 void **);

static void *entry(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		(void)fprintf(stderr, "gate: the driver has no %s\n", name);
		_exit(1);
	}
	return address;
}

#define ENTRY(library, elf) ((__typeof__(elf) *)entry(library, #elf))

static void demand(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	(void)fprintf(stderr, "gate: %s: error %d\n", what, (int)result);
	_exit(1);
}

/* ---- what is measured, each in a process of its own: nanoseconds a call ---- */

static double launches_time(void *library)
{
	launch_function *launch = (launch_function *)entry(library, "cuLaunchKernel");
	uint64_t start_ns = stasis_clock_now_ns();

	for (int i = 0; i < LAUNCHES; i++)
		(void)launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return (double)(stasis_clock_now_ns() - start_ns) / LAUNCHES;
}

struct memory_calls {
	__typeof__(cuMemCreate) *create;
	__typeof__(cuMemMap) *map;
	__typeof__(cuMemSetAccess) *set;
	__typeof__(cuMemUnmap) *unmap;
	__typeof__(cuMemRelease) *release;
};

static CUmemGenericAllocationHandle memory_make(const struct memory_calls *calls,
						CUdeviceptr address)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .requestedHandleTypes =
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	const CUmemAccessDesc access = {.location = prop.location,
					.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle = 0;

	demand(calls->create(&handle, BYTES, &prop, 0), "cuMemCreate");
	demand(calls->map(address, BYTES, 0, handle, 0), "cuMemMap");
	demand(calls->set(address, BYTES, &access, 1), "cuMemSetAccess");
	return handle;
}

/* Beside the one that comes and goes, so many less one are there. */
static double memory_time(void *library, int live_count)
{
	const struct memory_calls calls = {
		.create = ENTRY(library, cuMemCreate),
		.map = ENTRY(library, cuMemMap),
		.set = ENTRY(library, cuMemSetAccess),
		.unmap = ENTRY(library, cuMemUnmap),
		.release = ENTRY(library, cuMemRelease),
	};
	uint64_t start_ns;

	for (int i = 1; i < live_count; i++)
		(void)memory_make(&calls, ADDRESS + (CUdeviceptr)i * BYTES);
	start_ns = stasis_clock_now_ns();
	for (int i = 0; i < ALLOCATIONS; i++) {
		CUmemGenericAllocationHandle handle = memory_make(&calls, ADDRESS);

		demand(calls.unmap(ADDRESS, BYTES), "cuMemUnmap");
		demand(calls.release(handle), "cuMemRelease");
	}
	return (double)(stasis_clock_now_ns() - start_ns) / ALLOCATIONS / CALLS;
}

static double memory_among_few(void *library)
{
	return memory_time(library, LIVE_FEW);
}

static double memory_among_many(void *library)
{
	return memory_time(library, LIVE_MANY);
}

/* Of launches alone; between rounds they are waited for. */
static double loop_time(void *library)
{
	launch_function *launch = (launch_function *)entry(library, "cuLaunchKernel");
	__typeof__(cuCtxSynchronize) *synchronize = ENTRY(library, cuCtxSynchronize);
	CUcontext context = NULL;
	CUmodule module = NULL;
	CUfunction kernel = NULL;
	CUdeviceptr to = 0;
	unsigned int value = 4711;
	unsigned long long count = 1;
	void *parameters[] = {&to, &value, &count};
	uint64_t spent_ns = 0;

	demand(ENTRY(library, cuInit)(0), "cuInit");
	demand(ENTRY(library, cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
	demand(ENTRY(library, cuCtxSetCurrent)(context), "cuCtxSetCurrent");
	demand(ENTRY(library, cuModuleLoadData)(&module, kernels_ptx), "cuModuleLoadData");
	demand(ENTRY(library, cuModuleGetFunction)(&kernel, module, "stasis_fill_u32"),
	       "cuModuleGetFunction");
	demand(ENTRY(library, cuMemAlloc_v2)(&to, BYTES), "cuMemAlloc");
	/* The first round is not counted. */
	for (int round = 0; round <= LOOP_ROUNDS; round++) {
		uint64_t start_ns = stasis_clock_now_ns();

		for (int i = 0; i < LOOP_LAUNCHES; i++)
			demand(launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
			       "cuLaunchKernel");
		if (round > 0)
			spent_ns += stasis_clock_now_ns() - start_ns;
		demand(synchronize(), "cuCtxSynchronize");
	}
	return (double)spent_ns / LOOP_ROUNDS / LOOP_LAUNCHES;
}

static const struct measure {
	const char *name;
	double (*time)(void *library);
} measures[] = {
	{"launch", launches_time},
	{"memory_among_few", memory_among_few},
	{"memory_among_many", memory_among_many},
	{"loop", loop_time},
};

/* Writes the figure to standard output for the program that started this one. */
static int figure_write(const char *name, const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	double figure = 0;

	if (!library) {
		(void)fprintf(stderr, "gate: '%s' cannot be loaded\n", path);
		return 1;
	}
	for (size_t i = 0; i < ARRAY_COUNT(measures); i++) {
		if (strcmp(measures[i].name, name) == 0)
			figure = measures[i].time(library);
	}
	return write(STDOUT_FILENO, &figure, sizeof(figure)) == sizeof(figure) ? 0 : 1;
}

/* ---- the program that compares ---- */

/* `prefix` and the path of a file that is named from this program's folder. Freed by nobody. */
static char *beside(const char *prefix, const char *name)
{
	char self[4096];
	ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *path = NULL;
	char *end;

	self[bytes > 0 ? bytes : 0] = '\0';
	end = strrchr(self, '/');
	if (!end || asprintf(&path, "%s%.*s/%s", prefix, (int)(end - self), self, name) < 0)
		_exit(1);
	return path;
}

/* Ours, with the interposer preloaded or nothing. */
static char **environment_of(bool is_interposed)
{
	size_t count = 0;
	size_t kept = 0;
	char **variables;

	while (environ[count])
		count++;
	variables = calloc(count + 2, sizeof(*variables));
	if (!variables)
		_exit(1);
	for (size_t i = 0; i < count; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
			variables[kept++] = environ[i];
	}
	if (is_interposed)
		variables[kept] = beside("LD_PRELOAD=", INTERPOSER);
	return variables;
}

/* Runs this program again as the one that measures. */
static bool figure_of(const char *name, const char *path, bool is_interposed, double *ret_figure)
{
	int ends[2];
	ssize_t bytes;
	pid_t child;
	int status;

	if (pipe(ends) != 0)
		return false;
	child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execle("/proc/self/exe", "gate", "measure", name, path, NULL,
			     environment_of(is_interposed));
		_exit(1);
	}
	(void)close(ends[1]);
	bytes = read(ends[0], ret_figure, sizeof(*ret_figure));
	(void)close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 &&
	       bytes == sizeof(*ret_figure);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

struct figures {
	double median;
	double least;
	double most;
};

struct pair {
	struct figures without;
	struct figures with;
};

static struct figures figures_of(double *figures)
{
	qsort(figures, RUNS, sizeof(figures[0]), compare);
	return (struct figures){
		.median = figures[RUNS / 2], .least = figures[0], .most = figures[RUNS - 1]};
}

static struct pair pair_of(const char *name, const char *path)
{
	double figures[2][RUNS];

	/* In turn, so that what else the machine does meets both. */
	for (int run = 0; run < RUNS; run++) {
		for (int with = 0; with < 2; with++) {
			if (!figure_of(name, path, with == 1, &figures[with][run]))
				_exit(1);
		}
	}
	return (struct pair){.without = figures_of(figures[0]), .with = figures_of(figures[1])};
}

/* Whether no more was added than that. */
static bool added_print(const char *what, const char *name, double limit_ns)
{
	struct pair pair = pair_of(name, beside("", NULL_LIBCUDA));
	double added = pair.with.median - pair.without.median;

	(void)printf("%s: without %.2f ns with %.2f ns added %.2f ns a call, limit %.0f ns: %s\n",
		     what, pair.without.median, pair.with.median, added, limit_ns,
		     added <= limit_ns ? "kept" : "exceeded");
	(void)fflush(stdout);
	return added <= limit_ns;
}

static void loop_print(const char *path)
{
	struct pair pair = pair_of("loop", path);

	(void)printf(
		"launch loop: without %.0f ns (%.0f to %.0f) with %.0f ns (%.0f to %.0f) a launch, "
		"ratio %.4f, over %s\n",
		pair.without.median, pair.without.least, pair.without.most, pair.with.median,
		pair.with.least, pair.with.most, pair.with.median / pair.without.median, path);
}

int main(int argument_count, char **arguments)
{
	bool is_kept;

	if (argument_count == 4 && strcmp(arguments[1], "measure") == 0)
		return figure_write(arguments[2], arguments[3]);
	if (argument_count > 2) {
		(void)fprintf(stderr, "usage: gate [LIBCUDA]\n");
		return 2;
	}
	is_kept = added_print("launch", "launch", LAUNCH_LIMIT_NS);
	is_kept = added_print("memory, 1 live, mean of create, map, access, unmap, release",
			      "memory_among_few", MEMORY_LIMIT_NS) &&
		  is_kept;
	is_kept = added_print("memory, 10000 live, mean of the same", "memory_among_many",
			      MEMORY_LIMIT_NS) &&
		  is_kept;
	loop_print(argument_count == 2 ? arguments[1] : beside("", SIMULATED_LIBCUDA));
	return is_kept ? 0 : 1;
}
