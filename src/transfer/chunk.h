#ifndef STASIS_TRANSFER_CHUNK_H
#define STASIS_TRANSFER_CHUNK_H

/*
 * The file side of one chunk: zeros found, bytes digested, written, read, held against their digest. Runs in a
 * worker's thread and fails the transfer by itself.
 */

#include "transfer/control.h"
#include "transfer/plan.h"

/*
 * Digests the job's bytes in `buffer` and stores them, unless they are zeros; fills the job's chunk record.
 * The buffer, which has room for a last whole block, is padded with zeros. `packing` has room for a chunk where
 * chunks are to be packed.
 */
NODISCARD int stasis_transfer_chunk_save(struct stasis_transfer_control *control,
					 const struct stasis_transfer_job *job, uint8_t *buffer,
					 struct stasis_transfer_packing *packing);

/*
 * Reads the job's bytes into `buffer` and, where `verify`, holds them against their digest. A chunk of zeros is
 * not put into the buffer. Gives up where *stop becomes true. `packing` has room for a chunk where any is packed.
 */
NODISCARD int stasis_transfer_chunk_load(struct stasis_transfer_control *control,
					 const struct stasis_transfer_job *job, uint8_t *buffer,
					 struct stasis_transfer_packing *packing, bool verify,
					 const atomic_bool *stop);

#endif
