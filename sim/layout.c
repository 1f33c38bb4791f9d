#include "layout.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "context.h"
#include "memory.h"
#include "storage.h"

#define BLOB_PARTS 4
#define OBJECT_PARTS 4
#define BLOCK_WORDS 8192

/* A file that pieces lie in. */
enum item_kind {
	ITEM_HEAP,
	ITEM_OBJECT,
	ITEM_BLOB,
};

struct item {
	enum item_kind kind;
	int ordinal;
	struct sim_memory *memory; /* of an object */
	uint64_t seed;             /* of a blob */
	int fd;                    /* of a blob, while open */
};

struct piece {
	size_t item;
	uint64_t offset; /* in the item's file */
	uint64_t bytes;
};

struct extent {
	int ordinal;
	struct piece *pieces;
	size_t piece_count;
	size_t piece_capacity;
};

struct sim_layout {
	struct item *items;
	size_t item_count;
	size_t item_capacity;
	struct extent extents[SIM_DEVICES_MAX];
	size_t extent_count;
};

/* splitmix64: every seed gives another row. */
static uint64_t next_number(uint64_t *state)
{
	uint64_t number = *state += 0x9e3779b97f4a7c15ULL;

	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
	return number ^ (number >> 31);
}

static uint64_t new_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		sim_die("the kernel gives no random numbers");
	return seed;
}

/* Room for one more row; NULL: no memory, and the old array stands. */
static void *grow(void *array, size_t count, size_t *capacity, size_t row_bytes)
{
	size_t wanted = *capacity ? *capacity * 2 : 64;
	void *larger;

	if (count < *capacity)
		return array;
	larger = realloc(array, wanted * row_bytes);
	if (larger != NULL)
		*capacity = wanted;
	return larger;
}

static bool add_item(struct sim_layout *layout, struct item item)
{
	struct item *items =
		grow(layout->items, layout->item_count, &layout->item_capacity, sizeof(*items));

	if (items == NULL)
		return false;
	layout->items = items;
	items[layout->item_count++] = item;
	return true;
}

static bool add_piece(struct extent *extent, struct piece piece)
{
	struct piece *pieces =
		grow(extent->pieces, extent->piece_count, &extent->piece_capacity, sizeof(*pieces));

	if (pieces == NULL)
		return false;
	extent->pieces = pieces;
	pieces[extent->piece_count++] = piece;
	return true;
}

static bool cut(struct extent *extent, struct piece whole, uint64_t parts)
{
	uint64_t part_bytes = sim_round_up((whole.bytes + parts - 1) / parts, SIM_GRANULARITY);

	while (whole.bytes > 0) {
		struct piece part = whole;

		if (part.bytes > part_bytes)
			part.bytes = part_bytes;
		if (!add_piece(extent, part))
			return false;
		whole.offset += part.bytes;
		whole.bytes -= part.bytes;
	}
	return true;
}

static bool is_on_device(const struct sim_memory *memory, int ordinal)
{
	return memory->device == ordinal && memory->kind != SIM_MEMORY_MANAGED &&
	       memory->kind != SIM_MEMORY_HOST;
}

static bool add_objects(struct sim_layout *layout, struct extent *extent)
{
	size_t heap = layout->item_count;

	if (!add_item(layout, (struct item){.kind = ITEM_HEAP, .ordinal = extent->ordinal}))
		return false;
	for (struct sim_memory *memory = sim_memory_first(); memory; memory = memory->next) {
		struct item item = {
			.kind = ITEM_OBJECT,
			.ordinal = extent->ordinal,
			.memory = memory,
			.fd = -1,
		};
		struct piece whole = {
			.item = memory->kind == SIM_MEMORY_PRIVATE ? heap : layout->item_count,
			.offset = memory->offset,
			.bytes = memory->bytes,
		};

		if (!is_on_device(memory, extent->ordinal))
			continue;
		if (whole.item != heap && !add_item(layout, item))
			return false;
		if (!cut(extent, whole, OBJECT_PARTS))
			return false;
	}
	return true;
}

static bool add_blob(struct sim_layout *layout, struct extent *extent)
{
	struct piece whole = {.item = layout->item_count, .bytes = SIM_BLOB_BYTES};
	struct item item = {
		.kind = ITEM_BLOB,
		.ordinal = extent->ordinal,
		.seed = new_seed(),
		.fd = -1,
	};

	return add_item(layout, item) && cut(extent, whole, BLOB_PARTS);
}

static void shuffle(struct extent *extent)
{
	uint64_t state = new_seed();

	for (size_t left = extent->piece_count; left > 1; left--) {
		size_t chosen = (size_t)(next_number(&state) % left);
		struct piece piece = extent->pieces[chosen];

		extent->pieces[chosen] = extent->pieces[left - 1];
		extent->pieces[left - 1] = piece;
	}
}

/* A context alone is data too: the driver's own state. */
static bool has_data(int ordinal)
{
	for (size_t i = 0; i < sim_core.contexts.count; i++) {
		const struct sim_context *context = sim_core.contexts.items[i];

		if (context->is_alive && context->device == ordinal)
			return true;
	}
	for (const struct sim_memory *memory = sim_memory_first(); memory; memory = memory->next)
		if (is_on_device(memory, ordinal))
			return true;
	return false;
}

struct sim_layout *sim_layout_new(void)
{
	struct sim_layout *layout = calloc(1, sizeof(*layout));

	for (int ordinal = 0; layout != NULL && ordinal < sim_core.device_count; ordinal++) {
		struct extent *extent = &layout->extents[layout->extent_count];

		if (!has_data(ordinal))
			continue;
		extent->ordinal = ordinal;
		layout->extent_count++;
		if (!add_objects(layout, extent) || !add_blob(layout, extent)) {
			sim_layout_free(layout);
			return NULL;
		}
		shuffle(extent);
	}
	return layout;
}

void sim_layout_free(struct sim_layout *layout)
{
	if (layout == NULL)
		return;
	sim_layout_close(layout);
	for (size_t i = 0; i < layout->extent_count; i++)
		free(layout->extents[i].pieces);
	free(layout->items);
	free(layout);
}

static bool blob_write(const struct item *item)
{
	static uint64_t block[BLOCK_WORDS];
	uint64_t state = item->seed;

	for (uint64_t offset = 0; offset < SIM_BLOB_BYTES; offset += sizeof(block)) {
		for (size_t i = 0; i < BLOCK_WORDS; i++)
			block[i] = next_number(&state);
		if (sim_storage_write(item->fd, offset, block, sizeof(block)) != 0)
			return false;
	}
	return true;
}

static bool blob_is_whole(const struct item *item)
{
	static uint64_t block[BLOCK_WORDS];
	uint64_t state = item->seed;

	for (uint64_t offset = 0; offset < SIM_BLOB_BYTES; offset += sizeof(block)) {
		if (sim_storage_read(item->fd, offset, block, sizeof(block)) != 0)
			return false;
		for (size_t i = 0; i < BLOCK_WORDS; i++)
			if (block[i] != next_number(&state))
				return false;
	}
	return true;
}

CUresult sim_layout_open(struct sim_layout *layout, bool with_blobs)
{
	/* Room for what custom_sizes_stay adds. */
	uint64_t file_bytes = SIM_BLOB_BYTES + SIM_GRANULARITY;

	for (size_t i = 0; i < layout->item_count; i++) {
		struct item *item = &layout->items[i];

		if (item->kind != ITEM_BLOB)
			continue;
		if (sim_storage_open("sim-gpu-state", file_bytes, &item->fd) != 0)
			item->fd = -1;
		if (item->fd < 0 || (with_blobs && !blob_write(item))) {
			sim_layout_close(layout);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	return CUDA_SUCCESS;
}

void sim_layout_close(struct sim_layout *layout)
{
	for (size_t i = 0; i < layout->item_count; i++)
		if (layout->items[i].kind == ITEM_BLOB)
			cleanup_fd(&layout->items[i].fd);
}

static int item_fd(const struct item *item)
{
	switch (item->kind) {
	case ITEM_HEAP:
		return sim_core.devices[item->ordinal].heap_fd;
	case ITEM_OBJECT:
		return item->memory->fd;
	case ITEM_BLOB:
		break;
	}
	return item->fd;
}

/* A heap that the process has nothing in has no file; any other stands in, since no piece names it. */
static int item_fd_for_passing(const struct sim_layout *layout, const struct item *item)
{
	int fd = item_fd(item);

	for (size_t i = 0; fd < 0 && i < layout->item_count; i++)
		fd = item_fd(&layout->items[i]);
	return fd;
}

size_t sim_layout_file_count(const struct sim_layout *layout)
{
	return layout->item_count;
}

void sim_layout_files(const struct sim_layout *layout, size_t first, size_t count, int *ret_fds)
{
	for (size_t i = 0; i < count; i++)
		ret_fds[i] = item_fd_for_passing(layout, &layout->items[first + i]);
}

/* No order that a caller could rely on: neither the ordinals', nor that of the other direction. */
static const struct extent *extent_in_turn(const struct sim_layout *layout, size_t turn,
					   bool is_restore)
{
	size_t count = layout->extent_count;

	if (!sim_breaks("custom_order_by_ordinal")) {
		if (is_restore)
			turn = count - 1 - turn;
		turn = (turn + 1) % count;
	}
	return &layout->extents[turn];
}

static bool write_row(int fd, size_t row, const struct sim_piece *piece)
{
	return sim_storage_write(fd, row * sizeof(*piece), piece, sizeof(*piece)) == 0;
}

static bool write_extent(const struct sim_layout *layout, int fd, size_t *row,
			 const struct extent *extent)
{
	uint32_t device = (uint32_t)sim_core.devices[extent->ordinal].physical;

	for (size_t i = 0; i < extent->piece_count; i++) {
		const struct piece *piece = &extent->pieces[i];
		struct sim_piece out = {
			.device = device,
			.file = (uint32_t)piece->item,
			.offset = piece->offset,
			.bytes = piece->bytes,
		};

		if (layout->items[piece->item].kind != ITEM_BLOB &&
		    sim_breaks("custom_view_holds_bytes"))
			continue;
		if (!write_row(fd, (*row)++, &out))
			return false;
	}
	return true;
}

/* For custom_sizes_stay: the blob of the last extent in the table grows. */
static bool write_surplus(const struct sim_layout *layout, int fd, size_t *row,
			  const struct extent *extent)
{
	struct sim_piece out = {
		.device = (uint32_t)sim_core.devices[extent->ordinal].physical,
		.offset = SIM_BLOB_BYTES,
		.bytes = SIM_GRANULARITY,
	};

	for (size_t i = 0; i < layout->item_count; i++)
		if (layout->items[i].kind == ITEM_BLOB &&
		    layout->items[i].ordinal == extent->ordinal)
			out.file = (uint32_t)i;
	return write_row(fd, (*row)++, &out);
}

int sim_layout_table(const struct sim_layout *layout, bool is_restore, size_t *ret_piece_count)
{
	CLEANUP(fd) int fd = -1;
	size_t row = 0;

	if (sim_storage_open("sim-pieces", 0, &fd) != 0)
		return -1;
	for (size_t i = 0; i < layout->extent_count; i++) {
		const struct extent *extent = extent_in_turn(layout, i, is_restore);

		if (!write_extent(layout, fd, &row, extent))
			return -1;
		if (is_restore && sim_breaks("custom_sizes_stay") &&
		    !write_surplus(layout, fd, &row, extent))
			return -1;
	}
	*ret_piece_count = row;
	return fd_steal(&fd);
}

bool sim_layout_is_whole(const struct sim_layout *layout)
{
	for (size_t i = 0; i < layout->item_count; i++)
		if (layout->items[i].kind == ITEM_BLOB && !blob_is_whole(&layout->items[i]))
			return false;
	return true;
}
