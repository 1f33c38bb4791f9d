#ifndef SIM_STORAGE_H
#define SIM_STORAGE_H

/*
 * The bytes of simulated memory: sparse files in memory, read and written by pread and pwrite only.
 * Where a file has holes they stay holes, so that simulated memory costs what was written to it.
 * Functions that return int: 0, or an errno. No lock is needed.
 */

#include <stdint.h>

int sim_storage_open(const char *name, uint64_t bytes, int *ret_fd);
int sim_storage_read(int fd, uint64_t offset, void *buffer, uint64_t bytes);
int sim_storage_write(int fd, uint64_t offset, const void *buffer, uint64_t bytes);
/* Zeros, by punching whole pages out of the file. */
int sim_storage_zero(int fd, uint64_t offset, uint64_t bytes);
/* The 'element' (1, 2, 4 or 8 bytes) over and over; bytes is a multiple of its size. */
int sim_storage_fill(int fd, uint64_t offset, uint64_t bytes, uint64_t element,
		     unsigned element_bytes);
/* File to file; holes are kept. The two runs may lie in one file but must not overlap. */
int sim_storage_copy(int to_fd, uint64_t to_offset, int from_fd, uint64_t from_offset,
		     uint64_t bytes);
/* What freed memory holds: nothing but a mark at its beginning, all of it if it is small. */
void sim_storage_poison(int fd, uint64_t offset, uint64_t bytes);

/* To anonymous memory of the same length, and from it; only what holds data is touched. */
int sim_storage_save(int fd, uint64_t offset, uint64_t bytes, void **ret_saved);
int sim_storage_load(int fd, uint64_t offset, uint64_t bytes, const void *saved);

#endif
