#ifndef STASIS_BASE_FILE_H
#define STASIS_BASE_FILE_H

/*
 * Files: whole reads and writes that survive EINTR and short counts, files that appear whole or not at
 * all, and directories that are renamed without replacing anything. Every descriptor made here is
 * close-on-exec. Any thread.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * Moves all `bytes` at `offset`; loops over EINTR and short counts. Returns 0, or an errno; a read that
 * meets the end of the file returns ENODATA. `point` names the fault point that each call passes.
 */
NODISCARD int stasis_pread_all(int fd, void *buffer, size_t bytes, uint64_t offset,
			       const char *point);
NODISCARD int stasis_pwrite_all(int fd, const void *buffer, size_t bytes, uint64_t offset,
				const char *point);

/* As above at the file's own position, for pipes and sockets too. */
NODISCARD int stasis_read_all(int fd, void *buffer, size_t bytes);
NODISCARD int stasis_write_all(int fd, const void *buffer, size_t bytes);

/* Opens a regular file below `dir_fd` for reading; symlinks, FIFOs, directories are refused by name. */
NODISCARD int stasis_file_open_regular(int dir_fd, const char *name, enum stasis_status status,
				       int *ret_fd, uint64_t *ret_bytes, struct stasis_error *err);

/*
 * Reads a regular file whole, with a NUL added behind it; more than `max_bytes` is refused.
 * The caller frees *ret_text.
 */
NODISCARD int stasis_file_read(int dir_fd, const char *name, size_t max_bytes,
			       enum stasis_status status, char **ret_text, size_t *ret_bytes,
			       struct stasis_error *err);

/*
 * Writes a file that appears whole or not at all: temporary beside it, mode 0600, fsync, rename over
 * `name`, fsync of the directory.
 */
NODISCARD int stasis_file_write_whole(int dir_fd, const char *name, const void *data, size_t bytes,
				      struct stasis_error *err);

/*
 * Maps the first `bytes` of a file for reading and writing, with all its pages in place, so that nothing is
 * left to the moment of a copy. What the file has not allocated is allocated now. Returns 0 or an errno; the
 * caller unmaps.
 */
NODISCARD int stasis_file_map(int fd, uint64_t bytes, void **ret_base);

/* fsync of a directory, so that names in it last. */
NODISCARD int stasis_dir_sync(int dir_fd, const char *name, struct stasis_error *err);

/*
 * Renames a directory and replaces nothing: RENAME_NOREPLACE, or, where the file system has not got that
 * (EINVAL on NFS and some FUSE), mkdir of an empty 0700 directory and a rename onto it. EEXIST in
 * err->os_errno where the name is taken.
 */
NODISCARD int stasis_dir_rename_exclusive(int old_dir_fd, const char *old_name, int new_dir_fd,
					  const char *new_name, struct stasis_error *err);

/*
 * The next entry but "." and ".."; NULL at the end (errno 0) or after an error (errno set). One thread
 * may read a stream at a time.
 */
struct dirent *stasis_dir_next(DIR *dir);

/* Removes a directory and all in it; never follows symlinks. Missing is no error. */
NODISCARD int stasis_tree_remove(int dir_fd, const char *name, struct stasis_error *err);

/* Splits a path into the parent's descriptor (opened here, the caller closes) and the last name. */
NODISCARD int stasis_path_open_parent(const char *path, int *ret_dir_fd, char ret_name[256],
				      struct stasis_error *err);

#endif
