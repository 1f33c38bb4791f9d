#ifndef STASIS_LIB_BENCH_H
#define STASIS_LIB_BENCH_H

/*
 * The benchmark of the transfer engine. A row is one transfer measured several times, beside limits measured
 * in the same run: how fast this GPU copies pinned memory, and how fast a plain loop of ours moves the same
 * blocks to and from the same files with as many threads. The pieces: bench_rows.c (which rows there are),
 * bench_link.c (device memory and the link), bench_files.c (files, host memory), bench_loop.c (the plain loop),
 * bench_run.c (one row), bench.c (all of it). One thread, beside those of engine and loop.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stasis.h>

#include "base/compiler.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "driver/report.h"
#include "lib/library.h"
#include "transfer/transfer.h"

#define STASIS_LIB_BENCH_ROWS_MAX 144
#define STASIS_LIB_BENCH_RUNS_MAX 100
#define STASIS_LIB_BENCH_NAME_BYTES 48

/* Device memory is filled block by block with one random block, which the checks know. */
#define STASIS_LIB_BENCH_BLOCK_BYTES (UINT64_C(16) << 20)

enum stasis_lib_bench_place {
	STASIS_LIB_BENCH_TMPFS,
	STASIS_LIB_BENCH_DISK,
	STASIS_LIB_BENCH_MEMORY,
};

/* What is measured; 0 is the engine's own choice. */
struct stasis_lib_bench_row {
	char name[STASIS_LIB_BENCH_NAME_BYTES]; /* "load/tmpfs/chunk=1M" */
	enum stasis_lib_bench_place place;
	enum stasis_transfer_direction direction;
	enum stasis_transfer_store store;
	uint64_t bytes;
	uint64_t chunk_bytes;
	uint32_t workers;
	uint32_t stripes;
	uint32_t zero_percent; /* of the blocks of device memory */
	bool is_unverified;    /* a load that compares no digests */
};

struct stasis_lib_bench_rows {
	struct stasis_lib_bench_row rows[STASIS_LIB_BENCH_ROWS_MAX];
	size_t count;
};

/* Where the bytes of an extent go. The files have no names any more, so that nothing can stay behind. */
struct stasis_lib_bench_files {
	bool is_open;
	enum stasis_lib_bench_place place;
	uint64_t bytes; /* of device memory that they hold */
	uint64_t chunk_bytes;
	uint32_t stripe_count;
	bool is_direct; /* the engine reads and writes around the page cache */
	int fds[STASIS_STRIPES_MAX];
	char names[STASIS_STRIPES_MAX][32];
	void *maps[STASIS_STRIPES_MAX]; /* as of a reserve that a capture has taken over */
	uint64_t map_bytes[STASIS_STRIPES_MAX];
	struct stasis_transfer_memory memory;
	struct stasis_chunk *chunks;
};

struct stasis_lib_bench {
	const struct stasis_bench_options *options;
	const struct stasis_lib_sink *sink;
	struct stasis_driver driver;
	bool is_simulated;
	struct stasis_contexts contexts;
	struct stasis_gpu gpu;
	CUdeviceptr device_memory;
	uint64_t device_bytes;
	uint64_t filled_bytes; /* of device memory, with so many zeros */
	uint32_t zero_percent;
	uint8_t *pattern;                    /* one block */
	uint64_t save_bytes_per_second;      /* of the link */
	uint64_t load_bytes_per_second;      /* likewise */
	struct stasis_lib_bench_files files; /* kept from row to row where they serve again */
	const char *row_name;                /* for progress */
	atomic_bool is_cancelled;
	size_t row_count;
};

/* ---- bench_rows.c ---- */

/* Every row that the options ask for. */
NODISCARD int stasis_lib_bench_rows_make(const struct stasis_bench_options *options,
					 struct stasis_lib_bench_rows *ret_rows,
					 struct stasis_error *err);
const char *stasis_lib_bench_place_name(enum stasis_lib_bench_place place);

/* ---- bench_link.c ---- */

/* Device memory of so many bytes, and the block that fills it. */
NODISCARD int stasis_lib_bench_device_open(struct stasis_lib_bench *bench, uint64_t bytes,
					   struct stasis_error *err);
void stasis_lib_bench_device_close(struct stasis_lib_bench *bench);

/* Fills the first bytes of device memory; of each hundred blocks so many are zeros, spread evenly. */
NODISCARD int stasis_lib_bench_device_fill(struct stasis_lib_bench *bench, uint64_t bytes,
					   uint32_t zero_percent, struct stasis_error *err);

/* Overwrites samples of it, so that a load that does nothing is found out; and compares them with what was saved. */
NODISCARD int stasis_lib_bench_device_spoil(struct stasis_lib_bench *bench, uint64_t bytes,
					    struct stasis_error *err);
NODISCARD int stasis_lib_bench_device_check(struct stasis_lib_bench *bench, uint64_t bytes,
					    struct stasis_error *err);

/* How fast pinned memory is copied, both ways. */
NODISCARD int stasis_lib_bench_link_measure(struct stasis_lib_bench *bench,
					    struct stasis_error *err);

/* ---- bench_files.c ---- */

/* Opens what a row needs, or keeps what is open where it serves. */
NODISCARD int stasis_lib_bench_files_get(struct stasis_lib_bench *bench,
					 const struct stasis_lib_bench_row *row,
					 struct stasis_error *err);
void stasis_lib_bench_files_close(struct stasis_lib_bench_files *files);

/* Maps files that are resident, as is done with a reserve before a program is paused. */
NODISCARD int stasis_lib_bench_files_map(struct stasis_lib_bench_files *files,
					 struct stasis_error *err);
void stasis_lib_bench_files_unmap(struct stasis_lib_bench_files *files);

/* Brings the files to the disk and out of the page cache. Nothing to do for other places. */
NODISCARD int stasis_lib_bench_files_chill(const struct stasis_lib_bench_files *files,
					   struct stasis_error *err);
struct stasis_transfer_extent
stasis_lib_bench_files_extent(const struct stasis_lib_bench_files *files,
			      enum stasis_transfer_direction direction);

/* ---- bench_loop.c ---- */

struct stasis_lib_bench_loop {
	struct stasis_lib_bench *bench;
	const struct stasis_lib_bench_files *files;
	enum stasis_transfer_direction direction;
	uint32_t threads;
	bool is_full; /* copies from or to the device and digests, too: all that an engine must do */
};

/* Moves all blocks once and says how long that took, to the disk where there is one. */
NODISCARD int stasis_lib_bench_loop_run(const struct stasis_lib_bench_loop *loop, uint64_t *ret_ns,
					struct stasis_error *err);

/* ---- bench_run.c ---- */

NODISCARD int stasis_lib_bench_row_run(struct stasis_lib_bench *bench,
				       const struct stasis_lib_bench_row *row,
				       struct stasis_error *err);

/* True where an end was asked for. */
bool stasis_lib_bench_is_cancelled(struct stasis_lib_bench *bench);

#endif
