/* Sparse files as memory; see storage.h. */

#include "storage.h"

#include "compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ull
#define PIECE (256ull << 10)
#define POISON 0xa5
#define POISON_WHOLE (64ull << 10)

static void cleanup_piece(unsigned char **piece)
{
	free(*piece);
}

int sim_storage_open(const char *name, uint64_t bytes, int *ret_fd)
{
	CLEANUP(fd) int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return errno;
	*ret_fd = fd_steal(&fd);
	return 0;
}

int sim_storage_read(int fd, uint64_t offset, void *buffer, uint64_t bytes)
{
	char *at = buffer;

	while (bytes > 0) {
		ssize_t got = pread(fd, at, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? errno : EIO;
		at += got;
		offset += (uint64_t)got;
		bytes -= (uint64_t)got;
	}
	return 0;
}

int sim_storage_write(int fd, uint64_t offset, const void *buffer, uint64_t bytes)
{
	const char *at = buffer;

	while (bytes > 0) {
		ssize_t put = pwrite(fd, at, bytes, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? errno : EIO;
		at += put;
		offset += (uint64_t)put;
		bytes -= (uint64_t)put;
	}
	return 0;
}

int sim_storage_zero(int fd, uint64_t offset, uint64_t bytes)
{
	/* The kernel zeroes the parts of pages at both ends by itself. */
	if (bytes == 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				    (off_t)bytes) == 0)
		return 0;
	return errno;
}

int sim_storage_fill(int fd, uint64_t offset, uint64_t bytes, uint64_t element,
		     unsigned element_bytes)
{
	CLEANUP(piece) unsigned char *piece = NULL;
	uint64_t piece_bytes = bytes < PIECE ? bytes : PIECE;
	int error = 0;

	if (element == 0)
		return sim_storage_zero(fd, offset, bytes);
	piece = malloc(piece_bytes);
	if (piece == NULL)
		return ENOMEM;
	for (uint64_t at = 0; at < piece_bytes; at += element_bytes)
		memcpy(piece + at, &element, element_bytes);
	for (uint64_t at = 0; at < bytes && error == 0; at += piece_bytes) {
		uint64_t left = bytes - at;

		error = sim_storage_write(fd, offset + at, piece,
					  left < piece_bytes ? left : piece_bytes);
	}
	return error;
}

/* The next run of data in [offset, end); false if there is none. */
static bool next_data(int fd, uint64_t offset, uint64_t end, uint64_t *ret_start, uint64_t *ret_end)
{
	off_t start = lseek(fd, (off_t)offset, SEEK_DATA);
	off_t stop;

	if (start < 0 || (uint64_t)start >= end)
		return false;
	stop = lseek(fd, start, SEEK_HOLE);
	*ret_start = (uint64_t)start;
	*ret_end = stop < 0 || (uint64_t)stop > end ? end : (uint64_t)stop;
	return true;
}

static int copy_data(int to_fd, uint64_t to_offset, int from_fd, uint64_t from_offset,
		     uint64_t bytes)
{
	CLEANUP(piece) unsigned char *piece = malloc(PIECE);
	int error = piece != NULL ? 0 : ENOMEM;

	for (uint64_t at = 0; at < bytes && error == 0; at += PIECE) {
		uint64_t length = bytes - at < PIECE ? bytes - at : PIECE;

		error = sim_storage_read(from_fd, from_offset + at, piece, length);
		if (error == 0)
			error = sim_storage_write(to_fd, to_offset + at, piece, length);
	}
	return error;
}

int sim_storage_copy(int to_fd, uint64_t to_offset, int from_fd, uint64_t from_offset,
		     uint64_t bytes)
{
	uint64_t done = 0;
	uint64_t start;
	uint64_t end;
	int error = 0;

	while (error == 0 &&
	       next_data(from_fd, from_offset + done, from_offset + bytes, &start, &end)) {
		uint64_t hole = start - (from_offset + done);

		error = sim_storage_zero(to_fd, to_offset + done, hole);
		done += hole;
		if (error == 0)
			error = copy_data(to_fd, to_offset + done, from_fd, start, end - start);
		done += end - start;
	}
	if (error == 0)
		error = sim_storage_zero(to_fd, to_offset + done, bytes - done);
	return error;
}

void sim_storage_poison(int fd, uint64_t offset, uint64_t bytes)
{
	static const unsigned char poison[POISON_WHOLE] = {[0 ... POISON_WHOLE - 1] = POISON};

	(void)sim_storage_zero(fd, offset, bytes);
	(void)sim_storage_write(fd, offset, poison, bytes < POISON_WHOLE ? bytes : POISON_WHOLE);
}

int sim_storage_save(int fd, uint64_t offset, uint64_t bytes, void **ret_saved)
{
	char *saved = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t at = offset;
	uint64_t start;
	uint64_t end;

	if (saved == MAP_FAILED)
		return errno;
	while (next_data(fd, at, offset + bytes, &start, &end)) {
		int error = sim_storage_read(fd, start, saved + (start - offset), end - start);

		if (error != 0) {
			(void)munmap(saved, bytes);
			return error;
		}
		at = end;
	}
	*ret_saved = saved;
	return 0;
}

static bool all_zero(const char *bytes, uint64_t count)
{
	return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* What is all zeros is not stored: reading untouched anonymous pages costs no memory. */
int sim_storage_load(int fd, uint64_t offset, uint64_t bytes, const void *saved)
{
	const char *from = saved;
	int error = 0;

	for (uint64_t at = 0; at < bytes && error == 0; at += PIECE) {
		uint64_t length = bytes - at < PIECE ? bytes - at : PIECE;

		if (!all_zero(from + at, length))
			error = sim_storage_write(fd, offset + at, from + at, length);
	}
	return error;
}
