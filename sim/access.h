#ifndef SIM_ACCESS_H
#define SIM_ACCESS_H

/*
 * From an address to the bytes behind it, with the rights of whoever asks: the one place where the
 * engine touches memory. Device memory is read and written through the files behind it, host memory
 * directly.
 */

#include "context.h"
#include "memory.h"

/* A copy engine reaches legacy memory of every device; a kernel needs peer access for that. */
enum sim_access_by { SIM_ACCESS_BY_COPY, SIM_ACCESS_BY_KERNEL };

/* A run of bytes that lies in one place: in a file, or (memory NULL) at a host address. */
struct sim_piece {
	struct sim_memory *memory; /* referenced while the piece is in use */
	int fd;
	uint64_t offset;
	unsigned char *host;
	uint64_t bytes;
};

/*
 * Whether an argument names memory that the context's device can reach throughout: mapped with the
 * rights for it, within one allocation if it is one, or host memory that is pinned or registered.
 * INVALID_VALUE otherwise. Core lock held.
 */
CUresult sim_access_check(const struct sim_context *context, uint64_t address, uint64_t bytes,
			  bool write);
/* True for host memory that the driver does not know: copies of it are not asynchronous. */
bool sim_access_is_pageable(uint64_t address);

/* The piece at the address, at most 'bytes' long; ILLEGAL_ADDRESS. Without the core lock. */
CUresult sim_access_begin(const struct sim_context *context, enum sim_access_by by,
			  uint64_t address, uint64_t bytes, bool write,
			  struct sim_piece *ret_piece);
void sim_access_end(struct sim_piece *piece);

/* On a piece of device memory: every member of a multicast object. 0, or an errno. */
NODISCARD int sim_piece_read(const struct sim_piece *piece, void *buffer);
NODISCARD int sim_piece_write(const struct sim_piece *piece, const void *buffer);
/* What a failure of one means to a program. */
CUresult sim_piece_result(int error);

/* Whole runs, across pieces. Four and eight aligned bytes of host memory are moved at once. */
CUresult sim_access_read(const struct sim_context *context, enum sim_access_by by, uint64_t address,
			 void *buffer, uint64_t bytes);
CUresult sim_access_write(const struct sim_context *context, enum sim_access_by by,
			  uint64_t address, const void *buffer, uint64_t bytes);
CUresult sim_access_fill(const struct sim_context *context, enum sim_access_by by, uint64_t address,
			 uint64_t bytes, uint64_t element, unsigned element_bytes);

#endif
