#ifndef STASIS_BENCH_SWEEP_H
#define STASIS_BENCH_SWEEP_H

/*
 * What the two files of sweep share: settings, places and rows (sweep.c), and the limits that settings are held
 * against (sweep_limits.c).
 */

#include "base/copy.h"
#include "lib/bench.h"

#define ROUNDS_MAX 16
#define ROWS_MAX 512
#define CHUNK_BYTES_MIN STASIS_MIB
#define HUGE_BYTES (2 * STASIS_MIB)
#define LINK_SLOTS 32
#define SAVE STASIS_TRANSFER_SAVE
#define LOAD STASIS_TRANSFER_LOAD

enum { MEMORY, MEMORY_HUGE, TMPFS, TMPFS_HUGE, DISK, PLACES };

extern const char *const sweep_place_names[PLACES];

struct setting {
	const char *name;
	unsigned int saves; /* bits of places */
	unsigned int loads;
	uint64_t chunk_mib;
	uint32_t workers;
	uint32_t slots;
	uint32_t streams;
	uint32_t step_kib;
	bool is_huge;
	const char *copy;
};

#define M (1U << MEMORY)
#define MH (1U << MEMORY_HUGE)
#define T (1U << TMPFS)
#define TH (1U << TMPFS_HUGE)
#define D (1U << DISK)
#define ALL (M | MH | T | TH)

struct place {
	struct stasis_lib_bench_files files;
	bool is_there;
};

struct row {
	char name[96];
	uint64_t bytes;
	uint32_t count;
	double rates[ROUNDS_MAX]; /* GB/s */
};

struct sweep {
	struct stasis_lib_bench bench;
	struct stasis_bench_options options;
	const char *tmpfs_huge_dir;
	uint64_t seconds;
	uint64_t rounds;
	struct place places[PLACES];
	struct row rows[ROWS_MAX];
	size_t row_count;
};

NORETURN void sweep_give_up(const struct stasis_error *err);
void sweep_row_add(struct sweep *sweep, const char *name, uint64_t bytes, uint64_t ns);

/* Once a round: pinned copies alone; threads that copy and digest alone. */
void sweep_links_run(struct sweep *sweep);
void sweep_crews_run(struct sweep *sweep);

/* A copy that is wrong on this processor must not be measured. */
void sweep_kinds_check(void);

#endif
