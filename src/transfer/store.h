#ifndef STASIS_TRANSFER_STORE_H
#define STASIS_TRANSFER_STORE_H

/*
 * The file side: stripe files or host memory behind one small interface. A store moves whole, aligned runs of
 * bytes and knows nothing of chunks, digests or devices. What each is for:
 *
 *     stripes   tmpfs and other memory file systems: pread and pwrite; the writers of a file take turns on its
 *               inode, so that several files are needed for speed
 *     mapping   tmpfs, where it is asked for: saves by memcpy into a shared mapping. Space is allocated before a
 *               page is touched, so that a full file system is an error and not SIGBUS; loads by pread
 *     direct    block-backed file systems that say so: O_DIRECT
 *     plain     all other file systems, over the network or in user space: pread and pwrite
 *     memory    the memfd of struct stasis_transfer_memory: memcpy
 */

#include "transfer/control.h"
#include "transfer/transfer.h"

#define STASIS_TRANSFER_STEP_IN_MEMORY (256 << 10)
#define STASIS_TRANSFER_STEP_COPIED (64 << 10)

struct stasis_transfer_store_ops;

/* One stripe, opened for one transfer. */
struct stasis_transfer_file {
	const char *name;     /* borrowed */
	int fd;               /* borrowed; -1 for memory */
	int status_flags;     /* to be put back; -1: unchanged */
	atomic_uint halvings; /* of what one call moves, after calls that took long */
	bool is_saving;
	uint64_t bytes; /* the file's size when it was opened */
	uint8_t *base;  /* of a mapping or of host memory */
	uint64_t mapped_bytes;
	bool is_lent;     /* the mapping is the caller's */
	bool is_resident; /* all of it is allocated and touched */
	/* Where the next stored chunk goes. It orders nothing else: relaxed. */
	atomic_uint_fast64_t cursor;
};

struct stasis_transfer_store_ops {
	/* How much is best moved at once: in memory little, so that it is digested while it is in the cache. */
	size_t step_bytes;
	/* Makes a file ready whose name, descriptor and size are known. A save takes up to reserve_bytes. */
	int (*open)(struct stasis_transfer_file *file, uint64_t reserve_bytes,
		    struct stasis_error *err);
	/*
	 * Moves all `bytes` (a multiple of STASIS_STORED_ALIGNMENT when writing) at an aligned offset, from or
	 * to an aligned buffer, which has room for a last whole block. Returns 0 or an errno: ENODATA where the
	 * file ends, ECANCELED where *stop became true.
	 */
	int (*write)(struct stasis_transfer_file *file, const uint8_t *buffer, size_t bytes,
		     uint64_t offset, const atomic_bool *stop);
	int (*read)(struct stasis_transfer_file *file, uint8_t *buffer, size_t bytes,
		    uint64_t offset, const atomic_bool *stop);
	/* Keeps the first `bytes`; NULL: nothing to cut. Returns 0 or an errno. */
	int (*cut)(struct stasis_transfer_file *file, uint64_t bytes);
	/* Undoes open; accepts a file whose open failed. */
	void (*close)(struct stasis_transfer_file *file);
};

extern const struct stasis_transfer_store_ops stasis_transfer_store_stripes;
extern const struct stasis_transfer_store_ops stasis_transfer_store_mapping;
extern const struct stasis_transfer_store_ops stasis_transfer_store_direct;
extern const struct stasis_transfer_store_ops stasis_transfer_store_plain;
extern const struct stasis_transfer_store_ops stasis_transfer_store_memory;

/* The stripes of one extent. */
struct stasis_transfer_file_set {
	enum stasis_transfer_store store;
	const struct stasis_transfer_store_ops *ops; /* NULL: not open */
	struct stasis_transfer_file files[STASIS_STRIPES_MAX];
	uint32_t count;
};

/* `forced` is AUTO to choose. A file that is no regular file is refused. */
NODISCARD int stasis_transfer_files_open(struct stasis_transfer_file_set *files,
					 const struct stasis_transfer_extent *extent,
					 enum stasis_transfer_store forced, bool is_saving,
					 struct stasis_error *err);
void stasis_transfer_files_close(struct stasis_transfer_file_set *files);

/* After a save: cuts each file where its last chunk ends, and says where that is. */
NODISCARD int stasis_transfer_files_finish(struct stasis_transfer_file_set *files,
					   uint64_t stripe_bytes[STASIS_STRIPES_MAX],
					   struct stasis_error *err);

/* The pread and pwrite of all stores that use them: EINTR, short counts, stop. */
NODISCARD int stasis_transfer_file_pwrite(struct stasis_transfer_file *file, const uint8_t *buffer,
					  size_t bytes, uint64_t offset, const atomic_bool *stop);
NODISCARD int stasis_transfer_file_pread(struct stasis_transfer_file *file, uint8_t *buffer,
					 size_t bytes, uint64_t offset, const atomic_bool *stop);
NODISCARD int stasis_transfer_file_cut(struct stasis_transfer_file *file, uint64_t bytes);

#endif
