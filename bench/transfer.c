/*
 * How fast the transfer engine moves device memory to files and back, beside the limits of the same run: the
 * rate of pinned copies alone, and a plain loop of one thread that copies, digests and writes the same chunks.
 * Files are written once before anything is measured, so that memory file systems are measured resident.
 *
 *     transfer [--bytes N] [--chunk N] [--workers N] [--stripes N] [--store NAME] [--dir DIR]
 *              [--zeros PERCENT] [--rounds N] [--verify on|off]
 *
 * Prints one line a figure: what, GB/s of the best round, seconds of processor time a GB, share of both limits.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "driver/device.h"
#include "driver/driver.h"
#include "transfer/transfer.h"

#define COPY_BYTES (UINT64_C(16) << 20)

struct settings {
	uint64_t bytes;
	uint64_t chunk_bytes;
	uint64_t workers;
	uint64_t stripes; /* 0: as many as serve well */
	uint64_t zeros_percent;
	uint64_t rounds;
	enum stasis_transfer_store store;
	bool verify;
	char dir[4096];
};

struct bench {
	struct settings settings;
	struct stasis_driver driver;
	CUcontext context;
	CUdeviceptr memory;
	uint8_t *pinned;
	CUstream stream;
	struct stasis_transfer *engine;
	struct stasis_transfer_extent extent;
	struct stasis_transfer_segment segment;
	struct stasis_transfer_result result;
	char names[STASIS_STRIPES_MAX][32];
	int plain_fd;
};

/* One thing to be measured: moves all bytes once. */
typedef int bench_function(struct bench *bench, struct stasis_error *err);

NORETURN static void give_up(const struct stasis_error *err)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "transfer: %s\n", err->text);
	_exit(1);
}

static int cuda_check(CUresult result, const char *what, struct stasis_error *err)
{
	if (result == CUDA_SUCCESS)
		return 0;
	return stasis_fail_cuda(err, STASIS_REFUSED, result, "%s", what);
}

static int pinned_copies(struct bench *bench, bool is_out, struct stasis_error *err)
{
	const struct stasis_driver *driver = &bench->driver;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < bench->settings.bytes && result == CUDA_SUCCESS;
	     at += COPY_BYTES) {
		size_t bytes = (size_t)stasis_min_u64(COPY_BYTES, bench->settings.bytes - at);
		uint8_t *host = bench->pinned + (at / COPY_BYTES % 2) * COPY_BYTES;

		result = is_out ? driver->cuMemcpyDtoHAsync(host, bench->memory + at, bytes,
							    bench->stream)
				: driver->cuMemcpyHtoDAsync(bench->memory + at, host, bytes,
							    bench->stream);
	}
	if (result == CUDA_SUCCESS)
		result = driver->cuStreamSynchronize(bench->stream);
	return cuda_check(result, "copy", err);
}

static int pinned_out(struct bench *bench, struct stasis_error *err)
{
	return pinned_copies(bench, true, err);
}

static int pinned_in(struct bench *bench, struct stasis_error *err)
{
	return pinned_copies(bench, false, err);
}

/* The plain loop; what it digests goes nowhere, but is not optimised away: the digest is a library's. */
static int plain_chunks(struct bench *bench, bool is_save, struct stasis_error *err)
{
	const struct stasis_driver *driver = &bench->driver;
	uint64_t chunk_bytes = bench->settings.chunk_bytes;
	CUresult result = CUDA_SUCCESS;
	int code = 0;

	for (uint64_t at = 0; at < bench->settings.bytes && result == CUDA_SUCCESS && !code;
	     at += chunk_bytes) {
		size_t bytes = (size_t)stasis_min_u64(chunk_bytes, bench->settings.bytes - at);

		if (is_save)
			result = driver->cuMemcpyDtoH(bench->pinned, bench->memory + at, bytes);
		else
			code = stasis_pread_all(bench->plain_fd, bench->pinned, bytes, at, NULL);
		(void)stasis_digest_chunk(&bench->extent.id, at / chunk_bytes, bench->pinned,
					  bytes);
		if (is_save)
			code = stasis_pwrite_all(bench->plain_fd, bench->pinned, bytes, at, NULL);
		else
			result = driver->cuMemcpyHtoD(bench->memory + at, bench->pinned, bytes);
	}
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "plain loop");
	return cuda_check(result, "plain loop", err);
}

static int plain_save(struct bench *bench, struct stasis_error *err)
{
	return plain_chunks(bench, true, err);
}

static int plain_load(struct bench *bench, struct stasis_error *err)
{
	return plain_chunks(bench, false, err);
}

static int engine_run(struct bench *bench, enum stasis_transfer_direction direction,
		      struct stasis_error *err)
{
	struct stasis_transfer_plan plan = {
		.extents = &bench->extent,
		.extent_count = 1,
		.segments = &bench->segment,
		.segment_count = 1,
		.verify = bench->settings.verify,
	};

	bench->extent.direction = direction;
	return stasis_transfer_run(bench->engine, &plan, NULL, &bench->result, err);
}

static int engine_save(struct bench *bench, struct stasis_error *err)
{
	return engine_run(bench, STASIS_TRANSFER_SAVE, err);
}

static int engine_load(struct bench *bench, struct stasis_error *err)
{
	return engine_run(bench, STASIS_TRANSFER_LOAD, err);
}

static int engine_verify(struct bench *bench, struct stasis_error *err)
{
	struct stasis_transfer_result result;

	return stasis_transfer_verify(&bench->extent, 1, NULL, &result, err);
}

struct figure {
	double rate;        /* GB/s of the best round */
	double cpu_seconds; /* a GB, of all threads, over all rounds */
};

static double cpu_seconds_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct figure measure(struct bench *bench, bench_function *function)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	double gigabytes = (double)bench->settings.bytes / 1e9;
	double cpu_began = cpu_seconds_now();
	struct figure figure = {0};

	for (uint64_t i = 0; i < bench->settings.rounds; i++) {
		uint64_t began_ns = stasis_clock_now_ns();
		double rate;

		if (function(bench, &err) != 0)
			give_up(&err);
		rate = gigabytes / stasis_seconds(stasis_clock_now_ns() - began_ns);
		figure.rate = rate > figure.rate ? rate : figure.rate;
	}
	figure.cpu_seconds = (cpu_seconds_now() - cpu_began) / gigabytes;
	figure.cpu_seconds /= (double)bench->settings.rounds;
	return figure;
}

/* `link` and `plain` are limits to hold the figure against; NULL: none. */
static void print_row(const char *what, struct figure figure, const struct figure *link,
		      const struct figure *plain)
{
	(void)printf("%-11s %7.2f GB/s  %5.2f CPU s/GB", what, figure.rate, figure.cpu_seconds);
	if (link)
		(void)printf("   %.2f of pinned copies", figure.rate / link->rate);
	if (plain)
		(void)printf("   %.2f of the plain loop", figure.rate / plain->rate);
	(void)printf("\n");
}

static void measure_all(struct bench *bench)
{
	struct figure out = measure(bench, pinned_out);
	struct figure in = measure(bench, pinned_in);
	struct figure save = measure(bench, plain_save);
	struct figure load = measure(bench, plain_load);

	print_row("pinned out", out, NULL, NULL);
	print_row("pinned in", in, NULL, NULL);
	print_row("plain save", save, &out, NULL);
	print_row("plain load", load, &in, NULL);
	print_row("save", measure(bench, engine_save), &out, &save);
	print_row("load", measure(bench, engine_load), &in, &load);
	print_row("verify", measure(bench, engine_verify), NULL, &load);
	(void)printf("store %s, %u workers, %.0f MiB pinned, %.0f %% zeros\n",
		     stasis_transfer_store_name(bench->result.store), bench->result.worker_count,
		     (double)bench->result.pinned_peak_bytes / (double)STASIS_MIB,
		     100.0 * (double)bench->result.zero_bytes / (double)bench->settings.bytes);
}

/* Chunks of zeros lie evenly among chunks that no two alike are. */
static int memory_fill(struct bench *bench, struct stasis_error *err)
{
	const struct settings *settings = &bench->settings;
	CUresult result = CUDA_SUCCESS;
	uint64_t dealt = 0;
	uint64_t seed = 1;

	for (uint64_t at = 0; at < settings->bytes && result == CUDA_SUCCESS;
	     at += settings->chunk_bytes) {
		size_t bytes = (size_t)stasis_min_u64(settings->chunk_bytes, settings->bytes - at);

		dealt += settings->zeros_percent;
		for (size_t i = 0; i < bytes; i += 8) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			memcpy(bench->pinned + i, &seed, 8);
		}
		if (dealt >= 100)
			memset(bench->pinned, 0, bytes);
		dealt %= 100;
		result = bench->driver.cuMemcpyHtoD(bench->memory + at, bench->pinned, bytes);
	}
	return cuda_check(result, "fill device memory", err);
}

static int file_make(const char *dir, const char *name, int *ret_fd, struct stasis_error *err)
{
	char path[4200];

	(void)snprintf(path, sizeof(path), "%s/stasis-bench-%d-%s", dir, (int)getpid(), name);
	*ret_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (*ret_fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "create '%s'", path);
	/* Nobody else needs its name, and no end of this program leaves it behind. */
	(void)unlink(path);
	return 0;
}

static int extent_make(struct bench *bench, struct stasis_error *err)
{
	const struct settings *settings = &bench->settings;
	struct stasis_transfer_extent *extent = &bench->extent;

	extent->id.bytes[0] = 1;
	extent->name = "bench";
	extent->bytes = settings->bytes;
	extent->chunk_bytes = settings->chunk_bytes;
	extent->stripe_count =
		settings->stripes
			? (uint32_t)settings->stripes
			: stasis_transfer_stripe_count(settings->bytes, settings->chunk_bytes);
	extent->chunks = calloc(stasis_chunk_count(settings->bytes, settings->chunk_bytes) + 1,
				sizeof(*extent->chunks));
	if (!extent->chunks || extent->stripe_count > STASIS_STRIPES_MAX)
		return stasis_fail(err, STASIS_USAGE, "too many chunks or stripes");
	for (uint32_t s = 0; s < extent->stripe_count; s++) {
		(void)snprintf(bench->names[s], sizeof(bench->names[s]), "stripe.%u", s);
		extent->stripe_names[s] = bench->names[s];
		if (file_make(settings->dir, bench->names[s], &extent->stripe_fds[s], err) != 0)
			return -1;
	}
	bench->segment = (struct stasis_transfer_segment){
		.context = bench->context,
		.device_pointer = bench->memory,
		.bytes = settings->bytes,
	};
	return file_make(settings->dir, "plain", &bench->plain_fd, err);
}

static int device_make(struct bench *bench, struct stasis_error *err)
{
	struct stasis_driver *driver = &bench->driver;
	uint64_t pinned_bytes = bench->settings.chunk_bytes > 2 * COPY_BYTES
					? bench->settings.chunk_bytes
					: 2 * COPY_BYTES;
	CUdevice device = 0;
	char name[128] = "";
	void *pinned = NULL;
	struct utsname kernel;

	if (stasis_driver_open(NULL, driver, err) != 0 || stasis_driver_start(driver, err) != 0)
		return -1;
	if (cuda_check(driver->cuDeviceGet(&device, 0), "get GPU 0", err) != 0 ||
	    cuda_check(driver->cuDeviceGetName(name, sizeof(name), device), "name GPU 0", err) !=
		    0 ||
	    cuda_check(driver->cuDevicePrimaryCtxRetain(&bench->context, device),
		       "retain the context of GPU 0", err) != 0 ||
	    cuda_check(driver->cuCtxSetCurrent(bench->context), "set the context", err) != 0 ||
	    cuda_check(driver->cuMemAlloc(&bench->memory, (size_t)bench->settings.bytes),
		       "allocate device memory", err) != 0 ||
	    cuda_check(
		    driver->cuMemHostAlloc(&pinned, (size_t)pinned_bytes, CU_MEMHOSTALLOC_PORTABLE),
		    "pin host memory", err) != 0 ||
	    cuda_check(driver->cuStreamCreate(&bench->stream, CU_STREAM_NON_BLOCKING),
		       "create a stream", err) != 0)
		return -1;
	bench->pinned = pinned;
	(void)uname(&kernel);
	(void)printf("%s, CUDA %d, Linux %s, files in '%s', %.0f MiB\n", name, driver->cuda_version,
		     kernel.release, bench->settings.dir,
		     (double)bench->settings.bytes / (double)STASIS_MIB);
	return 0;
}

static int bench_make(struct bench *bench, struct stasis_error *err)
{
	struct stasis_transfer_options options = {
		.driver = &bench->driver,
		.store = bench->settings.store,
		.chunk_bytes = bench->settings.chunk_bytes,
		.workers = (uint32_t)bench->settings.workers,
	};

	if (device_make(bench, err) != 0 || memory_fill(bench, err) != 0 ||
	    extent_make(bench, err) != 0 ||
	    stasis_transfer_new(&options, &bench->engine, err) != 0 ||
	    stasis_transfer_prepare(bench->engine, bench->context, 0, err) != 0)
		return -1;
	return engine_save(bench, err) == 0 ? plain_save(bench, err) : -1;
}

static void bench_end(struct bench *bench)
{
	stasis_transfer_free(bench->engine);
	for (uint32_t s = 0; s < bench->extent.stripe_count; s++)
		(void)close(bench->extent.stripe_fds[s]);
	(void)close(bench->plain_fd);
	free(bench->extent.chunks);
	(void)bench->driver.cuStreamDestroy(bench->stream);
	(void)bench->driver.cuMemFreeHost(bench->pinned);
	(void)bench->driver.cuMemFree(bench->memory);
}

static int verify_parse(const char *text, bool *ret_verify, struct stasis_error *err)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return stasis_fail(err, STASIS_USAGE, "--verify is on or off, not '%s'", text);
	*ret_verify = strcmp(text, "on") == 0;
	return 0;
}

static int option_take(struct settings *settings, const char *name, const char *value,
		       struct stasis_error *err)
{
	const struct {
		const char *name;
		uint64_t *number;
		bool is_bytes;
	} numbers[] = {
		{"--bytes", &settings->bytes, true},
		{"--chunk", &settings->chunk_bytes, true},
		{"--workers", &settings->workers, false},
		{"--stripes", &settings->stripes, false},
		{"--zeros", &settings->zeros_percent, false},
		{"--rounds", &settings->rounds, false},
	};

	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
		if (strcmp(name, numbers[i].name) == 0)
			return numbers[i].is_bytes
				       ? stasis_parse_bytes(name, value, numbers[i].number, err)
				       : stasis_parse_u64(name, value, numbers[i].number, err);
	}
	if (strcmp(name, "--verify") == 0)
		return verify_parse(value, &settings->verify, err);
	if (strcmp(name, "--dir") == 0) {
		(void)snprintf(settings->dir, sizeof(settings->dir), "%s", value);
		return 0;
	}
	if (strcmp(name, "--store") == 0 && stasis_transfer_store_parse(value, &settings->store))
		return 0;
	return stasis_fail(err, STASIS_USAGE, "'%s %s' is not understood", name, value);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	struct stasis_error err = STASIS_ERROR_INIT;

	bench.settings = (struct settings){
		.bytes = UINT64_C(512) << 20,
		.chunk_bytes = STASIS_CHUNK_BYTES_DEFAULT,
		.rounds = 3,
		.verify = true,
		.dir = "/dev/shm",
	};
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (option_take(&bench.settings, argv[i], value, &err) != 0)
			give_up(&err);
	}
	if (bench_make(&bench, &err) != 0)
		give_up(&err);
	measure_all(&bench);
	bench_end(&bench);
	return 0;
}
