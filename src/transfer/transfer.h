#ifndef STASIS_TRANSFER_TRANSFER_H
#define STASIS_TRANSFER_TRANSFER_H

/*
 * The transfer engine: the one place where bytes move between device memory and stripe files or host
 * memory. It owns the pinned rings, the worker threads and their streams; it knows nothing of processes,
 * images or the checkpoint calls. One thread uses an engine at a time. Each GPU has a ring and workers of
 * its own, and its workers take chunks from one counter:
 *
 *     worker   slot 0   | link: chunk 7 | file: chunk 7 | link: chunk 9 | …
 *              slot 1   | file: chunk 6 | link: chunk 8 | file: chunk 8 | …
 *
 * so that the file side of one chunk overlaps the link side of the other. Use:
 *
 *     stasis_transfer_new(&options, &engine, err);
 *     stasis_transfer_prepare(engine, context, ordinal, err);     before anything is touched
 *     stasis_transfer_run(engine, &plan, &watch, &result, err);   as often as needed
 *     stasis_transfer_sync(extents, extent_count, &watch, &result, err);
 *     stasis_transfer_free(engine);
 *
 * The copies run on streams of the engine's own, which wait for no other stream, and are complete when run
 * returns: what the caller enqueued elsewhere before (a cuMemsetD8, too) must be complete when run is called.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chunk.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "driver/abi.h"

#define STASIS_TRANSFER_WORKERS_MAX 16
#define STASIS_TRANSFER_PINNED_BYTES_MAX (UINT64_C(256) << 20) /* a GPU */

struct stasis_transfer_codec;
struct stasis_driver;
struct stasis_transfer;

enum stasis_transfer_direction {
	STASIS_TRANSFER_SAVE = 1, /* device to files */
	STASIS_TRANSFER_LOAD = 2, /* files to device */
};

/* The file side, chosen by what the file system is, unless forced. */
enum stasis_transfer_store {
	STASIS_TRANSFER_STORE_AUTO,
	STASIS_TRANSFER_STORE_STRIPES, /* pread and pwrite, as many files as there are writers */
	STASIS_TRANSFER_STORE_MAPPING, /* copies into a shared mapping, allocated first */
	STASIS_TRANSFER_STORE_DIRECT,  /* O_DIRECT */
	STASIS_TRANSFER_STORE_PLAIN,   /* pread and pwrite through the page cache */
	STASIS_TRANSFER_STORE_MEMORY,  /* host memory reserved ahead: extents with `memory` */
};

/* Which side a transfer failed on: a failed destination can be redirected, a failed device cannot. */
enum stasis_transfer_side {
	STASIS_TRANSFER_NO_SIDE, /* not failed; or cancelled, timed out, or a plan that was refused */
	STASIS_TRANSFER_FILE_SIDE,
	STASIS_TRANSFER_DEVICE_SIDE,
};

/*
 * Host memory as a destination: a memfd, reserved, touched and mapped ahead, so that neither want of memory
 * nor first-touch cost meets a paused program. May be used for one extent after another.
 */
struct stasis_transfer_memory {
	int fd; /* -1: empty */
	uint64_t bytes;
	void *base;
};

#define STASIS_TRANSFER_MEMORY_EMPTY                                                               \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* `bytes` is stasis_transfer_reserve_bytes() of the extent; no memory: STASIS_REFUSED. */
NODISCARD int stasis_transfer_memory_open(uint64_t bytes, struct stasis_transfer_memory *ret_memory,
					  struct stasis_error *err);
void stasis_transfer_memory_close(struct stasis_transfer_memory *memory);

static inline void cleanup_transfer_memory(struct stasis_transfer_memory *memory)
{
	stasis_transfer_memory_close(memory);
}

/*
 * Where the bytes of an extent lie (base/chunk.h has the drawing). All pointers and descriptors are
 * borrowed. The descriptors are open for reading to load or verify, for reading and writing to save; what
 * they hold before a save is overwritten, and each file ends where its last stored chunk ends.
 */
struct stasis_transfer_extent {
	struct stasis_id id;
	enum stasis_transfer_direction direction;
	const char *name; /* for messages, such as "gpu/P1-D0-custom" */
	uint64_t bytes;   /* 0 is allowed */
	uint64_t
		chunk_bytes; /* a multiple of STASIS_STORED_ALIGNMENT, between base/chunk.h's limits */
	uint32_t stripe_count;
	int stripe_fds[STASIS_STRIPES_MAX];
	const char *stripe_names[STASIS_STRIPES_MAX]; /* for messages */
	/*
	 * Saving: shared mappings of the stripes, made ahead, all of them allocated and touched; used where
	 * each has stasis_transfer_reserve_bytes(). NULL: none.
	 */
	void *stripe_maps[STASIS_STRIPES_MAX];
	uint64_t stripe_map_bytes[STASIS_STRIPES_MAX];
	const struct stasis_transfer_memory *memory; /* not NULL: one stripe, in here; no fds */
	struct stasis_chunk
		*chunks; /* stasis_chunk_count() of them: written by save, read by load */
	uint64_t
		stripe_bytes[STASIS_STRIPES_MAX]; /* written by save: the final size of each file */
};

/*
 * A run of device memory. The segments of an extent, in the order in which they stand in the plan, lie behind
 * each other and cover it exactly; they are all of one device and may have any length, 0 too.
 */
struct stasis_transfer_segment {
	CUcontext context; /* the device pointer's; made current in the engine's threads */
	int device_ordinal;
	CUdeviceptr device_pointer;
	uint64_t bytes;
	size_t extent_index;
};

struct stasis_transfer_plan {
	struct stasis_transfer_extent *extents;
	size_t extent_count;
	const struct stasis_transfer_segment *segments;
	size_t segment_count;
	bool verify; /* loading: hold each chunk against its digest before it reaches the device */
};

struct stasis_transfer_options {
	const struct stasis_driver *driver;
	enum stasis_transfer_store store; /* AUTO unless forced */
	uint64_t chunk_bytes;  /* the largest that prepare makes room for; 0: the default */
	uint32_t workers;      /* a GPU; 0: by processors, at most WORKERS_MAX */
	uint64_t pinned_bytes; /* a GPU, at most and by default PINNED_BYTES_MAX */
	const struct stasis_transfer_codec
		*codec;    /* of saves; NULL: chunks are stored as they are */
	uint64_t drain_ns; /* how long a stopped transfer waits for copies in flight; 0: 5 s */
};

/* How one waits for a transfer. Zero-initialised but for the deadline: nothing is watched. */
struct stasis_transfer_watch {
	/*
	 * Called in the caller's thread, at most every 40 ms (so that one who looks for a cancellation here
	 * finds it in time), and once at the end of a success.
	 */
	void (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_data;
	const atomic_bool *cancel; /* set by anyone, a signal handler too; noticed within 100 ms */
	uint64_t deadline_ns;      /* STASIS_NO_DEADLINE: none */
};

/* What a transfer did; filled on failure too. */
struct stasis_transfer_result {
	enum stasis_transfer_side failed_side;
	bool is_cancelled;
	bool is_timed_out;
	bool has_damage; /* bytes are not those that were saved; the next three say where */
	size_t damage_extent_index;
	uint64_t damage_chunk_index;
	uint64_t damage_file_offset; /* 0 for a chunk flagged as zeros, which lies in no file */
	uint64_t logical_bytes;      /* of the extents that were moved or verified */
	uint64_t stored_bytes;       /* written to or read from files or host memory */
	uint64_t zero_bytes;
	uint32_t worker_count;            /* all GPUs together */
	uint64_t pinned_peak_bytes;       /* all GPUs together */
	uint64_t pinned_leaked_bytes;     /* left pinned: a device copy may still be using it */
	enum stasis_transfer_store store; /* of the first extent */
	uint64_t elapsed_ns;
};

NODISCARD int stasis_transfer_new(const struct stasis_transfer_options *options,
				  struct stasis_transfer **ret_transfer, struct stasis_error *err);

/* Ends the threads and frees the rings; NULL is accepted. Logs what had to be left pinned. */
void stasis_transfer_free(struct stasis_transfer *transfer);

/*
 * Makes ring, streams and threads for a device now, so that a run has nothing left to allocate. A run
 * prepares by itself what was not prepared.
 */
NODISCARD int stasis_transfer_prepare(struct stasis_transfer *transfer, CUcontext context,
				      int device_ordinal, struct stasis_error *err);

/*
 * Moves all extents of the plan. The first error wins, with file, offset and cause, and stops every worker.
 * Status: STASIS_BAD_IMAGE where files are too short, contradict their chunk table or fail their digest;
 * else STASIS_REFUSED, which the caller worsens where it knows that a target suffers.
 */
NODISCARD int stasis_transfer_run(struct stasis_transfer *transfer,
				  const struct stasis_transfer_plan *plan,
				  const struct stasis_transfer_watch *watch,
				  struct stasis_transfer_result *ret_result,
				  struct stasis_error *err);

/* fdatasync of all stripes in parallel. A failure is final: what was written may be lost. */
NODISCARD int stasis_transfer_sync(const struct stasis_transfer_extent *extents,
				   size_t extent_count, const struct stasis_transfer_watch *watch,
				   struct stasis_transfer_result *ret_result,
				   struct stasis_error *err);

/*
 * Reads all stripes and checks every digest, with no device. Names the first damage in the order of
 * extents and chunks, as STASIS_BAD_IMAGE. The extents' direction does not matter.
 */
NODISCARD int stasis_transfer_verify(const struct stasis_transfer_extent *extents,
				     size_t extent_count, const struct stasis_transfer_watch *watch,
				     struct stasis_transfer_result *ret_result,
				     struct stasis_error *err);

/* How many stripes serve an extent well: 1 where it is small. */
uint32_t stasis_transfer_stripe_count(uint64_t extent_bytes, uint64_t chunk_bytes);

/* What a stripe's file, or host memory (stripe 0 of 1), needs at most. */
uint64_t stasis_transfer_reserve_bytes(uint64_t extent_bytes, uint64_t chunk_bytes,
				       uint32_t stripe_count, uint32_t stripe_index);

/* What AUTO makes of an open file. */
NODISCARD int stasis_transfer_store_detect(int fd, const char *name,
					   enum stasis_transfer_store *ret_store,
					   struct stasis_error *err);

/* "stripes", "mapping", …; and back: false where there is no such store. */
const char *stasis_transfer_store_name(enum stasis_transfer_store store);
NODISCARD bool stasis_transfer_store_parse(const char *name, enum stasis_transfer_store *ret_store);

#endif
