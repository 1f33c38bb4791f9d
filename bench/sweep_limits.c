/*
 * What the settings of sweep are held against: pinned copies alone, and processors that copy and digest alone.
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

/* ---- the link alone ---- */

struct link_pattern {
	uint32_t streams;
	uint64_t bytes; /* of one copy */
	uint8_t *ring;
	CUstream stream[16];
	CUevent event[LINK_SLOTS];
};

static CUresult link_copy(struct sweep *sweep, struct link_pattern *pattern, uint64_t index,
			  enum stasis_transfer_direction direction)
{
	const struct stasis_driver *driver = &sweep->bench.driver;
	CUstream stream = pattern->stream[index % pattern->streams];
	CUevent event = pattern->event[index % LINK_SLOTS];
	uint8_t *host = pattern->ring + index % LINK_SLOTS * pattern->bytes;
	CUdeviceptr device = sweep->bench.device_memory + index * pattern->bytes;
	CUresult result = index < LINK_SLOTS ? CUDA_SUCCESS : driver->cuEventSynchronize(event);

	if (result == CUDA_SUCCESS)
		result = direction == SAVE
				 ? driver->cuMemcpyDtoHAsync(host, device, (size_t)pattern->bytes,
							     stream)
				 : driver->cuMemcpyHtoDAsync(device, host, (size_t)pattern->bytes,
							     stream);
	return result == CUDA_SUCCESS ? driver->cuEventRecord(event, stream) : result;
}

static void link_run(struct sweep *sweep, struct link_pattern *pattern,
		     enum stasis_transfer_direction direction, bool is_counted)
{
	uint64_t bytes = sweep->options.transfer_bytes / pattern->bytes * pattern->bytes;
	uint64_t start_ns = stasis_clock_now_ns();
	struct stasis_error err = STASIS_ERROR_INIT;
	CUresult result = CUDA_SUCCESS;
	char name[96];

	for (uint64_t i = 0; i < bytes / pattern->bytes && result == CUDA_SUCCESS; i++)
		result = link_copy(sweep, pattern, i, direction);
	if (result == CUDA_SUCCESS)
		result = sweep->bench.driver.cuCtxSynchronize();
	if (result != CUDA_SUCCESS) {
		(void)stasis_fail_cuda(&err, STASIS_REFUSED, result, "copy");
		sweep_give_up(&err);
	}
	(void)snprintf(name, sizeof(name), "link/%s/%lluM,%ust",
		       direction == SAVE ? "save" : "load",
		       (unsigned long long)(pattern->bytes >> 20), pattern->streams);
	if (is_counted)
		sweep_row_add(sweep, name, bytes, stasis_clock_now_ns() - start_ns);
}

void sweep_links_run(struct sweep *sweep)
{
	static const struct {
		uint64_t mib;
		uint32_t streams;
	} patterns[] = {{4, 16}, {8, 16}, {4, 1}, {4, 2}, {8, 1}, {1, 1}};
	const struct stasis_driver *driver = &sweep->bench.driver;
	struct link_pattern pattern = {.streams = 1};
	void *ring = NULL;
	bool is_made = driver->cuMemHostAlloc(&ring, LINK_SLOTS * 8 * (size_t)STASIS_MIB, 0) ==
		       CUDA_SUCCESS;

	pattern.ring = ring;
	for (size_t i = 0; i < 16; i++)
		is_made = driver->cuStreamCreate(&pattern.stream[i], CU_STREAM_NON_BLOCKING) ==
				  CUDA_SUCCESS &&
			  is_made;
	for (size_t i = 0; i < LINK_SLOTS; i++)
		is_made = driver->cuEventCreate(&pattern.event[i], CU_EVENT_DISABLE_TIMING) ==
				  CUDA_SUCCESS &&
			  is_made;
	for (size_t i = 0; i < ARRAY_COUNT(patterns) && is_made; i++) {
		pattern.bytes = patterns[i].mib << 20;
		pattern.streams = patterns[i].streams;
		link_run(sweep, &pattern, SAVE, true);
		link_run(sweep, &pattern, LOAD, true);
	}
	for (size_t i = 0; i < LINK_SLOTS; i++)
		(void)driver->cuEventDestroy(pattern.event[i]);
	for (size_t i = 0; i < 16; i++)
		(void)driver->cuStreamDestroy(pattern.stream[i]);
	(void)driver->cuMemFreeHost(ring);
}

/* ---- the processors alone ---- */

struct crew {
	const struct place *place;
	const struct stasis_copy_kind *copy;
	size_t step_bytes;
	bool is_huge; /* the source */
	uint64_t bytes;
	atomic_uint_fast64_t next;
	atomic_int ready;
	atomic_bool go;
};

/* A block's place in memory or in the mapped files. */
static uint8_t *block_at(const struct place *place, uint64_t index)
{
	const struct stasis_lib_bench_files *files = &place->files;
	uint64_t bytes = STASIS_CHUNK_BYTES_DEFAULT;

	if (files->memory.base)
		return (uint8_t *)files->memory.base + index * bytes;
	return (uint8_t *)files->maps[index % files->stripe_count] +
	       index / files->stripe_count * bytes;
}

static void block_work(const struct crew *crew, uint64_t index, const uint8_t *from)
{
	uint8_t *to = block_at(crew->place, index);
	struct stasis_digest_stream stream;
	struct stasis_digest digest;

	stasis_digest_begin(&stream);
	for (size_t at = 0; at < STASIS_CHUNK_BYTES_DEFAULT; at += crew->step_bytes) {
		crew->copy->copy(to + at, from + at, crew->step_bytes);
		stasis_digest_update(&stream, from + at, crew->step_bytes);
	}
	digest = stasis_digest_end(&stream);
	/* Keeps the digest from being left out. */
	__asm__ volatile("" : : "m"(digest));
}

static void *crew_main(void *data)
{
	struct crew *crew = data;
	size_t bytes = 2 * STASIS_CHUNK_BYTES_DEFAULT;
	uint8_t *ring = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *from;

	if (ring == MAP_FAILED)
		abort();
	from = ring + -(uintptr_t)ring % HUGE_BYTES;
	(void)madvise(ring, bytes + HUGE_BYTES, crew->is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(from, 0x5a, bytes);
	atomic_fetch_add(&crew->ready, 1);
	while (!atomic_load(&crew->go))
		;
	for (uint64_t i = atomic_fetch_add(&crew->next, 1);
	     i < crew->bytes / STASIS_CHUNK_BYTES_DEFAULT; i = atomic_fetch_add(&crew->next, 1))
		block_work(crew, i, from + i % 2 * STASIS_CHUNK_BYTES_DEFAULT);
	(void)munmap(ring, bytes + HUGE_BYTES);
	return NULL;
}

static void crew_run(struct sweep *sweep, unsigned int place, const struct setting *setting)
{
	struct crew crew = {
		.place = &sweep->places[place],
		.copy = stasis_copy_kind_find(setting->copy),
		.step_bytes = (size_t)setting->step_kib << 10,
		.is_huge = setting->is_huge,
		.bytes = sweep->options.transfer_bytes,
	};
	pthread_t threads[STASIS_TRANSFER_WORKERS_MAX];
	int started = 0;
	uint64_t start_ns;
	char name[96];

	if (!crew.copy || !crew.copy->is_supported())
		return;
	while (started < (int)setting->workers &&
	       pthread_create(&threads[started], NULL, crew_main, &crew) == 0)
		started++;
	while (atomic_load(&crew.ready) < started)
		;
	start_ns = stasis_clock_now_ns();
	atomic_store(&crew.go, true);
	for (int i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	(void)snprintf(name, sizeof(name), "cpu/%s/%s", sweep_place_names[place], setting->name);
	sweep_row_add(sweep, name, crew.bytes, stasis_clock_now_ns() - start_ns);
}

void sweep_kinds_check(void)
{
	size_t count;
	const struct stasis_copy_kind *kinds = stasis_copy_kinds(&count);
	size_t bytes = 70000;
	uint8_t *from = malloc(bytes + 64);
	uint8_t *to = malloc(bytes + 64);

	for (size_t i = 0; from && i < bytes + 64; i++)
		from[i] = (uint8_t)(i * 131 >> 3);
	for (size_t i = 0; from && to && i < count * 64; i++) {
		const struct stasis_copy_kind *kind = &kinds[i / 64];

		if (!kind->is_supported())
			continue;
		memset(to, 0, bytes + 64);
		kind->copy(to + i % 64, from + i % 7, bytes - i);
		if (memcmp(to + i % 64, from + i % 7, bytes - i) != 0 || to[i % 64 + bytes - i] ||
		    (i % 64 && to[i % 64 - 1])) {
			(void)printf("# %s copies wrongly\n", kind->name);
			exit(1);
		}
	}
	free(from);
	free(to);
}

/* clang-format off */
static const struct setting crews[] = {
	{"memcpy,256K",      M | T | TH, 0, 4, 16, 2, 0, 256, false, "memcpy"},
	{"memcpy,16K",       M, 0, 4, 16, 2, 0, 16, false, "memcpy"},
	{"avx512,16K",       M | T, 0, 4, 16, 2, 0, 16, false, "stream-avx512"},
	{"avx512,16K,huge",  ALL, 0, 4, 16, 2, 0, 16, true, "stream-avx512"},
	{"pages512,64K,huge", M, 0, 4, 16, 2, 0, 64, true, "pages-avx512"},
	{"movsb,64K",        M, 0, 4, 16, 2, 0, 64, false, "movsb"},
};
/* clang-format on */

void sweep_crews_run(struct sweep *sweep)
{
	for (size_t i = 0; i < ARRAY_COUNT(crews); i++) {
		for (unsigned int place = 0; place < DISK; place++) {
			if (sweep->places[place].is_there && (crews[i].saves & 1U << place))
				crew_run(sweep, place, &crews[i]);
		}
	}
}
