#ifndef STASIS_LIB_ROUND_H
#define STASIS_LIB_ROUND_H

/*
 * One round trip inside the worker: what it has made so far, and where the workload's bytes are. The
 * pieces that work on it: start.c (workload, driver, target), reserve.c (what is set aside before the
 * workload is paused), capture.c (RUNNING to a published image), return.c (back to RUNNING), damage.c, undo.c.
 */

#include <stdbool.h>
#include <stdint.h>

#include <stasis.h>

#include "base/compiler.h"
#include "base/error.h"
#include "driver/report.h"
#include "image/image.h"
#include "lib/damage.h"
#include "lib/hands.h"
#include "lib/roundtrip.h"
#include "lib/workload.h"
#include "transfer/codec.h"

/* Where the bytes of a CHECKPOINTED workload can be taken from. */
enum stasis_lib_copy {
	STASIS_LIB_COPY_NONE,    /* it is not CHECKPOINTED by us */
	STASIS_LIB_COPY_NATIVE,  /* its own host memory */
	STASIS_LIB_COPY_MEMORY,  /* the memory that was reserved */
	STASIS_LIB_COPY_PARTIAL, /* the unpublished image */
	STASIS_LIB_COPY_IMAGE,   /* the published one */
};

struct stasis_lib_round {
	const struct stasis_lib_work *work;
	const struct stasis_roundtrip_options *options;
	const struct stasis_lib_sink *sink;
	struct stasis_lib_hands hands;
	struct stasis_lib_workload workload;
	uint64_t seed; /* of the pattern */
	bool is_custom;
	bool is_simulated;
	struct stasis_gpu gpu; /* that the workload uses */

	struct stasis_contexts contexts;
	struct stasis_transfer_memory reserve; /* for a destination that fails; may stay empty */
	struct stasis_lib_source *reserved;    /* describes what lies in it */
	struct stasis_image_writer *writer;
	uint32_t
		reserve_file_count; /* of the user's reserve on the disk, taken over by the writer */
	uint64_t reserve_file_bytes;
	uint32_t process_index;

	enum stasis_lib_copy copy;
	bool has_tried_restore; /* the driver was asked; whatever it answered */
	bool has_compared;
	unsigned int extent_count;
	struct stasis_lib_damage damage;
	uint64_t extent_bytes;
	uint64_t mark_ns; /* when the phase that is timed began */
	uint64_t checkpoint_ns;
	uint64_t restore_ns;
};

/* The size of every chunk of this round. */
static inline uint64_t stasis_lib_round_chunk_bytes(const struct stasis_lib_round *round)
{
	return round->options->chunk_bytes ? round->options->chunk_bytes
					   : STASIS_CHUNK_BYTES_DEFAULT;
}

/* How chunks are compressed; NULL: they are not. */
static inline const struct stasis_transfer_codec *
stasis_lib_round_codec(const struct stasis_lib_round *round)
{
	return round->options->compress == STASIS_COMPRESS_LZ4    ? &stasis_transfer_codec_lz4
	       : round->options->compress == STASIS_COMPRESS_ZSTD ? &stasis_transfer_codec_zstd
								  : NULL;
}

NODISCARD int stasis_lib_round_prepare(struct stasis_lib_round *round, struct stasis_error *err);
NODISCARD int stasis_lib_round_start(struct stasis_lib_round *round, struct stasis_error *err);
NODISCARD int stasis_lib_round_reserve(struct stasis_lib_round *round, struct stasis_error *err);
NODISCARD int stasis_lib_round_capture(struct stasis_lib_round *round, struct stasis_error *err);
NODISCARD int stasis_lib_round_return(struct stasis_lib_round *round, struct stasis_error *err);

/*
 * After a failure: brings the workload back as far as is known to be safe, and says in `err`, which holds
 * the cause, what became of it.
 */
void stasis_lib_round_undo(struct stasis_lib_round *round, struct stasis_error *err);

#endif
