#ifndef STASIS_IMAGE_IMAGE_H
#define STASIS_IMAGE_IMAGE_H

/*
 * Images: directories that hold a capture, and exist only when complete.
 *
 * The writer builds `IMAGE.partial-<random>` beside the final place and publishes it by a rename; the
 * reader validates an image wholly before anything else is touched, and keeps open what it has checked.
 * Neither moves device bytes: the transfer engine does, with the descriptors and chunk arrays it is lent
 * here. No CUDA. One thread at a time an object. docs/format.md is the truth about the files.
 *
 *     capture   writer_open → gpu_add, process_add, option_set → extent_add → (bytes are moved)
 *               → shared_set, where memory is shared → seal → stage → (targets confirmed CHECKPOINTED) → phase_add → publish → close
 *     restore   open → check_gpus → (digests) → check_views → (bytes are moved) → close
 *
 * The reader refuses with STASIS_BAD_IMAGE, the writer with STASIS_REFUSED: only its caller knows the state
 * of the targets, and raises the status with stasis_error_worsen.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/chunk.h"
#include "base/compiler.h"
#include "base/error.h"
#include "image/manifest.h"

/* ---- writing ---- */

struct stasis_image_writer;

/* What is known when a capture begins; kernel and time are filled in by the writer. */
struct stasis_image_origin {
	enum stasis_image_store store;
	const char *tool_version;
	const char *driver_version; /* NULL: unknown */
	uint32_t cuda_version;
	const struct stasis_id *capture_id; /* NULL: a random one */
};

/*
 * Makes the partial directory, 0700. Refused up front, each with its own line: `path` exists (a symbolic
 * link, a mount point, a directory, another file), its parent is missing, no directory or not writable,
 * the path is too long. Nothing is left behind on failure.
 */
NODISCARD int stasis_image_writer_open(const char *path, const struct stasis_image_origin *origin,
				       struct stasis_image_writer **ret_writer,
				       struct stasis_error *err);

/*
 * Releases the writer; NULL is allowed. An unpublished partial is removed, unless it was staged or kept:
 * it may then be the only copy of the device bytes, and only _abandon removes it.
 */
void stasis_image_writer_close(struct stasis_image_writer *writer);

static inline void cleanup_image_writer(struct stasis_image_writer **writer)
{
	stasis_image_writer_close(*writer);
	*writer = NULL;
}

/* Where the partial directory is, as a path; valid until the writer is closed. */
const char *stasis_image_writer_partial_path(const struct stasis_image_writer *writer);

/* Bytes that the file system can still take (statvfs). */
NODISCARD int stasis_image_writer_room(const struct stasis_image_writer *writer,
				       uint64_t *ret_free_bytes, struct stasis_error *err);

NODISCARD int stasis_image_writer_gpu_add(struct stasis_image_writer *writer,
					  const struct stasis_image_gpu *gpu,
					  struct stasis_error *err);

/*
 * Adds a target and writes it, durably, into the partial's owner record, so that gc leaves the partial
 * alone while that process is suspended. To be called before the target is touched.
 */
NODISCARD int stasis_image_writer_process_add(struct stasis_image_writer *writer,
					      const struct stasis_image_process *process,
					      uint32_t *ret_index, struct stasis_error *err);

/* Records an option of the capture, such as "chunk-bytes" = "4194304"; setting one again replaces it. */
NODISCARD int stasis_image_writer_option_set(struct stasis_image_writer *writer, const char *name,
					     const char *value, struct stasis_error *err);

/* Records what a phase took; may be called until publication. */
NODISCARD int stasis_image_writer_phase_add(struct stasis_image_writer *writer, const char *name,
					    uint64_t duration_ns, uint64_t bytes,
					    struct stasis_error *err);

enum stasis_image_reserve_state {
	STASIS_IMAGE_RESERVE_NONE,    /* there is none */
	STASIS_IMAGE_RESERVE_READY,   /* it can be taken over */
	STASIS_IMAGE_RESERVE_FOREIGN, /* another user's, or open to others: left alone */
	STASIS_IMAGE_RESERVE_DAMAGED, /* it is not what its record says: left alone */
};

struct stasis_image_reserve_info {
	enum stasis_image_reserve_state state;
	uint32_t number_end; /* their names are numbers below this */
	uint32_t file_count; /* that are left */
	uint64_t file_bytes;
	char why[160]; /* of FOREIGN and DAMAGED */
};

/*
 * Takes over the reserve that lies beside the image, if there is one: its files become the stripes of the
 * extents that are added, in memory mapped wholly. To be called before a target is paused. What is not used
 * goes back when the image is staged or abandoned. A reserve that cannot be used is left alone, is no error,
 * and *ret_info says why.
 */
void stasis_image_writer_reserve_take(struct stasis_image_writer *writer,
				      struct stasis_image_reserve_info *ret_info);

struct stasis_image_extent_plan {
	uint32_t process_index;
	struct stasis_id gpu_uuid;     /* of a GPU that was added */
	enum stasis_image_store store; /* CUSTOM in an image of that store; SHARED or HOST in any */
	uint64_t logical_bytes;
	uint64_t
		chunk_bytes; /* STASIS_CHUNK_BYTES_MIN to _MAX, a multiple of STASIS_STORED_ALIGNMENT */
	uint32_t stripe_count; /* 1 to STASIS_STRIPES_MAX */
};

/*
 * An extent while its bytes are moved. Whoever moves them fills `chunks` (zeroed at first) and writes the
 * stripe files as base/chunk.h says; sizes need not be rounded nor synced, seal does that.
 */
struct stasis_image_output {
	struct stasis_id id;
	const char *name; /* for messages: "gpu/P0-D0-custom" */
	uint64_t logical_bytes;
	uint64_t chunk_bytes;
	uint64_t chunk_count;
	struct stasis_chunk *chunks;
	uint32_t stripe_count;
	int stripe_fds[STASIS_STRIPES_MAX];           /* O_RDWR, owned by the writer */
	const char *stripe_names[STASIS_STRIPES_MAX]; /* for messages: "gpu/P0-D0-custom.0" */
	void *stripe_maps[STASIS_STRIPES_MAX];        /* of files from a reserve; else NULL */
	uint64_t stripe_map_bytes[STASIS_STRIPES_MAX];
};

/* Creates the stripe files. *ret_output lives as long as the writer. */
NODISCARD int stasis_image_writer_extent_add(struct stasis_image_writer *writer,
					     const struct stasis_image_extent_plan *plan,
					     struct stasis_image_output **ret_output,
					     struct stasis_error *err);

/*
 * Writes `text`, 1 to STASIS_IMAGE_SHARED_BYTES_MAX bytes, as shared.json, durably; again: in place of the earlier
 * one. A failure is final, as one of seal. To be called before seal. An image with extents of store SHARED or HOST cannot be staged without. What the
 * text says is the caller's to check.
 */
NODISCARD int stasis_image_writer_shared_set(struct stasis_image_writer *writer, const char *text,
					     size_t bytes, struct stasis_error *err);

/*
 * Checks the chunk arrays, sets the stripes' exact sizes, writes the sums and makes all of it durable.
 * An error is final: nothing written here is trusted any more, and publish refuses. The descriptors stay
 * usable for reading.
 */
NODISCARD int stasis_image_writer_seal(struct stasis_image_writer *writer,
				       struct stasis_error *err);

/* Writes the temporary manifest, durably: from here on the partial can be restored from. */
NODISCARD int stasis_image_writer_stage(struct stasis_image_writer *writer,
					struct stasis_error *err);

/*
 * Writes the final manifest, renames the partial to its final place and makes that durable. On failure
 * there is no image, and the partial is still there: restore from it, then _abandon; or _keep it.
 */
NODISCARD int stasis_image_writer_publish(struct stasis_image_writer *writer,
					  struct stasis_error *err);

/* Closes the stripes and removes the partial. */
NODISCARD int stasis_image_writer_abandon(struct stasis_image_writer *writer,
					  struct stasis_error *err);

/* Leaves the partial as the only copy, and says so behind the text of `err` (set by the caller). */
void stasis_image_writer_keep(struct stasis_image_writer *writer, struct stasis_error *err);

/* ---- reading ---- */

struct stasis_image;

struct stasis_image_open_options {
	bool is_trusted; /* accept other owners and writable by others (--trust) */
	bool is_partial; /* accept the partial directory of a capture that was staged */
};

/*
 * Validates everything but the chunks' digests, and touches nothing else: manifest, owner and mode of
 * directory and files, every file present with its exact size, no file too many, sums. `options` may be
 * NULL.
 */
NODISCARD int stasis_image_open(const char *path, const struct stasis_image_open_options *options,
				struct stasis_image **ret_image, struct stasis_error *err);
void stasis_image_close(struct stasis_image *image);

static inline void cleanup_image(struct stasis_image **image)
{
	stasis_image_close(*image);
	*image = NULL;
}

/* Valid until the image is closed. */
const struct stasis_image_manifest *stasis_image_manifest(const struct stasis_image *image);
const char *stasis_image_path(const struct stasis_image *image);

/* The text of shared.json with a NUL behind it, as long as the image is open; NULL: there is none. */
const char *stasis_image_shared(const struct stasis_image *image, size_t *ret_bytes);

/* An extent whose files have been checked; the descriptors are those that were checked. */
struct stasis_image_input {
	const struct stasis_image_extent *extent;
	const char *name; /* for messages: "gpu/P0-D0-custom" */
	uint64_t chunk_count;
	const struct stasis_chunk *chunks;
	int stripe_fds[STASIS_STRIPES_MAX]; /* O_RDONLY, owned by the image */
	const char *stripe_names[STASIS_STRIPES_MAX];
};

/* `index` as in the manifest's list of extents. */
const struct stasis_image_input *stasis_image_input(const struct stasis_image *image, size_t index);

/* The whole description as JSON, for `inspect --json`; the caller frees it. */
NODISCARD int stasis_image_describe(const struct stasis_image *image, char **ret_json,
				    struct stasis_error *err);

/* ---- what a restore compares; pure functions ---- */

/* A GPU of this machine, or a view that the driver gave, under the UUID that the image knows it by. */
struct stasis_image_view {
	struct stasis_id gpu_uuid;
	uint64_t bytes;
};

/* Every GPU that holds an extent must be among `gpus`, with at least as many bytes as the extents need. */
NODISCARD int stasis_image_check_gpus(const struct stasis_image_manifest *manifest,
				      const struct stasis_image_view *gpus, size_t gpu_count,
				      struct stasis_error *err);

/*
 * The views of a process must be exactly its extents of store CUSTOM: as many, no GPU twice, the same UUIDs, the same
 * sizes. On success ret_extents[i] is the index of the extent that belongs to views[i].
 */
NODISCARD int stasis_image_check_views(const struct stasis_image_manifest *manifest,
				       uint32_t process_index,
				       const struct stasis_image_view *views, size_t view_count,
				       size_t *ret_extents, struct stasis_error *err);

/* ---- reserves ---- */

struct stasis_image_reserve_plan {
	uint32_t file_count;
	uint64_t file_bytes; /* a multiple of STASIS_STORED_ALIGNMENT */
	/* Called now and then; false: give up. May be NULL. */
	bool (*progress)(void *data, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_data;
};

/*
 * Makes files in the directory `path` that the next capture into it takes over: allocated, and in memory
 * touched, too. A reserve that is there already is refused; a failure leaves nothing.
 */
NODISCARD int stasis_image_reserve_make(const char *path,
					const struct stasis_image_reserve_plan *plan,
					struct stasis_error *err);

/* What there is in the directory `path`. */
NODISCARD int stasis_image_reserve_look(const char *path,
					struct stasis_image_reserve_info *ret_info,
					struct stasis_error *err);

/* Gives the room back: removes a reserve that is ready or damaged. None: *ret_bytes is 0. */
NODISCARD int stasis_image_reserve_remove(const char *path, uint64_t *ret_bytes,
					  struct stasis_error *err);

/* "none", "ready", … */
const char *stasis_image_reserve_state_name(enum stasis_image_reserve_state state);

/* ---- partial directories left behind ---- */

enum stasis_image_partial_state {
	STASIS_IMAGE_PARTIAL_GARBAGE,   /* nobody needs it */
	STASIS_IMAGE_PARTIAL_RUNNING,   /* its capture runs in process `pid` */
	STASIS_IMAGE_PARTIAL_SUSPENDED, /* process `pid` is suspended: the only copy of its bytes */
	STASIS_IMAGE_PARTIAL_FOREIGN, /* of another boot, machine, container or user: cannot be judged */
	STASIS_IMAGE_PARTIAL_UNKNOWN, /* its owner record is missing or damaged */
};

struct stasis_image_partial {
	char name[256];
	enum stasis_image_partial_state state;
	pid_t pid;
	uint64_t bytes;   /* of its files */
	bool was_removed; /* else it is still there */
};

struct stasis_image_gc_options {
	bool is_dry_run;          /* list only */
	bool can_remove_unjudged; /* FOREIGN and UNKNOWN too; never RUNNING or SUSPENDED */
	/*
	 * Whether the process still lives with its GPU state suspended; must say true where it cannot know.
	 * NULL: every process of the same pid and start time counts as suspended.
	 */
	bool (*is_still_suspended)(void *context, pid_t pid, uint64_t start_ticks);
	void *context;
};

/*
 * Looks at every `*.partial-<random>` directly in the directory `path` and removes those that are garbage.
 * One that cannot be removed does not stop the others; the first such error is returned, with the list
 * filled all the same. The caller frees *ret_partials in either case (NULL where there are none).
 */
NODISCARD int stasis_image_gc(const char *path, const struct stasis_image_gc_options *options,
			      struct stasis_image_partial **ret_partials, size_t *ret_count,
			      struct stasis_error *err);

/* "garbage", "running", … */
const char *stasis_image_partial_state_name(enum stasis_image_partial_state state);

#endif
