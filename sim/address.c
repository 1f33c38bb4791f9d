/*
 * The window of device addresses; see address.h. New reservations go up through the window and begin
 * again at its bottom only at its end, so that a stale pointer meets nothing for as long as possible.
 */

#include "address.h"

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct sim_table reservations;
static struct sim_table ranges;
static uint64_t next_start = SIM_WINDOW_START;

static void *cpu(uint64_t address)
{
	return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

CUresult sim_address_window_reserve(void)
{
	void *window =
		mmap(cpu(SIM_WINDOW_START), SIM_WINDOW_END - SIM_WINDOW_START, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (window == cpu(SIM_WINDOW_START))
		return CUDA_SUCCESS;
	return CUDA_ERROR_OPERATING_SYSTEM;
}

/* Over the range again what no right shows: nothing that the CPU can touch. */
static void hide(uint64_t start, uint64_t bytes)
{
	(void)mmap(cpu(start), bytes, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static int cpu_rights(const struct sim_range *range)
{
	if (sim_memory_is_multicast(range->memory))
		return PROT_NONE;
	if (sim_config()->is_host_visible)
		return PROT_READ | PROT_WRITE;
	if (range->host_rights == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return PROT_READ | PROT_WRITE;
	return range->host_rights == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_NONE;
}

CUresult sim_address_show(struct sim_range *range)
{
	int rights = cpu_rights(range);

	if (rights == PROT_NONE) {
		if (range->is_shown)
			hide(range->span.start, range->span.bytes);
		range->is_shown = false;
		return CUDA_SUCCESS;
	}
	if (mmap(cpu(range->span.start), range->span.bytes, rights, MAP_SHARED | MAP_FIXED,
		 range->memory->fd,
		 (off_t)(range->memory->offset + range->memory_offset)) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->is_shown = true;
	return CUDA_SUCCESS;
}

/* From 'from', the first free addresses; 0 if the window ends before. */
static uint64_t find_free(uint64_t from, uint64_t bytes, uint64_t alignment)
{
	uint64_t start = sim_round_up(from, alignment);

	for (size_t i = sim_table_first_behind(&reservations, start); i < reservations.count; i++) {
		if (reservations.items[i]->start >= start + bytes)
			break;
		start = sim_round_up(sim_span_end(reservations.items[i]), alignment);
	}
	return bytes <= SIM_WINDOW_END - SIM_WINDOW_START && start <= SIM_WINDOW_END - bytes ? start
											     : 0;
}

static bool hint_is_free(uint64_t hint, uint64_t bytes, uint64_t alignment)
{
	return sim_address_in_window(hint) && hint % alignment == 0 &&
	       bytes <= SIM_WINDOW_END - hint && !sim_table_overlaps(&reservations, hint, bytes);
}

CUresult sim_address_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, bool is_application,
			     uint64_t *ret_start)
{
	struct sim_reservation *reservation;
	uint64_t start = 0;

	if (hint_is_free(hint, bytes, alignment))
		start = hint;
	if (start == 0)
		start = find_free(next_start, bytes, alignment);
	if (start == 0)
		start = find_free(SIM_WINDOW_START, bytes, alignment);
	if (start == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reservation = malloc(sizeof(*reservation));
	if (reservation == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*reservation = (struct sim_reservation){
		.span = {.start = start, .bytes = bytes},
		.is_application = is_application,
	};
	if (!sim_table_insert(&reservations, &reservation->span)) {
		free(reservation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (start != hint)
		next_start = start + bytes;
	*ret_start = start;
	return CUDA_SUCCESS;
}

CUresult sim_address_free(uint64_t start, uint64_t bytes, bool is_application)
{
	struct sim_reservation *reservation = sim_table_find(&reservations, start);

	if (reservation == NULL || reservation->span.start != start ||
	    reservation->span.bytes != bytes || reservation->is_application != is_application)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_table_overlaps(&ranges, start, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sim_table_remove(&reservations, &reservation->span);
	free(reservation);
	return CUDA_SUCCESS;
}

const struct sim_reservation *sim_address_reservation(uint64_t address)
{
	return sim_table_find(&reservations, address);
}

CUresult sim_address_map(uint64_t start, uint64_t bytes, struct sim_memory *memory,
			 uint64_t memory_offset, bool is_vmm, struct sim_range **ret_range)
{
	const struct sim_reservation *reservation = sim_address_reservation(start);
	struct sim_range *range;

	if (reservation == NULL || bytes > sim_span_end(&reservation->span) - start ||
	    sim_table_overlaps(&ranges, start, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	range = calloc(1, sizeof(*range));
	if (range == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->span = (struct sim_span){.start = start, .bytes = bytes};
	range->memory = memory;
	range->memory_offset = memory_offset;
	range->is_vmm = is_vmm;
	if (!sim_table_insert(&ranges, &range->span)) {
		free(range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_memory_ref(memory);
	*ret_range = range;
	return CUDA_SUCCESS;
}

CUresult sim_address_whole(uint64_t start, uint64_t bytes, size_t *ret_first, size_t *ret_count)
{
	size_t first = sim_table_first_behind(&ranges, start);
	uint64_t at = start;
	size_t i;

	for (i = first; i < ranges.count && ranges.items[i]->start < start + bytes; i++) {
		if (ranges.items[i]->start != at)
			return CUDA_ERROR_INVALID_VALUE;
		at = sim_span_end(ranges.items[i]);
	}
	if (bytes == 0 || at != start + bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_first = first;
	*ret_count = i - first;
	return CUDA_SUCCESS;
}

/* How many ranges lie in [start, start + bytes); INVALID_VALUE if none, or if one is cut. */
static CUresult count_inside(uint64_t start, uint64_t bytes, size_t first, size_t *ret_count)
{
	size_t i;

	for (i = first; i < ranges.count && ranges.items[i]->start < start + bytes; i++)
		if (ranges.items[i]->start < start || sim_span_end(ranges.items[i]) > start + bytes)
			return CUDA_ERROR_INVALID_VALUE;
	*ret_count = i - first;
	return i > first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_address_unmap(uint64_t start, uint64_t bytes)
{
	size_t first = sim_table_first_behind(&ranges, start);
	size_t count = 0;
	CUresult result = count_inside(start, bytes, first, &count);

	if (result != CUDA_SUCCESS)
		return result;
	while (count-- > 0) {
		struct sim_range *range = sim_address_range_at(first);

		if (range->is_shown)
			hide(range->span.start, range->span.bytes);
		sim_table_remove(&ranges, &range->span);
		sim_memory_unref(range->memory);
		free(range);
	}
	return CUDA_SUCCESS;
}

CUresult sim_address_place(struct sim_memory *memory, struct sim_range **ret_range)
{
	uint64_t start = 0;
	CUresult result = sim_address_reserve(memory->bytes, SIM_GRANULARITY, 0, false, &start);

	if (result != CUDA_SUCCESS)
		return result;
	result = sim_address_map(start, memory->bytes, memory, 0, false, ret_range);
	if (result != CUDA_SUCCESS)
		(void)sim_address_free(start, memory->bytes, false);
	return result;
}

void sim_address_displace(uint64_t start)
{
	uint64_t bytes = sim_address_reservation(start)->span.bytes;

	(void)sim_address_unmap(start, bytes);
	(void)sim_address_free(start, bytes, false);
}

void sim_address_hide_all(void)
{
	for (size_t i = 0; i < ranges.count; i++) {
		struct sim_range *range = sim_address_range_at(i);

		if (range->is_shown)
			hide(range->span.start, range->span.bytes);
		range->is_shown = false;
	}
}

CUresult sim_address_show_all(void)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < ranges.count && result == CUDA_SUCCESS; i++)
		result = sim_address_show(sim_address_range_at(i));
	return result;
}

struct sim_range *sim_address_find(uint64_t address)
{
	return sim_table_find(&ranges, address);
}

size_t sim_address_range_count(void)
{
	return ranges.count;
}

struct sim_range *sim_address_range_at(size_t index)
{
	return (struct sim_range *)(void *)ranges.items[index];
}
