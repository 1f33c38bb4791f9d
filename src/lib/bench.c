/*
 * The benchmark of the transfer engine as a whole; see bench.h.
 */

#include "lib/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "lib/places.h"

#define RUNS_QUICK 3

static int options_take(const struct stasis_bench_options *options,
			struct stasis_bench_options *ours, struct stasis_error *err)
{
	*ours = (struct stasis_bench_options)STASIS_BENCH_OPTIONS_INIT;
	if (stasis_lib_options_copy("bench", options, ours, sizeof(*ours), err) != 0)
		return -1;
	if (ours->transfer_bytes == 0 || ours->runs == 0 || ours->runs > STASIS_LIB_BENCH_RUNS_MAX)
		return stasis_fail(err, STASIS_USAGE,
				   "bench: bytes must not be 0, and runs be between 1 and %d",
				   STASIS_LIB_BENCH_RUNS_MAX);
	if (!ours->tmpfs_dir || !*ours->tmpfs_dir || (ours->disk_dir && !*ours->disk_dir))
		return stasis_fail(err, STASIS_USAGE, "bench: a directory is missing");
	if (ours->disk_bytes == 0)
		ours->disk_bytes = ours->transfer_bytes / 4 ? ours->transfer_bytes / 4 : 1;
	if (ours->is_quick)
		ours->runs = (uint32_t)stasis_min_u64(ours->runs, RUNS_QUICK);
	return 0;
}

static int gpu_open(struct stasis_lib_bench *bench, struct stasis_error *err)
{
	const struct stasis_driver *driver = &bench->driver;
	struct stasis_device_list list;
	struct stasis_gpu_set set = {.count = 1};
	CUresult result;

	if (stasis_lib_driver_choose(bench->sink, &bench->driver, &bench->is_simulated, err) != 0 ||
	    stasis_driver_start(driver, err) != 0 ||
	    stasis_device_list_read(driver, &list, err) != 0)
		return -1;
	if (bench->options->device >= list.count)
		return stasis_fail(err, STASIS_REFUSED,
				   "device %u is not there: this process sees %u",
				   bench->options->device, list.count);
	set.uuids = &list.devices[bench->options->device].uuid;
	if (stasis_gpu_read(driver, &list.devices[bench->options->device], &bench->gpu, err) != 0 ||
	    stasis_contexts_retain(driver, &set, &bench->contexts, err) != 0)
		return -1;
	result = driver->cuCtxSetCurrent(bench->contexts.items[0].context);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"GPU %d: make its context current", bench->gpu.ordinal);
	return 0;
}

static void machine_report(struct stasis_lib_bench *bench)
{
	const struct stasis_lib_sink *sink = bench->sink;
	char version[STASIS_VERSION_BYTES];
	time_t now = time(NULL);
	struct utsname system;
	struct tm parts;
	char date[32] = "";

	if (gmtime_r(&now, &parts))
		(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts);
	stasis_lib_event(sink, "date", "%s", date);
	stasis_lib_event(sink, "stasis_version", "%s", stasis_version());
	stasis_lib_event(sink, "driver", "%s", bench->is_simulated ? "simulated" : "nvidia");
	if (!bench->is_simulated)
		stasis_lib_event(sink, "kernel_module", "%s",
				 stasis_kernel_module_version(version));
	stasis_lib_event(sink, "cuda_version", "%d.%d", bench->driver.cuda_version / 1000,
			 bench->driver.cuda_version % 1000 / 10);
	stasis_lib_event(sink, "gpu", "%s", bench->gpu.name);
	if (uname(&system) == 0)
		stasis_lib_event(sink, "kernel", "%s", system.release);
	stasis_lib_event(sink, "processors", "%u", (unsigned int)sysconf(_SC_NPROCESSORS_ONLN));
	stasis_lib_event(sink, "bytes", "%" PRIu64, bench->options->transfer_bytes);
	stasis_lib_event(sink, "link_save_gbps", "%.3f",
			 (double)bench->save_bytes_per_second / 1e9);
	stasis_lib_event(sink, "link_load_gbps", "%.3f",
			 (double)bench->load_bytes_per_second / 1e9);
}

static int rows_run(struct stasis_lib_bench *bench, const struct stasis_lib_bench_rows *rows,
		    struct stasis_error *err)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (rows->rows[i].bytes > bytes)
			bytes = rows->rows[i].bytes;
	}
	if (gpu_open(bench, err) != 0 || stasis_lib_bench_device_open(bench, bytes, err) != 0 ||
	    stasis_lib_bench_link_measure(bench, err) != 0)
		return -1;
	machine_report(bench);
	for (size_t i = 0; i < rows->count; i++) {
		if (stasis_lib_bench_row_run(bench, &rows->rows[i], err) != 0)
			return -1;
	}
	stasis_lib_event(bench->sink, "bench", "done");
	return 0;
}

enum stasis_status stasis_library_bench_transfer(struct stasis_library *library,
						 const struct stasis_bench_options *options)
{
	CLEANUP(free) struct stasis_lib_bench *bench = calloc(1, sizeof(*bench));
	CLEANUP(free) struct stasis_lib_bench_rows *rows = calloc(1, sizeof(*rows));
	struct stasis_error *err = stasis_lib_begin(library);
	struct stasis_bench_options ours;
	int result;

	if (!bench || !rows) {
		(void)stasis_fail_errno(err, STASIS_REFUSED, "bench");
		return stasis_lib_end(library, -1);
	}
	if (options_take(options, &ours, err) != 0 ||
	    stasis_lib_bench_rows_make(&ours, rows, err) != 0)
		return stasis_lib_end(library, -1);
	bench->options = &ours;
	bench->sink = &library->sink;
	stasis_lib_bench_files_close(&bench->files);
	result = rows_run(bench, rows, err);
	stasis_lib_bench_files_close(&bench->files);
	stasis_lib_bench_device_close(bench);
	stasis_contexts_release(&bench->contexts);
	return stasis_lib_end(library, result);
}
