#ifndef STASIS_IMAGE_MANIFEST_H
#define STASIS_IMAGE_MANIFEST_H

/*
 * What an image says about itself: the contents of manifest.json as plain structures, filled by the writer
 * or by the decoder. docs/format.md has every field. Data only, no files. Any thread, one at a time a
 * manifest.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chunk.h"
#include "base/compiler.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"

#define STASIS_IMAGE_FORMAT_VERSION 1

/* Bounds that every decoder holds; far above what a machine has. */
#define STASIS_IMAGE_GPUS_MAX 256
#define STASIS_IMAGE_PROCESSES_MAX 1024
#define STASIS_IMAGE_EXTENTS_MAX 1024
#define STASIS_IMAGE_OPTIONS_MAX 256
#define STASIS_IMAGE_PHASES_MAX 256
#define STASIS_IMAGE_CHUNKS_MAX (UINT64_C(1) << 24)
#define STASIS_IMAGE_BYTES_MAX (UINT64_C(1) << 50)
#define STASIS_IMAGE_SHARED_BYTES_MAX (UINT64_C(256) << 20)

#define STASIS_IMAGE_TEXT_BYTES 128  /* names, versions, values */
#define STASIS_IMAGE_PATH_BYTES 4096 /* an executable's path */
#define STASIS_IMAGE_STEM_BYTES 48   /* "P0-D0-custom" */

/*
 * Who moved the private device bytes: an image is CUSTOM or NATIVE (the driver, into the memory of the
 * processes). An extent is never NATIVE, and where it is SHARED or HOST it holds what processes share.
 */
enum stasis_image_store {
	STASIS_IMAGE_STORE_CUSTOM,
	STASIS_IMAGE_STORE_NATIVE,
	STASIS_IMAGE_STORE_SHARED, /* device memory */
	STASIS_IMAGE_STORE_HOST,   /* host memory of NUMA nodes; the GPU is the one that moved it */
};

/* A GPU that the processes saw. */
struct stasis_image_gpu {
	struct stasis_id uuid;
	char name[STASIS_IMAGE_TEXT_BYTES];
	char pci_bus_id[STASIS_IMAGE_TEXT_BYTES];
	uint32_t ordinal;
	uint32_t capability_major;
	uint32_t capability_minor;
	uint64_t bytes;
};

/* A process; its number in the image (the P of file names) is its index. */
struct stasis_image_process {
	int32_t pid;
	uint64_t start_ticks;
	char executable[STASIS_IMAGE_PATH_BYTES];
	bool has_participant; /* false: without the interposer */
	struct stasis_id participant;
};

/* The bytes of one process on one GPU in one store; of what is shared, those that the process saves. */
struct stasis_image_extent {
	struct stasis_id id;
	uint32_t process_index;
	uint32_t gpu_index; /* in the manifest's list: the D of file names */
	enum stasis_image_store store;
	uint64_t logical_bytes;
	uint64_t stored_bytes; /* of all stripe files together */
	uint64_t chunk_bytes;
	uint32_t stripe_count;
	uint64_t stripe_bytes[STASIS_STRIPES_MAX]; /* exact size of each file */
	uint64_t sums_bytes;
	struct stasis_digest sums_digest; /* of the whole sums file */
};

struct stasis_image_option {
	char name[STASIS_IMAGE_TEXT_BYTES];
	char value[STASIS_IMAGE_TEXT_BYTES];
};

struct stasis_image_phase {
	char name[STASIS_IMAGE_TEXT_BYTES];
	uint64_t duration_ns;
	uint64_t bytes;
};

/* The file shared.json. */
struct stasis_image_shared_file {
	uint64_t bytes; /* 0: there is none */
	struct stasis_digest digest;
};

struct stasis_image_manifest {
	struct stasis_id capture_id; /* random, of this capture */
	enum stasis_image_store store;
	char tool_version[STASIS_IMAGE_TEXT_BYTES];
	char created[STASIS_IMAGE_TEXT_BYTES]; /* UTC, "2026-01-31T12:00:00Z" */
	char kernel[STASIS_IMAGE_TEXT_BYTES];
	char driver_version[STASIS_IMAGE_TEXT_BYTES]; /* "580.159.04"; empty: unknown */
	uint32_t cuda_version;                        /* as cuDriverGetVersion says: 13040 */
	struct stasis_image_gpu *gpus;
	size_t gpu_count;
	struct stasis_image_process *processes;
	size_t process_count;
	struct stasis_image_extent *extents;
	size_t extent_count;
	struct stasis_image_option *options;
	size_t option_count;
	struct stasis_image_phase *phases;
	size_t phase_count;
	struct stasis_image_shared_file shared;
};

void stasis_image_manifest_fini(struct stasis_image_manifest *manifest);

static inline void cleanup_image_manifest(struct stasis_image_manifest *manifest)
{
	stasis_image_manifest_fini(manifest);
}

/* The text of manifest.json with its own digest in it; the caller frees it. */
NODISCARD int stasis_image_manifest_encode(const struct stasis_image_manifest *manifest,
					   char **ret_text, size_t *ret_bytes,
					   struct stasis_error *err);

/*
 * Reads a manifest whole or refuses it with STASIS_BAD_IMAGE: not JSON, a duplicate key, another version
 * (both named), a missing or unknown field, a value out of range, a name that is not the one expected,
 * two extents of one process, GPU and store, a digest that does not fit. The caller passes *ret_manifest to
 * stasis_image_manifest_fini. Opens nothing.
 */
NODISCARD int stasis_image_manifest_decode(const char *text, size_t bytes,
					   struct stasis_image_manifest *ret_manifest,
					   struct stasis_error *err);

/*
 * Where in a manifest's text the 32 digits of its digest stand, and the digest that belongs there: that of
 * the text with '0' for each of them. False: the text does not begin as a manifest does.
 */
NODISCARD bool stasis_image_manifest_digest(const char *text, size_t bytes, size_t *ret_offset,
					    struct stasis_digest *ret_digest);

/* "custom", "native", "shared", "host". */
const char *stasis_image_store_name(enum stasis_image_store store);

/* The common part of an extent's file names, "P0-D0-custom"; returns `text`. */
const char *stasis_image_extent_stem(const struct stasis_image_extent *extent,
				     char text[STASIS_IMAGE_STEM_BYTES]);

/* False: there is none. */
NODISCARD bool stasis_image_gpu_find(const struct stasis_image_manifest *manifest,
				     const struct stasis_id *uuid, uint32_t *ret_index);

#endif
