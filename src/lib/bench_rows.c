/*
 * Which rows the benchmark has; see bench.h. The first rows of each place are the engine's defaults; the others
 * change one thing.
 */

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "lib/bench.h"

#define SAVE STASIS_TRANSFER_SAVE
#define LOAD STASIS_TRANSFER_LOAD
#define ON_TMPFS (1U << STASIS_LIB_BENCH_TMPFS)
#define ON_DISK (1U << STASIS_LIB_BENCH_DISK)
#define ON_MEMORY (1U << STASIS_LIB_BENCH_MEMORY)
#define EVERYWHERE (ON_TMPFS | ON_DISK | ON_MEMORY)

/* One thing that differs from the defaults, for some places and directions. */
struct variation {
	const char *label;
	unsigned int places;
	unsigned int directions;
	bool is_quick; /* one of the few that --quick keeps */
	uint64_t size_divisor;
	uint64_t chunk_bytes;
	uint32_t workers;
	uint32_t stripes;
	enum stasis_transfer_store store;
	uint32_t zero_percent;
	bool is_unverified;
};

/* clang-format off */
static const struct variation variations[] = {
	{"",               EVERYWHERE,          SAVE | LOAD, .is_quick = true},
	{"/zeros=100",     ON_TMPFS,            SAVE | LOAD, .is_quick = true, .zero_percent = 100},
	{"/zeros=50",      ON_TMPFS | ON_DISK,  SAVE | LOAD, .zero_percent = 50},
	{"/digests=off",   EVERYWHERE,          LOAD, .is_unverified = true},
	{"/size=1:64",     EVERYWHERE,          SAVE | LOAD, .size_divisor = 64},
	{"/size=1:16",     EVERYWHERE,          SAVE | LOAD, .size_divisor = 16},
	{"/size=1:4",      ON_TMPFS | ON_MEMORY, SAVE | LOAD, .size_divisor = 4},
	{"/chunk=256K",    EVERYWHERE,          SAVE | LOAD, .chunk_bytes = 256 << 10},
	{"/chunk=512K",    EVERYWHERE,          SAVE | LOAD, .chunk_bytes = 512 << 10},
	{"/chunk=1M",      EVERYWHERE,          SAVE | LOAD, .chunk_bytes = 1 << 20},
	{"/chunk=2M",      ON_TMPFS | ON_MEMORY, SAVE | LOAD, .chunk_bytes = 2 << 20},
	{"/chunk=8M",      ON_TMPFS | ON_MEMORY, SAVE | LOAD, .chunk_bytes = 8 << 20},
	{"/chunk=16M",     EVERYWHERE,          SAVE | LOAD, .chunk_bytes = 16 << 20},
	{"/workers=1",     EVERYWHERE,          SAVE | LOAD, .workers = 1},
	{"/workers=4",     EVERYWHERE,          SAVE | LOAD, .workers = 4},
	{"/workers=8",     ON_TMPFS | ON_MEMORY, SAVE | LOAD, .workers = 8},
	{"/workers=12",    ON_TMPFS | ON_MEMORY, SAVE | LOAD, .workers = 12},
	{"/store=stripes", ON_TMPFS,            SAVE | LOAD, .store = STASIS_TRANSFER_STORE_STRIPES},
	{"/store=mapping", ON_TMPFS,            SAVE | LOAD, .store = STASIS_TRANSFER_STORE_MAPPING},
	{"/store=plain",   ON_DISK,             SAVE | LOAD, .store = STASIS_TRANSFER_STORE_PLAIN},
	{"/store=direct",  ON_DISK,             SAVE | LOAD, .store = STASIS_TRANSFER_STORE_DIRECT},
	{"/stripes=1",     ON_TMPFS | ON_DISK,  SAVE | LOAD, .stripes = 1},
	{"/stripes=4",     ON_TMPFS | ON_DISK,  SAVE | LOAD, .stripes = 4},
	{"/stripes=8",     ON_TMPFS,            SAVE | LOAD, .stripes = 8},
};
/* clang-format on */

const char *stasis_lib_bench_place_name(enum stasis_lib_bench_place place)
{
	static const char *const names[] = {
		[STASIS_LIB_BENCH_TMPFS] = "tmpfs",
		[STASIS_LIB_BENCH_DISK] = "disk",
		[STASIS_LIB_BENCH_MEMORY] = "memory",
	};

	return names[place];
}

/* `patterns`: shell patterns with commas between them; NULL: everything. */
static bool name_is_wanted(const char *patterns, const char *name)
{
	const char *at = patterns;

	while (at && *at) {
		size_t bytes = strcspn(at, ",");
		char pattern[STASIS_LIB_BENCH_NAME_BYTES * 2];

		(void)snprintf(pattern, sizeof(pattern), "%.*s", (int)bytes, at);
		if (fnmatch(pattern, name, 0) == 0)
			return true;
		at += bytes + (at[bytes] == ',');
	}
	return !patterns;
}

static struct stasis_lib_bench_row row_of(const struct stasis_bench_options *options,
					  const struct variation *variation,
					  enum stasis_lib_bench_place place,
					  enum stasis_transfer_direction direction)
{
	uint64_t bytes =
		place == STASIS_LIB_BENCH_DISK ? options->disk_bytes : options->transfer_bytes;
	struct stasis_lib_bench_row row = {
		.place = place,
		.direction = direction,
		.store = variation->store,
		.bytes = variation->size_divisor ? bytes / variation->size_divisor : bytes,
		.chunk_bytes = variation->chunk_bytes,
		.workers = variation->workers,
		.stripes = variation->stripes,
		.zero_percent = variation->zero_percent,
		.is_unverified = variation->is_unverified,
	};

	if (row.bytes == 0)
		row.bytes = 1;
	(void)snprintf(row.name, sizeof(row.name), "%s/%s%s", direction == SAVE ? "save" : "load",
		       stasis_lib_bench_place_name(place), variation->label);
	return row;
}

static void place_add(const struct stasis_bench_options *options, enum stasis_lib_bench_place place,
		      struct stasis_lib_bench_rows *rows)
{
	static const enum stasis_transfer_direction directions[] = {SAVE, LOAD};

	for (size_t i = 0; i < ARRAY_COUNT(variations); i++) {
		const struct variation *variation = &variations[i];

		if (!(variation->places & 1U << place) ||
		    (options->is_quick && !variation->is_quick))
			continue;
		for (size_t d = 0; d < ARRAY_COUNT(directions); d++) {
			struct stasis_lib_bench_row row =
				row_of(options, variation, place, directions[d]);

			if ((variation->directions & directions[d]) &&
			    name_is_wanted(options->rows, row.name))
				rows->rows[rows->count++] = row;
		}
	}
}

int stasis_lib_bench_rows_make(const struct stasis_bench_options *options,
			       struct stasis_lib_bench_rows *ret_rows, struct stasis_error *err)
{
	_Static_assert(ARRAY_COUNT(variations) * 2 * 3 <= STASIS_LIB_BENCH_ROWS_MAX,
		       "room for every variation in every place, both ways");
	ret_rows->count = 0;
	place_add(options, STASIS_LIB_BENCH_TMPFS, ret_rows);
	place_add(options, STASIS_LIB_BENCH_MEMORY, ret_rows);
	if (options->disk_dir)
		place_add(options, STASIS_LIB_BENCH_DISK, ret_rows);
	if (ret_rows->count == 0)
		return stasis_fail(
			err, STASIS_USAGE, "bench: no row matches '%s'%s",
			options->rows ? options->rows : "",
			options->disk_dir ? "" : "; rows of the disk need a directory for them");
	return 0;
}
