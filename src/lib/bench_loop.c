/*
 * The plain loop that the engine is compared with; see bench.h: threads take block after block from a counter
 * and move each with one call. It overlaps nothing by itself, checks no zeros and has no ring.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/number.h"
#include "lib/bench.h"

struct loop {
	const struct stasis_lib_bench_loop *plan;
	uint64_t block_count;
	uint64_t file_bytes[STASIS_STRIPES_MAX];
	/* Hands out numbers; threads are joined before anything else is looked at. */
	atomic_uint_fast64_t next_block;
	atomic_int code;   /* an errno of any thread */
	atomic_int result; /* a CUresult, likewise */
};

/* Where a block lies; false: behind the end of its file, where a save had only zeros. */
static bool block_place(const struct loop *loop, uint64_t index, uint32_t *ret_stripe,
			uint64_t *ret_offset, size_t *ret_bytes)
{
	const struct stasis_lib_bench_files *files = loop->plan->files;
	uint64_t bytes = stasis_chunk_bytes(files->bytes, files->chunk_bytes, index);

	*ret_stripe = (uint32_t)(index % files->stripe_count);
	*ret_offset = index / files->stripe_count * files->chunk_bytes;
	*ret_bytes = (size_t)stasis_round_up(bytes, STASIS_STORED_ALIGNMENT);
	return *ret_offset + *ret_bytes <= loop->file_bytes[*ret_stripe];
}

static int block_move(const struct loop *loop, uint64_t index, uint8_t *buffer)
{
	const struct stasis_lib_bench_files *files = loop->plan->files;
	bool is_save = loop->plan->direction == STASIS_TRANSFER_SAVE;
	uint8_t *memory = files->memory.base;
	uint32_t stripe;
	uint64_t offset;
	size_t bytes;

	if (!block_place(loop, index, &stripe, &offset, &bytes))
		return 0;
	if (files->place != STASIS_LIB_BENCH_MEMORY)
		return is_save ? stasis_pwrite_all(files->fds[stripe], buffer, bytes, offset,
						   "bench_write")
			       : stasis_pread_all(files->fds[stripe], buffer, bytes, offset,
						  "bench_read");
	if (is_save)
		memcpy(memory + offset, buffer, bytes);
	else
		memcpy(buffer, memory + offset, bytes);
	return 0;
}

/* What else an engine must do with a block: the device's side and the digest. */
static CUresult block_finish(const struct loop *loop, uint64_t index, uint8_t *buffer)
{
	const struct stasis_lib_bench_loop *plan = loop->plan;
	const struct stasis_lib_bench_files *files = plan->files;
	size_t bytes = (size_t)stasis_chunk_bytes(files->bytes, files->chunk_bytes, index);
	CUdeviceptr at = plan->bench->device_memory + index * files->chunk_bytes;
	struct stasis_id id = {{0}};
	struct stasis_digest digest;
	CUresult result = CUDA_SUCCESS;

	if (plan->direction == STASIS_TRANSFER_SAVE)
		result = plan->bench->driver.cuMemcpyDtoH(buffer, at, bytes);
	digest = stasis_digest_chunk(&id, index, buffer, bytes);
	/* Keeps the digest from being left out. */
	__asm__ volatile("" : : "m"(digest));
	if (plan->direction == STASIS_TRANSFER_LOAD)
		result = plan->bench->driver.cuMemcpyHtoD(at, buffer, bytes);
	return result;
}

static int block_run(struct loop *loop, uint64_t index, uint8_t *buffer)
{
	const struct stasis_lib_bench_loop *plan = loop->plan;
	CUresult result = CUDA_SUCCESS;
	int code = 0;

	if (plan->is_full && plan->direction == STASIS_TRANSFER_SAVE)
		result = block_finish(loop, index, buffer);
	if (result == CUDA_SUCCESS)
		code = block_move(loop, index, buffer);
	if (plan->is_full && plan->direction == STASIS_TRANSFER_LOAD && !code)
		result = block_finish(loop, index, buffer);
	if (result != CUDA_SUCCESS)
		atomic_store(&loop->result, (int)result);
	if (code)
		atomic_store(&loop->code, code);
	return result == CUDA_SUCCESS && !code ? 0 : -1;
}

static void *loop_main(void *data)
{
	struct loop *loop = data;
	struct stasis_lib_bench *bench = loop->plan->bench;
	size_t buffer_bytes = (size_t)loop->plan->files->chunk_bytes;
	CLEANUP(free) uint8_t *buffer = aligned_alloc(STASIS_STORED_ALIGNMENT, buffer_bytes);

	if (!buffer) {
		atomic_store(&loop->code, ENOMEM);
		return NULL;
	}
	memset(buffer, 0x5a, buffer_bytes);
	if (bench->driver.cuCtxSetCurrent(bench->contexts.items[0].context) != CUDA_SUCCESS)
		atomic_store(&loop->result, CUDA_ERROR_INVALID_CONTEXT);
	while (atomic_load(&loop->code) == 0 && atomic_load(&loop->result) == 0 &&
	       !atomic_load(&bench->is_cancelled)) {
		uint64_t index =
			atomic_fetch_add_explicit(&loop->next_block, 1, memory_order_relaxed);

		if (index >= loop->block_count || block_run(loop, index, buffer) != 0)
			break;
	}
	return NULL;
}

static int files_look(struct loop *loop, struct stasis_error *err)
{
	const struct stasis_lib_bench_files *files = loop->plan->files;

	loop->file_bytes[0] = files->memory.bytes;
	for (uint32_t i = 0; files->place != STASIS_LIB_BENCH_MEMORY && i < files->stripe_count;
	     i++) {
		struct stat info;

		if (fstat(files->fds[i], &info) != 0)
			return stasis_fail_errno(err, STASIS_REFUSED, "stat '%s'", files->names[i]);
		loop->file_bytes[i] = (uint64_t)info.st_size;
	}
	return 0;
}

/* O_DIRECT on or off, as the engine has it. */
static int files_set_direct(const struct stasis_lib_bench_files *files, bool is_on,
			    struct stasis_error *err)
{
	for (uint32_t i = 0; files->is_direct && i < files->stripe_count; i++) {
		if (fcntl(files->fds[i], F_SETFL, O_RDWR | (is_on ? O_DIRECT : 0)) != 0)
			return stasis_fail_errno(err, STASIS_REFUSED, "open '%s' for direct I/O",
						 files->names[i]);
	}
	return 0;
}

static int threads_run(struct loop *loop, struct stasis_error *err)
{
	pthread_t threads[STASIS_TRANSFER_WORKERS_MAX];
	uint32_t wanted =
		(uint32_t)stasis_min_u64(loop->plan->threads, STASIS_TRANSFER_WORKERS_MAX);
	uint32_t started = 0;
	int code = 0;

	while (started < wanted && !code) {
		code = pthread_create(&threads[started], NULL, loop_main, loop);
		started += code == 0;
	}
	for (uint32_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "plain loop: start a thread");
	if (atomic_load(&loop->code))
		return stasis_fail_code(err, STASIS_REFUSED, atomic_load(&loop->code),
					"plain loop on %s",
					stasis_lib_bench_place_name(loop->plan->files->place));
	if (atomic_load(&loop->result))
		return stasis_fail_cuda(err, STASIS_REFUSED, (CUresult)atomic_load(&loop->result),
					"plain loop: copy");
	if (atomic_load(&loop->plan->bench->is_cancelled))
		return stasis_fail(err, STASIS_REFUSED, "bench: cancelled");
	return 0;
}

static int written_sync(const struct stasis_lib_bench_loop *plan, struct stasis_error *err)
{
	struct stasis_transfer_extent extent =
		stasis_lib_bench_files_extent(plan->files, plan->direction);
	struct stasis_transfer_result result;

	if (plan->direction != STASIS_TRANSFER_SAVE || plan->files->place != STASIS_LIB_BENCH_DISK)
		return 0;
	return stasis_transfer_sync(&extent, 1, NULL, &result, err);
}

int stasis_lib_bench_loop_run(const struct stasis_lib_bench_loop *plan, uint64_t *ret_ns,
			      struct stasis_error *err)
{
	struct loop loop = {
		.plan = plan,
		.block_count = stasis_chunk_count(plan->files->bytes, plan->files->chunk_bytes),
	};
	uint64_t start_ns;
	int status;

	if (files_look(&loop, err) != 0 || files_set_direct(plan->files, true, err) != 0)
		return -1;
	start_ns = stasis_clock_now_ns();
	status = threads_run(&loop, err);
	if (status == 0)
		status = written_sync(plan, err);
	*ret_ns = stasis_clock_now_ns() - start_ns;
	if (status == 0)
		status = files_set_direct(plan->files, false, err);
	return status;
}
