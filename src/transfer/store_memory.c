/*
 * The stores that copy: into a shared mapping of a file, and into host memory reserved ahead; see store.h.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/copy.h"
#include "base/fault.h"
#include "base/number.h"
#include "transfer/store.h"

/* One copy at a time is at most this, so that a transfer that was stopped ends soon. */
#define STEP_BYTES (UINT64_C(4) << 20)

/* Not in the headers of older C libraries. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

typedef void copy_function(void *to, const void *from, size_t bytes);

/* Into the ring: the digest finds in the cache what this leaves there. */
static void copy_cached(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* Passes the fault point as one system call would: a short one moves less, an interrupted one nothing. */
static int copy_step(copy_function *copy, const char *point, uint8_t *to, const uint8_t *from,
		     size_t bytes, size_t *ret_count)
{
	size_t step = (size_t)stasis_min_u64(bytes, STEP_BYTES);
	int code = stasis_fault_point_io(point, &step);

	*ret_count = 0;
	if (code)
		return code == EINTR ? 0 : code;
	copy(to, from, step);
	*ret_count = step;
	return 0;
}

static int copy_all(copy_function *copy, const char *point, uint8_t *to, const uint8_t *from,
		    size_t bytes, const atomic_bool *stop)
{
	size_t moved = 0;

	while (moved < bytes) {
		size_t count = 0;
		int code = atomic_load_explicit(stop, memory_order_relaxed)
				   ? ECANCELED
				   : copy_step(copy, point, to + moved, from + moved, bytes - moved,
					       &count);

		if (code)
			return code;
		moved += count;
	}
	return 0;
}

/*
 * A saving file is mapped once, as far as it may grow; a page is touched only after it was allocated. Loads
 * need no mapping: pread is as fast, allocates no holes, and meets a file that was cut with an error.
 */
static int mapping_open(struct stasis_transfer_file *file, uint64_t reserve_bytes,
			struct stasis_error *err)
{
	void *base;

	if (!file->is_saving || reserve_bytes == 0 || file->is_lent)
		return 0;
	base = mmap(NULL, (size_t)reserve_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (base == MAP_FAILED)
		return stasis_fail_errno(err, STASIS_REFUSED, "map '%s'", file->name);
	file->base = base;
	file->mapped_bytes = reserve_bytes;
	return 0;
}

static void mapping_close(struct stasis_transfer_file *file)
{
	if (file->base && !file->is_lent)
		(void)munmap(file->base, (size_t)file->mapped_bytes);
	file->base = NULL;
	file->mapped_bytes = 0;
}

/* fallocate that goes on where it was interrupted. */
static int space_allocate(const char *point, int fd, uint64_t offset, uint64_t bytes)
{
	int code = stasis_fault_point(point);

	if (code && code != EINTR)
		return code;
	while (fallocate(fd, 0, (off_t)offset, (off_t)bytes) != 0) {
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

/*
 * Maps the pages in one go, which takes half the time of as many page faults, and turns what would be SIGBUS
 * into an error. Linux 5.14; an older kernel faults them in.
 */
static int mapping_populate(uint8_t *base, size_t bytes)
{
	while (madvise(base, bytes, MADV_POPULATE_WRITE) != 0) {
		if (errno == EINVAL)
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return errno == EFAULT ? EIO : errno;
	}
	return 0;
}

static int mapping_write(struct stasis_transfer_file *file, const uint8_t *buffer, size_t bytes,
			 uint64_t offset, const atomic_bool *stop)
{
	int code = 0;

	if (!file->is_resident) {
		code = space_allocate("transfer_allocate", file->fd, offset, bytes);
		if (!code)
			code = mapping_populate(file->base + offset, bytes);
	}
	if (code)
		return code;
	return copy_all(stasis_copy_streaming, "transfer_write", file->base + offset, buffer, bytes,
			stop);
}

const struct stasis_transfer_store_ops stasis_transfer_store_mapping = {
	.step_bytes = STASIS_TRANSFER_STEP_COPIED,
	.open = mapping_open,
	.write = mapping_write,
	.read = stasis_transfer_file_pread,
	.cut = stasis_transfer_file_cut,
	.close = mapping_close,
};

static int memory_write(struct stasis_transfer_file *file, const uint8_t *buffer, size_t bytes,
			uint64_t offset, const atomic_bool *stop)
{
	uint64_t end;

	if (!stasis_add_u64(offset, bytes, &end) || end > file->bytes)
		return ENOSPC;
	return copy_all(stasis_copy_streaming, "transfer_write", file->base + offset, buffer, bytes,
			stop);
}

static int memory_read(struct stasis_transfer_file *file, uint8_t *buffer, size_t bytes,
		       uint64_t offset, const atomic_bool *stop)
{
	uint64_t end;

	if (!stasis_add_u64(offset, bytes, &end) || end > file->bytes)
		return ENODATA;
	return copy_all(copy_cached, "transfer_read", buffer, file->base + offset, bytes, stop);
}

static int memory_open(struct stasis_transfer_file *file, uint64_t reserve_bytes,
		       struct stasis_error *err)
{
	if (file->is_saving && reserve_bytes > file->bytes)
		return stasis_fail(err, STASIS_REFUSED,
				   "extent '%s': it may need %llu bytes, but only %llu bytes of "
				   "host memory are reserved",
				   file->name, (unsigned long long)reserve_bytes,
				   (unsigned long long)file->bytes);
	return 0;
}

static void memory_close(struct stasis_transfer_file *file)
{
	/* The memory is the caller's. */
	(void)file;
}

const struct stasis_transfer_store_ops stasis_transfer_store_memory = {
	.step_bytes = STASIS_TRANSFER_STEP_COPIED,
	.open = memory_open,
	.write = memory_write,
	.read = memory_read,
	.close = memory_close,
};

/*
 * What the kernel says can be had without swapping. fallocate of a memfd knows no limit: asked for too much, it
 * takes all there is and leaves the rest to the OOM killer.
 */
static bool memory_available(uint64_t *ret_bytes)
{
	static const char key[] = "MemAvailable:";
	CLEANUP(fd) int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at;

	if (count < 0)
		return false;
	text[count] = '\0';
	at = strstr(text, key);
	if (!at)
		return false;
	*ret_bytes = strtoull(at + sizeof(key) - 1, NULL, 10) * STASIS_KIB;
	return true;
}

int stasis_transfer_memory_open(uint64_t bytes, struct stasis_transfer_memory *ret_memory,
				struct stasis_error *err)
{
	CLEANUP(fd) int fd = memfd_create("stasis-transfer", MFD_CLOEXEC);
	uint64_t available = 0;
	char text[32];
	char available_text[32];
	void *base;
	int code;

	(void)stasis_format_bytes(bytes, text, sizeof(text));
	if (bytes == 0)
		return stasis_fail(err, STASIS_REFUSED, "reserve host memory: no bytes");
	if (memory_available(&available) && bytes > available)
		return stasis_fail(
			err, STASIS_REFUSED, "reserve %s of host memory: only %s are available",
			text,
			stasis_format_bytes(available, available_text, sizeof(available_text)));
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "reserve %s of host memory", text);
	code = space_allocate("transfer_reserve", fd, 0, bytes);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "reserve %s of host memory",
					text);
	base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (base == MAP_FAILED)
		return stasis_fail_errno(err, STASIS_REFUSED, "map %s of host memory", text);
	*ret_memory = (struct stasis_transfer_memory){
		.fd = fd_steal(&fd),
		.bytes = bytes,
		.base = base,
	};
	return 0;
}

void stasis_transfer_memory_close(struct stasis_transfer_memory *memory)
{
	int saved = errno;

	if (memory->base)
		(void)munmap(memory->base, (size_t)memory->bytes);
	if (memory->fd >= 0)
		(void)close(memory->fd);
	*memory = (struct stasis_transfer_memory)STASIS_TRANSFER_MEMORY_EMPTY;
	errno = saved;
}
