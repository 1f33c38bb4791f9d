/*
 * What a file system is decides how its files are read and written; see store.h. It is never found out by
 * trying: tmpfs accepts O_DIRECT though it means nothing there.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/compiler.h"
#include "base/log.h"
#include "transfer/store.h"

/* Linux 6.1 and newer; libc headers may be older than the kernel, so that it is read by its place. */
#define STATX_WANT_DIOALIGN 0x2000U
#define STATX_AT_DIO_MEMORY 0x98
#define STATX_AT_DIO_OFFSET 0x9c

#define MAGIC_XFS 0x58465342U
#define MAGIC_F2FS 0xf2f52010U

struct file_system {
	uint32_t magic;
	const char *name;
	enum stasis_transfer_store store;
};

/*
 * DIRECT only where the file says that it takes our alignment; PLAIN for all that is not listed. On tmpfs a
 * mapping is faster only where processors abound: pages that are mapped anew each time cost 0.4 s of processor
 * time a GB more than pwrite does.
 */
static const struct file_system file_systems[] = {
	{TMPFS_MAGIC, "tmpfs", STASIS_TRANSFER_STORE_STRIPES},
	{RAMFS_MAGIC, "ramfs", STASIS_TRANSFER_STORE_STRIPES},
	{EXT4_SUPER_MAGIC, "ext4", STASIS_TRANSFER_STORE_DIRECT},
	{MAGIC_XFS, "xfs", STASIS_TRANSFER_STORE_DIRECT},
	{MAGIC_F2FS, "f2fs", STASIS_TRANSFER_STORE_DIRECT},
};

static bool alignment_suits(uint32_t alignment)
{
	return alignment > 0 && STASIS_STORED_ALIGNMENT % alignment == 0;
}

static bool takes_direct(int fd)
{
	union {
		struct statx info;
		uint8_t bytes[256];
	} answer;
	uint32_t memory;
	uint32_t offset;

	_Static_assert(sizeof(struct statx) == 256, "the kernel's size");
	memset(&answer, 0, sizeof(answer));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_WANT_DIOALIGN, &answer.info) != 0 ||
	    !(answer.info.stx_mask & STATX_WANT_DIOALIGN))
		return false;
	memcpy(&memory, answer.bytes + STATX_AT_DIO_MEMORY, sizeof(memory));
	memcpy(&offset, answer.bytes + STATX_AT_DIO_OFFSET, sizeof(offset));
	return alignment_suits(memory) && alignment_suits(offset);
}

static const struct file_system *file_system_of(uint32_t magic)
{
	static const struct file_system other = {0, "another file system",
						 STASIS_TRANSFER_STORE_PLAIN};

	for (size_t i = 0; i < ARRAY_COUNT(file_systems); i++) {
		if (file_systems[i].magic == magic)
			return &file_systems[i];
	}
	return &other;
}

int stasis_transfer_store_detect(int fd, const char *name, enum stasis_transfer_store *ret_store,
				 struct stasis_error *err)
{
	const struct file_system *found;
	struct statfs info;

	if (fstatfs(fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "find the file system of '%s'", name);
	if ((uint32_t)info.f_type == HUGETLBFS_MAGIC)
		return stasis_fail(
			err, STASIS_REFUSED,
			"'%s' is on hugetlbfs, which has no files of odd length; use tmpfs", name);
	found = file_system_of((uint32_t)info.f_type);
	*ret_store = found->store;
	if (found->store == STASIS_TRANSFER_STORE_DIRECT && !takes_direct(fd)) {
		*ret_store = STASIS_TRANSFER_STORE_PLAIN;
		stasis_log_info("transfer: '%s': it is on %s, which takes no direct I/O here", name,
				found->name);
	} else {
		stasis_log_info("transfer: '%s': it is on %s (0x%x)", name, found->name,
				(unsigned int)info.f_type);
	}
	return 0;
}
