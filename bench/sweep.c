/*
 * Which settings serve the transfer engine best on this machine: one process, in which device memory and files
 * are made once, runs every setting by turns, round after round, until its time is over. Rows:
 *
 *     link/…   pinned copies alone, in the pattern of the engine: the limit
 *     cpu/…    threads that copy and digest without a device: what the processors can do
 *     save/…   load/…   the engine
 *     loop/…   for the disk: a plain loop with the same blocks
 *
 *     sweep [--bytes N] [--tmpfs DIR] [--tmpfs-huge DIR] [--disk DIR] [--disk-bytes N] [--seconds N] [--rounds N]
 *
 * Prints one line a row: GB/s of the median and of the best round, and all rounds.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/copy.h"
#include "base/digest.h"
#include "base/number.h"
#include "sweep.h"

const char *const sweep_place_names[PLACES] = {"memory", "memory-huge", "tmpfs", "tmpfs-huge",
					       "disk"};

/* clang-format off */
static const struct setting settings[] = {
	{"default",              ALL, ALL, 4, 16, 2, 0, 256, false, NULL},
	{"streams=1",            M | T, M | T, 4, 16, 2, 1, 256, false, NULL},
	{"streams=2",            M | T, M | T, 4, 16, 2, 2, 256, false, NULL},
	{"streams=4",            M | T, M | T, 4, 16, 2, 4, 256, false, NULL},
	{"slots=3",              M | T, M | T, 4, 16, 3, 0, 256, false, NULL},
	{"slots=4",              M | T, 0,     4, 16, 4, 0, 256, false, NULL},
	{"chunk=8M",             M | T, M | T, 8, 16, 2, 0, 256, false, NULL},
	{"chunk=2M",             M | T, 0,     2, 16, 2, 0, 256, false, NULL},
	{"workers=12",           M | T, T,     4, 12, 2, 0, 256, false, NULL},
	{"workers=14",           M | T, T,     4, 14, 2, 0, 256, false, NULL},
	{"ring=huge",            ALL, M | T,   4, 16, 2, 0, 256, true,  NULL},
	{"step=16K",             M | T, T,     4, 16, 2, 0, 16,  false, NULL},
	{"step=64K",             M | T, T,     4, 16, 2, 0, 64,  false, NULL},
	{"movsb,64K",            M | T, 0,     4, 16, 2, 0, 64,  false, "movsb"},
	{"avx2,16K",             M | T, 0,     4, 16, 2, 0, 16,  false, "stream-avx2"},
	{"avx512,16K",           ALL,   0,     4, 16, 2, 0, 16,  false, "stream-avx512"},
	{"avx512,64K",           M | T, 0,     4, 16, 2, 0, 64,  false, "stream-avx512"},
	{"avx512,256K",          M | T, 0,     4, 16, 2, 0, 256, false, "stream-avx512"},
	{"pages512,64K",         M | T, 0,     4, 16, 2, 0, 64,  false, "pages-avx512"},
	{"store512,64K",         M | T, 0,     4, 16, 2, 0, 64,  false, "store-avx512"},
	{"1st,huge",             M | T, M | T, 4, 16, 2, 1, 256, true,  NULL},
	{"1st,huge,avx512,16K",  ALL, ALL,     4, 16, 2, 1, 16,  true,  "stream-avx512"},
	{"1st,huge,avx512,64K",  M | T, T,     4, 16, 2, 1, 64,  true,  "stream-avx512"},
	{"2st,huge,avx512,16K",  ALL, T,       4, 16, 2, 2, 16,  true,  "stream-avx512"},
	{"1st,huge,pages512,64K", M | T, 0,    4, 16, 2, 1, 64,  true,  "pages-avx512"},
	{"1st,huge,avx512,16K,3sl", ALL, T,    4, 16, 3, 1, 16,  true,  "stream-avx512"},
	{"1st,huge,avx512,16K,14w", M | T, T,  4, 14, 2, 1, 16,  true,  "stream-avx512"},
	{"1st,huge,avx512,16K,8M", M | T, T,   8, 16, 2, 1, 16,  true,  "stream-avx512"},
	{"1st,huge,avx512,16K,2M,3sl", M | T, T, 2, 16, 3, 1, 16, true, "stream-avx512"},
	{"1st,huge,avx512,16K,1M,4sl", M | T, T, 1, 16, 4, 1, 16, true, "stream-avx512"},
	{"default",              D, D, 4, 16, 2, 0, 256, false, NULL},
	{"ring=huge",            D, D, 4, 16, 2, 0, 256, true,  NULL},
	{"chunk=8M",             D, D, 8, 16, 2, 0, 256, false, NULL},
	{"chunk=8M,huge",        D, D, 8, 16, 2, 0, 256, true,  NULL},
	{"chunk=16M,8w,huge",    D, D, 16, 8, 2, 0, 256, true,  NULL},
	{"chunk=2M,huge",        D, D, 2, 16, 2, 0, 256, true,  NULL},
};
/* clang-format on */

void sweep_give_up(const struct stasis_error *err)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "sweep: %s\n", err->text);
	_exit(1);
}

void sweep_row_add(struct sweep *sweep, const char *name, uint64_t bytes, uint64_t ns)
{
	struct row *row = sweep->rows;

	while (row < sweep->rows + sweep->row_count && strcmp(row->name, name) != 0)
		row++;
	if (row == sweep->rows + ROWS_MAX)
		return;
	if (row == sweep->rows + sweep->row_count) {
		sweep->row_count++;
		(void)snprintf(row->name, sizeof(row->name), "%s", name);
		row->bytes = bytes;
	}
	if (row->count == ROUNDS_MAX)
		return;
	row->rates[row->count++] = (double)bytes / (double)(ns ? ns : 1);
	/* At once, too: what is measured must not be lost with what fails later. */
	(void)printf("+ %s %.2f\n", name, row->rates[row->count - 1]);
}

/* ---- the engine ---- */

static void engine_run(struct sweep *sweep, struct stasis_transfer *engine,
		       const struct setting *setting, unsigned int index,
		       enum stasis_transfer_direction direction, bool is_counted)
{
	struct stasis_lib_bench_files *files = &sweep->places[index].files;
	struct stasis_transfer_extent extent;
	const struct stasis_transfer_segment segment = {
		.context = sweep->bench.contexts.items[0].context,
		.device_pointer = sweep->bench.device_memory,
		.bytes = files->bytes,
	};
	struct stasis_transfer_plan plan = {
		.extents = &extent,
		.extent_count = 1,
		.segments = &segment,
		.segment_count = 1,
		.verify = true,
	};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_transfer_result result;
	uint64_t start_ns;
	char name[96];

	files->chunk_bytes = setting->chunk_mib << 20;
	extent = stasis_lib_bench_files_extent(files, direction);
	if (stasis_lib_bench_files_chill(files, &err) != 0)
		sweep_give_up(&err);
	start_ns = stasis_clock_now_ns();
	if (stasis_transfer_run(engine, &plan, NULL, &result, &err) != 0 ||
	    (index == DISK && direction == SAVE &&
	     stasis_transfer_sync(&extent, 1, NULL, &result, &err) != 0))
		sweep_give_up(&err);
	(void)snprintf(name, sizeof(name), "%s/%s/%s", direction == SAVE ? "save" : "load",
		       sweep_place_names[index], setting->name);
	if (is_counted)
		sweep_row_add(sweep, name, files->bytes, stasis_clock_now_ns() - start_ns);
}

static void loop_run(struct sweep *sweep, const struct setting *setting,
		     enum stasis_transfer_direction direction)
{
	struct stasis_lib_bench_files *files = &sweep->places[DISK].files;
	const struct stasis_lib_bench_loop loop = {
		.bench = &sweep->bench,
		.files = files,
		.direction = direction,
		.threads = setting->workers,
	};
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t ns = 0;
	char name[96];

	if (stasis_lib_bench_files_chill(files, &err) != 0 ||
	    stasis_lib_bench_loop_run(&loop, &ns, &err) != 0)
		sweep_give_up(&err);
	(void)snprintf(name, sizeof(name), "loop/%s/disk/%s", direction == SAVE ? "save" : "load",
		       setting->name);
	sweep_row_add(sweep, name, files->bytes, ns);
}

static void place_run(struct sweep *sweep, struct stasis_transfer *engine,
		      const struct setting *setting, unsigned int place)
{
	bool is_saved = setting->saves & 1U << place;
	bool is_loaded = setting->loads & 1U << place;

	if (!sweep->places[place].is_there || (!is_saved && !is_loaded))
		return;
	/* A load needs a save of the same chunks. */
	engine_run(sweep, engine, setting, place, SAVE, is_saved);
	if (place == DISK)
		loop_run(sweep, setting, SAVE);
	if (place == DISK)
		engine_run(sweep, engine, setting, place, SAVE, false);
	if (is_loaded)
		engine_run(sweep, engine, setting, place, LOAD, true);
	if (place == DISK)
		loop_run(sweep, setting, LOAD);
}

static void setting_run(struct sweep *sweep, const struct setting *setting)
{
	const struct stasis_context *context = &sweep->bench.contexts.items[0];
	const struct stasis_copy_kind *copy =
		setting->copy ? stasis_copy_kind_find(setting->copy) : NULL;
	struct stasis_transfer_options options = {
		.driver = &sweep->bench.driver,
		.chunk_bytes = setting->chunk_mib << 20,
		.workers = setting->workers,
		.tuning = {setting->slots, setting->streams, (size_t)setting->step_kib << 10,
			   setting->is_huge, copy},
	};
	struct stasis_transfer *engine = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (setting->copy && (!copy || !copy->is_supported()))
		return;
	if (stasis_transfer_new(&options, &engine, &err) != 0 ||
	    stasis_transfer_prepare(engine, context->context, context->device.ordinal, &err) != 0)
		sweep_give_up(&err);
	for (unsigned int place = 0; place < PLACES; place++)
		place_run(sweep, engine, setting, place);
	stasis_transfer_free(engine);
}

/* Rounds of the settings for the disk, or of all others, while there is time for one more. */
static void settings_run(struct sweep *sweep, bool is_disk, uint64_t deadline_ns)
{
	uint64_t took_ns = 0;

	for (uint64_t round = 0; round < sweep->rounds; round++) {
		uint64_t start_ns = stasis_clock_now_ns();

		if (round > 0 && start_ns + took_ns > deadline_ns)
			break;
		if (!is_disk) {
			sweep_links_run(sweep);
			sweep_crews_run(sweep);
		}
		for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
			if (((settings[i].saves | settings[i].loads) == D) == is_disk)
				setting_run(sweep, &settings[i]);
		}
		took_ns = stasis_clock_now_ns() - start_ns;
		(void)printf("# round %llu of %s took %.1f s\n", (unsigned long long)round,
			     is_disk ? "disk" : "memory", stasis_seconds(took_ns));
		(void)fflush(stdout);
	}
}

/* ---- before and after ---- */

static void files_make(struct sweep *sweep, unsigned int index, const char *dir,
		       enum stasis_lib_bench_place kind, uint64_t bytes)
{
	struct stasis_lib_bench *bench = &sweep->bench;
	struct stasis_lib_bench_row row = {
		.place = kind, .bytes = bytes, .chunk_bytes = CHUNK_BYTES_MIN, .stripes = 16};
	struct place *place = &sweep->places[index];
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t start_ns = stasis_clock_now_ns();

	if (kind == STASIS_LIB_BENCH_DISK)
		sweep->options.disk_dir = dir;
	else if (dir)
		sweep->options.tmpfs_dir = dir;
	stasis_lib_bench_files_close(&bench->files);
	if (stasis_lib_bench_files_get(bench, &row, &err) != 0 ||
	    (kind == STASIS_LIB_BENCH_TMPFS &&
	     stasis_lib_bench_files_map(&bench->files, &err) != 0))
		sweep_give_up(&err);
	place->files = bench->files;
	place->is_there = true;
	memset(&bench->files, 0, sizeof(bench->files));
	(void)printf("# %s made in %.1f s\n", sweep_place_names[index],
		     stasis_seconds(stasis_clock_now_ns() - start_ns));
}

/* Anonymous memory on huge pages, where the system gives them. */
static void memory_make_huge(struct sweep *sweep)
{
	struct place *place = &sweep->places[MEMORY_HUGE];
	size_t bytes = (size_t)sweep->options.transfer_bytes;
	uint8_t *base = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t start_ns = stasis_clock_now_ns();

	if (base == MAP_FAILED)
		return;
	(void)madvise(base, bytes + HUGE_BYTES, MADV_HUGEPAGE);
	base += -(uintptr_t)base % HUGE_BYTES;
	for (size_t at = 0; at < bytes; at += 4096)
		base[at] = 1;
	place->files = (struct stasis_lib_bench_files){
		.is_open = true,
		.place = STASIS_LIB_BENCH_MEMORY,
		.bytes = bytes,
		.stripe_count = 1,
		.memory = {.fd = -1, .bytes = bytes, .base = base},
		.chunks = calloc(bytes / CHUNK_BYTES_MIN, sizeof(struct stasis_chunk)),
	};
	place->is_there = place->files.chunks != NULL;
	(void)printf("# %s made in %.1f s\n", sweep_place_names[MEMORY_HUGE],
		     stasis_seconds(stasis_clock_now_ns() - start_ns));
}

static int device_make(struct sweep *sweep, struct stasis_error *err)
{
	struct stasis_lib_bench *bench = &sweep->bench;
	struct stasis_device_list list;
	struct stasis_gpu_set set = {.count = 1};

	if (stasis_driver_open(NULL, &bench->driver, err) != 0 ||
	    stasis_driver_start(&bench->driver, err) != 0 ||
	    stasis_device_list_read(&bench->driver, &list, err) != 0)
		return -1;
	set.uuids = &list.devices[0].uuid;
	if (stasis_gpu_read(&bench->driver, &list.devices[0], &bench->gpu, err) != 0 ||
	    stasis_contexts_retain(&bench->driver, &set, &bench->contexts, err) != 0)
		return -1;
	if (bench->driver.cuCtxSetCurrent(bench->contexts.items[0].context) != CUDA_SUCCESS)
		return stasis_fail(err, STASIS_REFUSED, "make the context current");
	if (stasis_lib_bench_device_open(bench, sweep->options.transfer_bytes, err) != 0 ||
	    stasis_lib_bench_device_fill(bench, sweep->options.transfer_bytes, 0, err) != 0)
		return -1;
	return stasis_lib_bench_link_measure(bench, err);
}

static void file_show(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256] = "";

	if (file && fgets(line, sizeof(line), file))
		(void)printf("# %s: %s", path, line);
	if (file)
		(void)fclose(file);
}

static void machine_show(const struct sweep *sweep)
{
	struct utsname kernel;

	(void)uname(&kernel);
	(void)printf("# %s, CUDA %d, Linux %s, %ld processors, %llu bytes, digests: %s\n",
		     sweep->bench.gpu.name, sweep->bench.driver.cuda_version, kernel.release,
		     sysconf(_SC_NPROCESSORS_ONLN),
		     (unsigned long long)sweep->options.transfer_bytes, stasis_digest_kind_name());
	(void)printf("# pinned copy: %.2f GB/s from the device, %.2f to it\n",
		     (double)sweep->bench.save_bytes_per_second / 1e9,
		     (double)sweep->bench.load_bytes_per_second / 1e9);
	file_show("/sys/kernel/mm/transparent_hugepage/enabled");
	file_show("/sys/kernel/mm/transparent_hugepage/defrag");
	file_show("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
	file_show("/sys/devices/system/cpu/cpu0/cache/index2/size");
	file_show("/sys/devices/system/cpu/cpu0/cache/index3/size");
	file_show("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
}

static int compare_rates(const void *left, const void *right)
{
	const double *a = left;
	const double *b = right;

	return (*a > *b) - (*a < *b);
}

static void row_print(const struct sweep *sweep, const struct row *row)
{
	bool is_load = strncmp(row->name, "load", 4) == 0 || strstr(row->name, "/load") != NULL;
	uint64_t link =
		is_load ? sweep->bench.load_bytes_per_second : sweep->bench.save_bytes_per_second;
	double sorted[ROUNDS_MAX];
	double middle;

	memcpy(sorted, row->rates, sizeof(sorted));
	qsort(sorted, row->count, sizeof(sorted[0]), compare_rates);
	middle = sorted[(row->count - 1) / 2];
	(void)printf("%-46s %7.2f GB/s  %.3f of the link  best %7.2f  ", row->name, middle,
		     middle * 1e9 / (double)link, sorted[row->count - 1]);
	for (uint32_t i = 0; i < row->count; i++)
		(void)printf(" %.2f", row->rates[i]);
	(void)printf("\n");
}

static int option_take(struct sweep *sweep, const char *name, const char *value,
		       struct stasis_error *err)
{
	if (strcmp(name, "--bytes") == 0)
		return stasis_parse_bytes(name, value, &sweep->options.transfer_bytes, err);
	if (strcmp(name, "--disk-bytes") == 0)
		return stasis_parse_bytes(name, value, &sweep->options.disk_bytes, err);
	if (strcmp(name, "--seconds") == 0)
		return stasis_parse_u64(name, value, &sweep->seconds, err);
	if (strcmp(name, "--rounds") == 0)
		return stasis_parse_u64(name, value, &sweep->rounds, err);
	if (strcmp(name, "--tmpfs") == 0)
		sweep->options.tmpfs_dir = value;
	else if (strcmp(name, "--tmpfs-huge") == 0)
		sweep->tmpfs_huge_dir = value;
	else if (strcmp(name, "--disk") == 0)
		sweep->options.disk_dir = value;
	else
		return stasis_fail(err, STASIS_USAGE, "'%s' is not understood", name);
	return 0;
}

static void places_make(struct sweep *sweep)
{
	uint64_t bytes = sweep->options.transfer_bytes;

	files_make(sweep, MEMORY, NULL, STASIS_LIB_BENCH_MEMORY, bytes);
	memory_make_huge(sweep);
	files_make(sweep, TMPFS, sweep->options.tmpfs_dir, STASIS_LIB_BENCH_TMPFS, bytes);
	if (sweep->tmpfs_huge_dir)
		files_make(sweep, TMPFS_HUGE, sweep->tmpfs_huge_dir, STASIS_LIB_BENCH_TMPFS, bytes);
	if (sweep->options.disk_dir)
		files_make(sweep, DISK, sweep->options.disk_dir, STASIS_LIB_BENCH_DISK,
			   sweep->options.disk_bytes);
}

int main(int argc, char **argv)
{
	static struct sweep sweep;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t start_ns = stasis_clock_now_ns();
	uint64_t limit_ns;

	sweep.options = (struct stasis_bench_options)STASIS_BENCH_OPTIONS_INIT;
	sweep.options.disk_bytes = STASIS_GIB;
	sweep.bench.options = &sweep.options;
	sweep.seconds = 60;
	sweep.rounds = 5;
	for (int i = 1; i < argc; i += 2) {
		if (option_take(&sweep, argv[i], i + 1 < argc ? argv[i + 1] : "", &err) != 0)
			sweep_give_up(&err);
	}
	sweep.rounds = stasis_min_u64(sweep.rounds, ROUNDS_MAX);
	limit_ns = sweep.seconds * STASIS_NS_PER_S;
	if (device_make(&sweep, &err) != 0)
		sweep_give_up(&err);
	machine_show(&sweep);
	sweep_kinds_check();
	places_make(&sweep);
	settings_run(&sweep, false,
		     start_ns + (sweep.options.disk_dir ? limit_ns / 3 * 2 : limit_ns));
	if (sweep.options.disk_dir)
		settings_run(&sweep, true, start_ns + limit_ns);
	for (size_t i = 0; i < sweep.row_count; i++)
		row_print(&sweep, &sweep.rows[i]);
	(void)printf("# %.1f s in all\n", stasis_seconds(stasis_clock_now_ns() - start_ns));
	return 0;
}
