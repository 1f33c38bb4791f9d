/*
 * See descriptors.h. A table by number, in chunks that are mapped when they are first needed and stay: the
 * child handler reads it, so it takes neither locks nor malloc.
 */

#include "interpose/descriptors.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* More numbers than Linux lets a process have (fs.nr_open at its default). */
#define CHUNK_COUNT 1024u
#define CHUNK_FDS 1024u

/* inode 0 is none: a slot that is empty. Written device first. */
struct slot {
	_Atomic(uint64_t) device;
	_Atomic(uint64_t) inode;
};

struct chunk {
	struct slot slots[CHUNK_FDS];
};

static _Atomic(struct chunk *) chunks[CHUNK_COUNT];

static struct slot *slot_find(int fd)
{
	struct chunk *chunk;

	if (fd < 0 || (uint32_t)fd >= CHUNK_COUNT * CHUNK_FDS)
		return NULL;
	chunk = atomic_load_explicit(&chunks[(uint32_t)fd / CHUNK_FDS], memory_order_acquire);
	return chunk ? &chunk->slots[(uint32_t)fd % CHUNK_FDS] : NULL;
}

static struct slot *slot_make(int fd)
{
	struct chunk *chunk;
	struct chunk *none = NULL;

	if (fd < 0 || (uint32_t)fd >= CHUNK_COUNT * CHUNK_FDS)
		return NULL;
	if (slot_find(fd))
		return slot_find(fd);
	chunk = mmap(NULL, sizeof(*chunk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (chunk == MAP_FAILED)
		return NULL;
	if (!atomic_compare_exchange_strong(&chunks[(uint32_t)fd / CHUNK_FDS], &none, chunk))
		(void)munmap(chunk, sizeof(*chunk));
	return slot_find(fd);
}

static bool is_same(const struct slot *slot, int fd)
{
	struct stat status;

	return slot && atomic_load(&slot->inode) != 0 && fstat(fd, &status) == 0 &&
	       status.st_ino == atomic_load(&slot->inode) &&
	       status.st_dev == atomic_load(&slot->device);
}

bool stasis_descriptors_add(int fd)
{
	int saved_errno = errno;
	struct slot *slot = slot_make(fd);
	struct stat status;
	bool is_added = fd < 0;

	if (slot && fstat(fd, &status) == 0) {
		atomic_store(&slot->device, status.st_dev);
		atomic_store(&slot->inode, status.st_ino);
		is_added = true;
	}
	errno = saved_errno;
	return is_added;
}

bool stasis_descriptors_is_ours(int fd)
{
	int saved_errno = errno;
	bool is_ours = is_same(slot_find(fd), fd);

	errno = saved_errno;
	return is_ours;
}

int stasis_descriptors_remove(int fd)
{
	struct slot *slot = slot_find(fd);

	if (slot)
		atomic_store(&slot->inode, 0);
	return fd;
}

void stasis_descriptors_close(int *fd)
{
	int saved_errno = errno;
	struct slot *slot = slot_find(*fd);
	bool is_strange = slot && atomic_load(&slot->inode) != 0 && !is_same(slot, *fd);

	/* Before it is closed: the number may be somebody else's the next instant. */
	(void)stasis_descriptors_remove(*fd);
	if (*fd >= 0 && !is_strange)
		(void)close(*fd);
	*fd = -1;
	errno = saved_errno;
}

static void chunk_close(struct chunk *chunk, int first_fd)
{
	for (uint32_t i = 0; i < CHUNK_FDS; i++) {
		int fd = first_fd + (int)i;

		if (is_same(&chunk->slots[i], fd))
			(void)close(fd);
		atomic_store(&chunk->slots[i].inode, 0);
	}
}

void stasis_descriptors_forked(void)
{
	int saved_errno = errno;

	for (uint32_t i = 0; i < CHUNK_COUNT; i++) {
		struct chunk *chunk = atomic_load(&chunks[i]);

		if (chunk)
			chunk_close(chunk, (int)(i * CHUNK_FDS));
	}
	errno = saved_errno;
}
