#ifndef STASIS_TESTS_TRANSFER_RIG_H
#define STASIS_TESTS_TRANSFER_RIG_H

/*
 * What the tests of the transfer engine share: a fake driver, an engine, and extents whose device memory is
 * filled with a pattern that can be told wrong. A rig counts threads, descriptors and pinned bytes when it is
 * made, and its end checks that none was left.
 */

#include "fake_device.h"
#include "transfer/transfer.h"

#define T_RIG_EXTENTS 4
#define T_RIG_SEGMENTS 4096
#define T_RIG_CHUNKS 4096
#define T_RIG_DEVICE_BYTES (UINT64_C(24) << 20)

struct t_rig {
	const struct stasis_driver *driver;
	struct stasis_transfer *engine;
	struct stasis_transfer_plan plan;
	struct stasis_transfer_result result;
	struct stasis_transfer_extent extents[T_RIG_EXTENTS];
	struct stasis_transfer_segment segments[T_RIG_SEGMENTS];
	struct stasis_chunk chunks[T_RIG_EXTENTS][T_RIG_CHUNKS];
	char names[T_RIG_EXTENTS][STASIS_STRIPES_MAX][16];
	size_t thread_count;
	size_t fd_count;
	uint64_t leak_bytes; /* expected to be left pinned */
};

struct t_shape {
	uint64_t bytes;
	uint64_t chunk_bytes;
	uint32_t stripe_count;
	uint32_t segment_count;
	uint32_t zero_every;   /* the n-th chunks are zeros; 0: none */
	uint32_t packed_every; /* likewise, chunks that repeat themselves */
	int ordinal;
};

/* Forty chunks of 64 KiB and 13 bytes, each fourth all zeros, in three stripes and five segments. */
extern const struct t_shape t_shape_plain;

/* Options but for the driver; NULL: small chunks, three workers. */
struct t_rig *t_rig_new(const struct stasis_transfer_options *options);
void t_rig_free(struct t_rig *rig);

/*
 * Adds an extent of device memory filled with its pattern, to be saved into memfds, or, where `dir_fd` is not
 * -1, into new files there. Returns its index.
 */
size_t t_rig_extent_add(struct t_rig *rig, const struct t_shape *shape, int dir_fd);

/* All extents' direction from now on. */
void t_rig_direct(struct t_rig *rig, enum stasis_transfer_direction direction);

/* 0 or -1, as the engine's; the result is in rig->result. */
int t_rig_run(struct t_rig *rig, const struct stasis_transfer_watch *watch,
	      struct stasis_error *err);

/* Saves, verifies, spoils, loads and compares all extents. */
void t_rig_round_trip(struct t_rig *rig);

/* Overwrites the extents' device memory with what is neither pattern nor zeros. */
void t_rig_spoil(struct t_rig *rig);

/* Whether an extent's device memory holds its pattern. */
bool t_rig_holds(const struct t_rig *rig, size_t extent_index);

/* Whether device memory of a chunk is as t_rig_spoil left it. */
bool t_rig_is_spoilt(const struct t_rig *rig, size_t extent_index, uint64_t chunk_index);

/* Changes one stored byte of a chunk that is not zeros. */
void t_rig_damage(struct t_rig *rig, size_t extent_index, uint64_t chunk_index);

size_t t_count_threads(void);

/* Fails the test unless there are this many threads, soon. */
void t_wait_for_threads(size_t count);
size_t t_count_fds(void);

#endif
