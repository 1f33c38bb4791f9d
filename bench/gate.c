/*
 * What the interposer adds to a call: this program runs itself in turn without and with it, over a driver that does
 * nothing (bench/null). Prints nanoseconds a call, medians of five runs each, and what was added.
 *
 * usage: gate
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

#define RUNS 5
#define LAUNCHES 20000000
#define ALLOCATIONS 1000000
#define BYTES ((size_t)2 << 20)
#define ADDRESS ((CUdeviceptr)0x7e9000000000)

typedef CUresult launch_function(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
				 unsigned int, unsigned int, unsigned int, CUstream, void **,
				 void **);

struct figures {
	double launch_ns;
	double memory_ns; /* of one of create, map, access, unmap, release */
};

static void *entry(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		(void)fprintf(stderr, "gate: the driver has no %s\n", name);
		_exit(1);
	}
	return address;
}

static double launches_time(void *library)
{
	launch_function *launch = (launch_function *)entry(library, "cuLaunchKernel");
	uint64_t start_ns = stasis_clock_now_ns();

	for (int i = 0; i < LAUNCHES; i++)
		(void)launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return (double)(stasis_clock_now_ns() - start_ns) / LAUNCHES;
}

static double memory_time(void *library)
{
	__typeof__(cuMemCreate) *create = (__typeof__(cuMemCreate) *)entry(library, "cuMemCreate");
	__typeof__(cuMemMap) *map = (__typeof__(cuMemMap) *)entry(library, "cuMemMap");
	__typeof__(cuMemSetAccess) *set =
		(__typeof__(cuMemSetAccess) *)entry(library, "cuMemSetAccess");
	__typeof__(cuMemUnmap) *unmap = (__typeof__(cuMemUnmap) *)entry(library, "cuMemUnmap");
	__typeof__(cuMemRelease) *release =
		(__typeof__(cuMemRelease) *)entry(library, "cuMemRelease");
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = prop.location,
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	uint64_t start_ns = stasis_clock_now_ns();

	for (int i = 0; i < ALLOCATIONS; i++) {
		CUmemGenericAllocationHandle handle = 0;

		(void)create(&handle, BYTES, &prop, 0);
		(void)map(ADDRESS, BYTES, 0, handle, 0);
		(void)set(ADDRESS, BYTES, &access, 1);
		(void)unmap(ADDRESS, BYTES);
		(void)release(handle);
	}
	return (double)(stasis_clock_now_ns() - start_ns) / ALLOCATIONS / 5;
}

/* Measures, and writes the figures to standard output for the program that started this one. */
static int figures_write(void)
{
	void *library = dlopen(STASIS_NULL_LIBCUDA, RTLD_NOW);
	struct figures figures;

	if (!library) {
		(void)fprintf(stderr, "gate: '%s' cannot be loaded\n", STASIS_NULL_LIBCUDA);
		return 1;
	}
	figures.launch_ns = launches_time(library);
	figures.memory_ns = memory_time(library);
	return write(STDOUT_FILENO, &figures, sizeof(figures)) == sizeof(figures) ? 0 : 1;
}

/* Runs this program again as the one that measures. */
static bool figures_of(bool is_interposed, struct figures *ret_figures)
{
	static char preload[] = "LD_PRELOAD=" STASIS_INTERPOSER;
	char *environment[] = {is_interposed ? preload : NULL, NULL};
	int ends[2];
	ssize_t bytes;
	pid_t child;
	int status;

	if (pipe(ends) != 0)
		return false;
	child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execle("/proc/self/exe", "gate", "measure", NULL, environment);
		_exit(1);
	}
	(void)close(ends[1]);
	bytes = read(ends[0], ret_figures, sizeof(*ret_figures));
	(void)close(ends[0]);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 &&
	       bytes == sizeof(*ret_figures);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double values[RUNS])
{
	qsort(values, RUNS, sizeof(values[0]), compare);
	return values[RUNS / 2];
}

int main(int argument_count, char **arguments)
{
	double launch[2][RUNS];
	double memory[2][RUNS];

	if (argument_count == 2 && strcmp(arguments[1], "measure") == 0)
		return figures_write();
	for (int run = 0; run < RUNS; run++) {
		for (int with = 0; with < 2; with++) {
			struct figures figures;

			if (!figures_of(with == 1, &figures))
				return 1;
			launch[with][run] = figures.launch_ns;
			memory[with][run] = figures.memory_ns;
		}
	}
	(void)printf("launch without %.2f ns with %.2f ns added %.2f ns a call\n",
		     median(launch[0]), median(launch[1]), median(launch[1]) - median(launch[0]));
	(void)printf(
		"memory without %.1f ns with %.1f ns added %.1f ns a call, the mean of create, "
		"map, access, unmap, release\n",
		median(memory[0]), median(memory[1]), median(memory[1]) - median(memory[0]));
	return 0;
}
