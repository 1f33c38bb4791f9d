/*
 * One row of the benchmark: the engine and the plain loop by turns, so that what changes on the machine
 * changes for both; see bench.h.
 */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "lib/bench.h"

#define NS_MAX UINT64_C(3600000000000)

struct samples {
	uint64_t engine_ns[STASIS_LIB_BENCH_RUNS_MAX];
	uint64_t loop_ns[STASIS_LIB_BENCH_RUNS_MAX];
	uint32_t count;
	struct stasis_transfer_result result; /* of the last run */
};

static int compare_u64(const void *left, const void *right)
{
	const uint64_t *a = left;
	const uint64_t *b = right;

	return (*a > *b) - (*a < *b);
}

/* Sorts; of an even number the lower one of the two in the middle. */
static uint64_t median(uint64_t *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare_u64);
	return values[(count - 1) / 2];
}

bool stasis_lib_bench_is_cancelled(struct stasis_lib_bench *bench)
{
	struct pollfd cancel = {.fd = bench->options->cancel_fd, .events = POLLIN};

	if (cancel.fd >= 0 && poll(&cancel, 1, 0) > 0)
		atomic_store(&bench->is_cancelled, true);
	return atomic_load(&bench->is_cancelled);
}

static void progress(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	struct stasis_lib_bench *bench = data;

	(void)stasis_lib_bench_is_cancelled(bench);
	stasis_lib_event(bench->sink, "progress", "%s %" PRIu64 " %" PRIu64, bench->row_name,
			 done_bytes, total_bytes);
}

/* The engine's transfer, to the disk where there is one. */
static int engine_run(struct stasis_lib_bench *bench, struct stasis_transfer *engine,
		      const struct stasis_lib_bench_row *row,
		      enum stasis_transfer_direction direction,
		      struct stasis_transfer_result *ret_result, struct stasis_error *err)
{
	struct stasis_transfer_extent extent =
		stasis_lib_bench_files_extent(&bench->files, direction);
	const struct stasis_transfer_segment segment = {
		.context = bench->contexts.items[0].context,
		.device_ordinal = bench->contexts.items[0].device.ordinal,
		.device_pointer = bench->device_memory,
		.bytes = row->bytes,
	};
	const struct stasis_transfer_plan plan = {
		.extents = &extent,
		.extent_count = 1,
		.segments = &segment,
		.segment_count = 1,
		.verify = !row->is_unverified,
	};
	const struct stasis_transfer_watch watch = {
		.progress = progress,
		.progress_data = bench,
		.cancel = &bench->is_cancelled,
		.deadline_ns = STASIS_NO_DEADLINE,
	};
	struct stasis_transfer_result unused;

	if (stasis_transfer_run(engine, &plan, &watch, ret_result, err) != 0)
		return -1;
	if (direction != STASIS_TRANSFER_SAVE || row->place != STASIS_LIB_BENCH_DISK)
		return 0;
	return stasis_transfer_sync(&extent, 1, &watch, &unused, err);
}

/* One measured transfer, checked where that is possible. */
static int engine_measure(struct stasis_lib_bench *bench, struct stasis_transfer *engine,
			  const struct stasis_lib_bench_row *row, struct samples *samples,
			  struct stasis_error *err)
{
	bool is_load = row->direction == STASIS_TRANSFER_LOAD;
	uint64_t start_ns;

	if (is_load && stasis_lib_bench_device_spoil(bench, row->bytes, err) != 0)
		return -1;
	if (stasis_lib_bench_files_chill(&bench->files, err) != 0)
		return -1;
	start_ns = stasis_clock_now_ns();
	if (engine_run(bench, engine, row, row->direction, &samples->result, err) != 0)
		return -1;
	samples->engine_ns[samples->count] = stasis_clock_now_ns() - start_ns;
	if (is_load)
		bench->filled_bytes = 0;
	return is_load ? stasis_lib_bench_device_check(bench, row->bytes, err) : 0;
}

static int loop_measure(struct stasis_lib_bench *bench, const struct stasis_lib_bench_row *row,
			struct samples *samples, struct stasis_error *err)
{
	const struct stasis_lib_bench_loop loop = {
		.bench = bench,
		.files = &bench->files,
		.direction = row->direction,
		.threads = samples->result.worker_count,
		.is_full = bench->is_simulated && !row->is_unverified,
	};

	if (stasis_lib_bench_files_chill(&bench->files, err) != 0)
		return -1;
	return stasis_lib_bench_loop_run(&loop, &samples->loop_ns[samples->count], err);
}

static double rate_gbps(uint64_t bytes, uint64_t ns)
{
	return (double)bytes / (double)(ns ? ns : 1);
}

/* The plain loop has no zeros to leave out: rows with zeros are held against the link. */
static bool has_loop(const struct stasis_lib_bench_row *row)
{
	return row->zero_percent == 0;
}

static void limit_report(struct stasis_lib_bench *bench, const struct stasis_lib_bench_row *row,
			 double rate, double loop_rate)
{
	double link_rate =
		(double)(row->direction == STASIS_TRANSFER_SAVE ? bench->save_bytes_per_second
								: bench->load_bytes_per_second) /
		1e9;
	bool is_by_loop = has_loop(row) && (row->place == STASIS_LIB_BENCH_DISK ||
					    (bench->is_simulated && !row->is_unverified));
	double limit = is_by_loop ? loop_rate : link_rate;
	size_t index = bench->row_count;

	stasis_lib_event_of(bench->sink, "row", index, "link_gbps", "%.3f", link_rate);
	if (has_loop(row))
		stasis_lib_event_of(bench->sink, "row", index, "loop_gbps", "%.3f", loop_rate);
	stasis_lib_event_of(bench->sink, "row", index, "limit", "%s", is_by_loop ? "loop" : "link");
	stasis_lib_event_of(bench->sink, "row", index, "limit_gbps", "%.3f", limit);
	stasis_lib_event_of(bench->sink, "row", index, "ratio", "%.3f", rate / limit);
}

static void samples_report(struct stasis_lib_bench *bench, const struct samples *samples)
{
	char text[STASIS_LIB_BENCH_RUNS_MAX * 10 + 1] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < samples->count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.4f", i ? " " : "",
					 stasis_seconds(samples->engine_ns[i] < NS_MAX
								? samples->engine_ns[i]
								: NS_MAX));
	stasis_lib_event_of(bench->sink, "row", bench->row_count, "samples", "%s", text);
}

/* A save into files in memory is one into a reserve, unless the row is about something else. */
static bool is_into_reserve(const struct stasis_lib_bench_row *row)
{
	return row->place == STASIS_LIB_BENCH_TMPFS && row->direction == STASIS_TRANSFER_SAVE &&
	       row->store == STASIS_TRANSFER_STORE_AUTO && row->zero_percent < 100;
}

static const char *cold_word(const struct stasis_lib_bench *bench,
			     const struct stasis_lib_bench_row *row)
{
	if (is_into_reserve(row))
		return "no: reserved, mapped ahead";
	if (row->place != STASIS_LIB_BENCH_DISK)
		return "no: resident";
	return bench->files.is_direct ? "yes: O_DIRECT, after fdatasync and POSIX_FADV_DONTNEED"
				      : "yes: after fdatasync and POSIX_FADV_DONTNEED";
}

static void row_report(struct stasis_lib_bench *bench, const struct stasis_lib_bench_row *row,
		       struct samples *samples)
{
	const struct stasis_lib_sink *sink = bench->sink;
	const struct stasis_transfer_result *result = &samples->result;
	size_t index = bench->row_count;
	uint64_t engine_ns;

	samples_report(bench, samples);
	engine_ns = median(samples->engine_ns, samples->count);
	stasis_lib_event_of(sink, "row", index, "name", "%s", row->name);
	stasis_lib_event_of(sink, "row", index, "direction", "%s",
			    row->direction == STASIS_TRANSFER_SAVE ? "save" : "load");
	stasis_lib_event_of(sink, "row", index, "place", "%s",
			    stasis_lib_bench_place_name(row->place));
	stasis_lib_event_of(sink, "row", index, "store", "%s",
			    stasis_transfer_store_name(result->store));
	stasis_lib_event_of(sink, "row", index, "cold", "%s", cold_word(bench, row));
	stasis_lib_event_of(sink, "row", index, "bytes", "%" PRIu64, row->bytes);
	stasis_lib_event_of(sink, "row", index, "chunk_bytes", "%" PRIu64,
			    bench->files.chunk_bytes);
	stasis_lib_event_of(sink, "row", index, "workers", "%u", result->worker_count);
	stasis_lib_event_of(sink, "row", index, "stripes", "%u", bench->files.stripe_count);
	stasis_lib_event_of(sink, "row", index, "digests", "%s", row->is_unverified ? "off" : "on");
	stasis_lib_event_of(sink, "row", index, "zero_percent", "%u", row->zero_percent);
	stasis_lib_event_of(sink, "row", index, "pinned_bytes", "%" PRIu64,
			    result->pinned_peak_bytes);
	stasis_lib_event_of(sink, "row", index, "runs", "%u", samples->count);
	stasis_lib_event_of(sink, "row", index, "seconds", "%.6f", stasis_seconds(engine_ns));
	stasis_lib_event_of(sink, "row", index, "gbps", "%.3f", rate_gbps(row->bytes, engine_ns));
	limit_report(bench, row, rate_gbps(row->bytes, engine_ns),
		     rate_gbps(row->bytes,
			       has_loop(row) ? median(samples->loop_ns, samples->count) : 0));
	bench->row_count++;
}

/* The first transfer does not count: a save that makes the files resident, and that loads find there. */
static int row_measure(struct stasis_lib_bench *bench, struct stasis_transfer *engine,
		       const struct stasis_lib_bench_row *row, struct samples *samples,
		       struct stasis_error *err)
{
	if (engine_run(bench, engine, row, STASIS_TRANSFER_SAVE, &samples->result, err) != 0)
		return -1;
	if (is_into_reserve(row) && stasis_lib_bench_files_map(&bench->files, err) != 0)
		return -1;
	while (samples->count < bench->options->runs) {
		if (stasis_lib_bench_is_cancelled(bench))
			return stasis_fail(err, STASIS_REFUSED, "bench: cancelled");
		if (engine_measure(bench, engine, row, samples, err) != 0 ||
		    (has_loop(row) && loop_measure(bench, row, samples, err) != 0))
			return -1;
		samples->count++;
	}
	return 0;
}

int stasis_lib_bench_row_run(struct stasis_lib_bench *bench, const struct stasis_lib_bench_row *row,
			     struct stasis_error *err)
{
	const struct stasis_context *context = &bench->contexts.items[0];
	const struct stasis_transfer_options options = {
		.driver = &bench->driver,
		.store = row->store,
		.chunk_bytes = row->chunk_bytes,
		.workers = row->workers,
	};
	struct stasis_transfer *engine = NULL;
	struct samples samples = {.count = 0};
	int status;

	bench->row_name = row->name;
	if (stasis_lib_bench_device_fill(bench, row->bytes, row->zero_percent, err) != 0 ||
	    stasis_lib_bench_files_get(bench, row, err) != 0 ||
	    stasis_transfer_new(&options, &engine, err) != 0)
		return -1;
	status = stasis_transfer_prepare(engine, context->context, context->device.ordinal, err);
	if (status == 0)
		status = row_measure(bench, engine, row, &samples, err);
	stasis_lib_bench_files_unmap(&bench->files);
	stasis_transfer_free(engine);
	if (status != 0) {
		stasis_error_context(err, "row '%s'", row->name);
		return -1;
	}
	row_report(bench, row, &samples);
	return 0;
}
