/*
 * Device memory of the benchmark, and how fast the link copies pinned memory; see bench.h.
 */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "lib/bench.h"

#define BLOCK_BYTES STASIS_LIB_BENCH_BLOCK_BYTES
#define LINK_RUNS 5
#define LINK_BYTES_MAX (8 * STASIS_GIB)
#define LINK_BYTES_MAX_SIMULATED                                                                   \
	(256 * STASIS_MIB) /* of which every byte is memory of this machine */
#define SAMPLE_BYTES 4096
#define SAMPLES 64

static int driver_fail(const struct stasis_lib_bench *bench, CUresult result, const char *what,
		       struct stasis_error *err)
{
	return stasis_fail_cuda(err, STASIS_REFUSED, result, "GPU %d: %s", bench->gpu.ordinal,
				what);
}

/* Bytes without pattern, none of them a run of zeros: nothing here may be skipped or compressed. */
static void pattern_fill(uint8_t *pattern)
{
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < BLOCK_BYTES; i += sizeof(state)) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(pattern + i, &state, sizeof(state));
	}
}

int stasis_lib_bench_device_open(struct stasis_lib_bench *bench, uint64_t bytes,
				 struct stasis_error *err)
{
	void *pattern = NULL;
	CUresult result = bench->driver.cuMemAlloc(&bench->device_memory, (size_t)bytes);
	char text[32];

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"GPU %d: allocate %s; use a smaller number of bytes",
					bench->gpu.ordinal,
					stasis_format_bytes(bytes, text, sizeof(text)));
	bench->device_bytes = bytes;
	result = bench->driver.cuMemHostAlloc(&pattern, (size_t)BLOCK_BYTES, 0);
	if (result != CUDA_SUCCESS)
		return driver_fail(bench, result, "pin a block", err);
	bench->pattern = pattern;
	pattern_fill(bench->pattern);
	return 0;
}

void stasis_lib_bench_device_close(struct stasis_lib_bench *bench)
{
	if (bench->pattern)
		(void)bench->driver.cuMemFreeHost(bench->pattern);
	if (bench->device_memory)
		(void)bench->driver.cuMemFree(bench->device_memory);
	bench->pattern = NULL;
	bench->device_memory = 0;
}

/* Whether the block `index` is zeros: evenly spread, and all of them with 100. */
static bool block_is_zero(uint64_t index, uint32_t zero_percent)
{
	return (index + 1) * zero_percent / 100 > index * zero_percent / 100;
}

int stasis_lib_bench_device_fill(struct stasis_lib_bench *bench, uint64_t bytes,
				 uint32_t zero_percent, struct stasis_error *err)
{
	CUresult result = CUDA_SUCCESS;

	if (bench->filled_bytes >= bytes && bench->zero_percent == zero_percent)
		return 0;
	for (uint64_t at = 0; at < bytes && result == CUDA_SUCCESS; at += BLOCK_BYTES) {
		size_t step = (size_t)stasis_min_u64(BLOCK_BYTES, bytes - at);

		result = block_is_zero(at / BLOCK_BYTES, zero_percent)
				 ? bench->driver.cuMemsetD8(bench->device_memory + at, 0, step)
				 : bench->driver.cuMemcpyHtoD(bench->device_memory + at,
							      bench->pattern, step);
	}
	if (result == CUDA_SUCCESS)
		result = bench->driver.cuCtxSynchronize();
	bench->filled_bytes = result == CUDA_SUCCESS ? bytes : 0;
	bench->zero_percent = zero_percent;
	return result == CUDA_SUCCESS ? 0 : driver_fail(bench, result, "fill its memory", err);
}

/* Whole pages, so that no sample lies in two blocks; the last one ends with the memory. */
static uint64_t sample_place(uint64_t bytes, uint64_t index)
{
	uint64_t at = index < SAMPLES ? (bytes - 1) / SAMPLES * index : bytes - 1;

	return at / SAMPLE_BYTES * SAMPLE_BYTES;
}

int stasis_lib_bench_device_spoil(struct stasis_lib_bench *bench, uint64_t bytes,
				  struct stasis_error *err)
{
	CUresult result = CUDA_SUCCESS;

	for (uint64_t i = 0; i <= SAMPLES && result == CUDA_SUCCESS; i++) {
		uint64_t at = sample_place(bytes, i);

		result = bench->driver.cuMemsetD8(bench->device_memory + at, 0xa5,
						  (size_t)stasis_min_u64(SAMPLE_BYTES, bytes - at));
	}
	if (result == CUDA_SUCCESS)
		result = bench->driver.cuCtxSynchronize();
	return result == CUDA_SUCCESS ? 0 : driver_fail(bench, result, "overwrite its memory", err);
}

static int sample_check(struct stasis_lib_bench *bench, uint64_t at, size_t bytes,
			struct stasis_error *err)
{
	static const uint8_t zeros[SAMPLE_BYTES];
	uint8_t sample[SAMPLE_BYTES];
	CUresult result = bench->driver.cuMemcpyDtoH(sample, bench->device_memory + at, bytes);
	const uint8_t *expected = block_is_zero(at / BLOCK_BYTES, bench->zero_percent)
					  ? zeros
					  : bench->pattern + at % BLOCK_BYTES;

	if (result != CUDA_SUCCESS)
		return driver_fail(bench, result, "read its memory", err);
	if (memcmp(sample, expected, bytes) == 0)
		return 0;
	return stasis_fail(err, STASIS_INTERNAL,
			   "GPU %d: what was loaded at offset %llu is not what was saved; this is "
			   "a bug of stasis",
			   bench->gpu.ordinal, (unsigned long long)at);
}

int stasis_lib_bench_device_check(struct stasis_lib_bench *bench, uint64_t bytes,
				  struct stasis_error *err)
{
	for (uint64_t i = 0; i <= SAMPLES; i++) {
		uint64_t at = sample_place(bytes, i);

		if (sample_check(bench, at, (size_t)stasis_min_u64(SAMPLE_BYTES, bytes - at),
				 err) != 0)
			return -1;
	}
	return 0;
}

/* One pass over device memory, block after block, on one stream: a copy engine needs no more. */
static CUresult link_pass(struct stasis_lib_bench *bench, uint64_t bytes, CUstream stream,
			  bool is_save)
{
	const struct stasis_driver *driver = &bench->driver;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < bytes && result == CUDA_SUCCESS; at += BLOCK_BYTES) {
		size_t step = (size_t)stasis_min_u64(BLOCK_BYTES, bytes - at);
		CUdeviceptr device = bench->device_memory + at;

		result = is_save ? driver->cuMemcpyDtoHAsync(bench->pattern, device, step, stream)
				 : driver->cuMemcpyHtoDAsync(device, bench->pattern, step, stream);
	}
	return result == CUDA_SUCCESS ? driver->cuStreamSynchronize(stream) : result;
}

static uint64_t link_bytes(const struct stasis_lib_bench *bench)
{
	return stasis_min_u64(bench->device_bytes,
			      bench->is_simulated ? LINK_BYTES_MAX_SIMULATED : LINK_BYTES_MAX);
}

/* The best of some passes, after one that does not count: a limit. */
static int direction_measure(struct stasis_lib_bench *bench, CUstream stream, bool is_save,
			     uint64_t *ret_rate, struct stasis_error *err)
{
	uint64_t bytes = link_bytes(bench);
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i <= LINK_RUNS; i++) {
		uint64_t start_ns = stasis_clock_now_ns();
		CUresult result = link_pass(bench, bytes, stream, is_save);
		uint64_t elapsed_ns = stasis_clock_now_ns() - start_ns;

		if (result != CUDA_SUCCESS)
			return driver_fail(bench, result, "copy pinned memory", err);
		if (i > 0 && elapsed_ns < best_ns)
			best_ns = elapsed_ns ? elapsed_ns : 1;
	}
	*ret_rate = (uint64_t)((double)bytes / stasis_seconds(best_ns));
	return 0;
}

int stasis_lib_bench_link_measure(struct stasis_lib_bench *bench, struct stasis_error *err)
{
	CUstream stream = NULL;
	CUresult result;
	int status;

	/* Both ways the pinned block holds and keeps the pattern: every block is that block. */
	if (stasis_lib_bench_device_fill(bench, link_bytes(bench), 0, err) != 0)
		return -1;
	result = bench->driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (result != CUDA_SUCCESS)
		return driver_fail(bench, result, "create a stream", err);
	status = direction_measure(bench, stream, true, &bench->save_bytes_per_second, err);
	if (status == 0)
		status =
			direction_measure(bench, stream, false, &bench->load_bytes_per_second, err);
	(void)bench->driver.cuStreamDestroy(stream);
	return status;
}
