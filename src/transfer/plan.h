#ifndef STASIS_TRANSFER_PLAN_H
#define STASIS_TRANSFER_PLAN_H

/*
 * A plan made ready for workers: checked as a whole, its segments sorted by extent, its chunks numbered per
 * device. Built by the caller's thread, then only read, but for the counters from which workers take jobs.
 *
 *     segments of extent 0   | s0 | s1  | s2        | s3 |        in the order of the caller's plan
 *     chunks of extent 0     | c0     | c1     | c2     |c3|      a chunk may touch many segments,
 *     jobs of device 0       | 0      | 1      | 2      |3 | …    a segment many chunks
 *
 * What a plan needs grows with extents and segments, never with bytes.
 */

#include "transfer/codec.h"
#include "transfer/store.h"
#include "transfer/transfer.h"

struct stasis_transfer_extent_plan {
	const struct stasis_transfer_extent *extent;
	size_t index; /* in the caller's plan */
	size_t device_index;
	uint64_t first_job; /* among the jobs of its device */
	uint64_t chunk_count;
	size_t first_segment; /* in segments of the plan */
	size_t segment_count;
	struct stasis_digest zero_content; /* of a whole chunk of zeros */
	struct stasis_transfer_file_set files;
	const struct stasis_transfer_codec *codec; /* of a save; NULL: nothing is packed */
};

/* A segment and where it begins in its extent. */
struct stasis_transfer_piece {
	CUdeviceptr device_pointer;
	uint64_t bytes;
	uint64_t extent_offset;
};

struct stasis_transfer_device_plan {
	CUcontext context;
	int ordinal;
	uint64_t chunk_bytes; /* the largest of its extents */
	uint64_t job_count;
	atomic_uint_fast64_t next_job;
	size_t *extents; /* indices into the plan's extents, by first_job */
	size_t extent_count;
};

struct stasis_transfer_ready_plan {
	struct stasis_transfer_extent_plan *extents;
	size_t extent_count;
	struct stasis_transfer_piece *pieces; /* sorted by extent, then by offset */
	size_t piece_count;
	struct stasis_transfer_device_plan *devices;
	size_t device_count;
	size_t *device_extents; /* backs the devices' `extents` */
	uint64_t total_bytes;
	bool verify;
	bool is_ordered; /* the error of the first chunk wins, not the first error */
};

/* One chunk to be moved. */
struct stasis_transfer_job {
	struct stasis_transfer_extent_plan *extent_plan;
	uint64_t chunk_index;
	uint64_t extent_offset;
	uint64_t bytes;
	struct stasis_transfer_file *file;
	struct stasis_chunk *chunk;
	uint64_t order; /* of its errors, see stasis_transfer_control_fail */
};

/* Checks the plan; touches no file. The result is in place, to be released by _fini also on failure. */
NODISCARD int stasis_transfer_plan_init(struct stasis_transfer_ready_plan *ready,
					const struct stasis_transfer_plan *plan,
					struct stasis_error *err);

/* The same for extents alone, to be read with no device: one device plan, its jobs in order. */
NODISCARD int stasis_transfer_plan_init_files(struct stasis_transfer_ready_plan *ready,
					      const struct stasis_transfer_extent *extents,
					      size_t extent_count, struct stasis_error *err);
void stasis_transfer_plan_fini(struct stasis_transfer_ready_plan *ready);

/* Takes the device's next job; false: none is left. Any thread. */
bool stasis_transfer_plan_take(struct stasis_transfer_ready_plan *ready, size_t device_index,
			       struct stasis_transfer_job *ret_job);

/* The first of the pieces in which a job's bytes lie; the others follow it. */
const struct stasis_transfer_piece *
stasis_transfer_plan_piece(const struct stasis_transfer_ready_plan *ready,
			   const struct stasis_transfer_job *job);

/* Whether chunks are to be packed, or have to be unpacked. */
bool stasis_transfer_plan_is_packed(const struct stasis_transfer_ready_plan *ready);

/* The chunk `chunk_index` of an extent as a job. */
struct stasis_transfer_job stasis_transfer_job_of(struct stasis_transfer_extent_plan *extent_plan,
						  uint64_t chunk_index);

/*
 * What is wrong with a chunk's record, held against its file's size: all that a reader must know before it
 * trusts an offset. NULL: nothing.
 */
const char *stasis_transfer_chunk_fault(const struct stasis_transfer_job *job);

/* Damage at a job's chunk: for the result, and in words, as STASIS_BAD_IMAGE. */
struct stasis_transfer_failure stasis_transfer_damage_at(const struct stasis_transfer_job *job);
void stasis_transfer_damage_say(const struct stasis_transfer_job *job, const char *fault,
				struct stasis_error *err);

#endif
