/*
 * The stores that read and write files: stripes, plain and direct; see store.h.
 *
 * A transfer that was stopped ends within 100 ms on slow storage, too: one call moves at most 1 MiB, or, around
 * the page cache, where disks want large requests, 4 MiB until a call takes too long.
 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/number.h"
#include "transfer/store.h"

#define STEP_BYTES (UINT64_C(1) << 20)
#define STEP_BYTES_DIRECT (UINT64_C(4) << 20)
#define STEP_HALVINGS_MAX 4 /* 256 KiB */
#define STEP_NS_MAX (50 * STASIS_NS_PER_MS)

static bool is_stopped(const atomic_bool *stop)
{
	return atomic_load_explicit(stop, memory_order_relaxed);
}

static bool is_direct(const struct stasis_transfer_file *file)
{
	return file->status_flags >= 0;
}

/* What of `bytes` may be moved at once; 0 and *ret_code: nothing, by a fault point. */
static size_t step_bytes(const struct stasis_transfer_file *file, const char *point, size_t bytes,
			 int *ret_code)
{
	/* Threads that find a call slow at the same time may count past the limit. */
	uint64_t halvings = stasis_min_u64(
		atomic_load_explicit(&file->halvings, memory_order_relaxed), STEP_HALVINGS_MAX);
	uint64_t most = is_direct(file) ? STEP_BYTES_DIRECT >> halvings : STEP_BYTES;
	size_t step = (size_t)stasis_min_u64(bytes, most);

	*ret_code = stasis_fault_point_io(point, &step);
	if (*ret_code)
		return 0;
	return is_direct(file) ? (size_t)stasis_round_up(step, STASIS_STORED_ALIGNMENT) : step;
}

/* A call that took too long makes the next ones smaller. Orders nothing: relaxed. */
static void step_adapt(struct stasis_transfer_file *file, uint64_t start_ns)
{
	if (is_direct(file) && stasis_clock_now_ns() - start_ns > STEP_NS_MAX &&
	    atomic_load_explicit(&file->halvings, memory_order_relaxed) < STEP_HALVINGS_MAX)
		atomic_fetch_add_explicit(&file->halvings, 1, memory_order_relaxed);
}

/* One read or write; 0 and the count moved, or an errno. An interrupted one moved nothing. */
static int step_pread(struct stasis_transfer_file *file, uint8_t *buffer, size_t bytes,
		      uint64_t offset, size_t *ret_count)
{
	int code;
	size_t step = step_bytes(file, "transfer_read", bytes, &code);
	uint64_t start_ns = stasis_clock_now_ns();
	ssize_t count;

	*ret_count = 0;
	if (code)
		return code == EINTR ? 0 : code;
	count = pread(file->fd, buffer, step, (off_t)offset);
	if (count < 0)
		return errno == EINTR ? 0 : errno;
	step_adapt(file, start_ns);
	*ret_count = (size_t)count;
	return count == 0 ? ENODATA : 0;
}

static int step_pwrite(struct stasis_transfer_file *file, const uint8_t *buffer, size_t bytes,
		       uint64_t offset, size_t *ret_count)
{
	int code;
	size_t step = step_bytes(file, "transfer_write", bytes, &code);
	uint64_t start_ns = stasis_clock_now_ns();
	ssize_t count;

	*ret_count = 0;
	if (code)
		return code == EINTR ? 0 : code;
	count = pwrite(file->fd, buffer, step, (off_t)offset);
	if (count < 0)
		return errno == EINTR ? 0 : errno;
	step_adapt(file, start_ns);
	*ret_count = (size_t)count;
	return count == 0 ? EIO : 0;
}

int stasis_transfer_file_pwrite(struct stasis_transfer_file *file, const uint8_t *buffer,
				size_t bytes, uint64_t offset, const atomic_bool *stop)
{
	size_t moved = 0;

	while (moved < bytes) {
		size_t count = 0;
		int code = is_stopped(stop) ? ECANCELED
					    : step_pwrite(file, buffer + moved, bytes - moved,
							  offset + moved, &count);

		if (code)
			return code;
		moved += count;
	}
	return 0;
}

/*
 * Direct I/O takes no odd lengths: the block that holds the last byte is asked for whole, and `buffer` has room
 * for it. A file that ends inside a block answers with an odd count, and nothing comes after that.
 */
int stasis_transfer_file_pread(struct stasis_transfer_file *file, uint8_t *buffer, size_t bytes,
			       uint64_t offset, const atomic_bool *stop)
{
	size_t moved = 0;

	while (moved < bytes) {
		size_t count = 0;
		int code = is_stopped(stop) ? ECANCELED
					    : step_pread(file, buffer + moved, bytes - moved,
							 offset + moved, &count);

		if (code)
			return code;
		moved += count;
		if (is_direct(file) && count % STASIS_STORED_ALIGNMENT != 0 && moved < bytes)
			return ENODATA;
	}
	return 0;
}

int stasis_transfer_file_cut(struct stasis_transfer_file *file, uint64_t bytes)
{
	int code = stasis_fault_point("transfer_truncate");

	if (code && code != EINTR)
		return code;
	while (ftruncate(file->fd, (off_t)bytes) != 0) {
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

static int plain_open(struct stasis_transfer_file *file, uint64_t reserve_bytes,
		      struct stasis_error *err)
{
	(void)file;
	(void)reserve_bytes;
	(void)err;
	return 0;
}

static void plain_close(struct stasis_transfer_file *file)
{
	(void)file;
}

const struct stasis_transfer_store_ops stasis_transfer_store_stripes = {
	.step_bytes = STASIS_TRANSFER_STEP_IN_MEMORY,
	.open = plain_open,
	.write = stasis_transfer_file_pwrite,
	.read = stasis_transfer_file_pread,
	.cut = stasis_transfer_file_cut,
	.close = plain_close,
};

const struct stasis_transfer_store_ops stasis_transfer_store_plain = {
	.step_bytes = STEP_BYTES,
	.open = plain_open,
	.write = stasis_transfer_file_pwrite,
	.read = stasis_transfer_file_pread,
	.cut = stasis_transfer_file_cut,
	.close = plain_close,
};

/* O_DIRECT is put on the caller's descriptor for the time of the transfer: no path is opened twice. */
static int direct_open(struct stasis_transfer_file *file, uint64_t reserve_bytes,
		       struct stasis_error *err)
{
	int flags = fcntl(file->fd, F_GETFL);

	(void)reserve_bytes;
	if (flags < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open '%s' for direct I/O",
					 file->name);
	if (fcntl(file->fd, F_SETFL, flags | O_DIRECT) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open '%s' for direct I/O",
					 file->name);
	file->status_flags = flags;
	return 0;
}

static void direct_close(struct stasis_transfer_file *file)
{
	if (file->status_flags >= 0)
		(void)fcntl(file->fd, F_SETFL, file->status_flags);
	file->status_flags = -1;
}

const struct stasis_transfer_store_ops stasis_transfer_store_direct = {
	.step_bytes = STEP_BYTES_DIRECT,
	.open = direct_open,
	.write = stasis_transfer_file_pwrite,
	.read = stasis_transfer_file_pread,
	.cut = stasis_transfer_file_cut,
	.close = direct_close,
};
