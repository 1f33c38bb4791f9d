/* See layout.h. */

#include "group/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Of cuda.h. */
#define LOCATION_DEVICE 1u

static bool has_content(const struct stasis_group_object *object)
{
	return object->is_ours && !object->is_multicast;
}

static const struct stasis_wire_allocation *allocation_of(const struct stasis_group_object *object)
{
	return &object->holders[object->owner_index].record->allocation;
}

static const struct stasis_id *owner_of(const struct stasis_group_object *object)
{
	return &object->holders[object->owner_index].member->participant;
}

static bool is_host(const struct stasis_group_object *object)
{
	return allocation_of(object)->location_type != LOCATION_DEVICE;
}

static int id_compare(const struct stasis_id *a, const struct stasis_id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* Owner, then host or device, then the object. */
static int item_compare(const void *a, const void *b)
{
	const struct stasis_group_object *x = ((const struct stasis_layout_item *)a)->object;
	const struct stasis_group_object *y = ((const struct stasis_layout_item *)b)->object;
	int order = id_compare(owner_of(x), owner_of(y));

	if (order == 0)
		order = (int)is_host(x) - (int)is_host(y);
	if (order == 0)
		order = id_compare(&allocation_of(x)->device, &allocation_of(y)->device);
	return order ? order : id_compare(&x->id, &y->id);
}

static int room_make(const struct stasis_topology *topology, struct stasis_layout *layout,
		     struct stasis_error *err)
{
	size_t room = (size_t)topology->object_count + 1;

	*layout = (struct stasis_layout){
		.extents = calloc(room, sizeof(layout->extents[0])),
		.items = calloc(room, sizeof(layout->items[0])),
	};
	if (layout->extents && layout->items)
		return 0;
	stasis_layout_free(layout);
	return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "lay out the contents");
}

static bool is_of(const struct stasis_layout_extent *extent,
		  const struct stasis_group_object *object)
{
	return stasis_id_equal(&extent->owner, owner_of(object)) &&
	       extent->is_host == is_host(object) &&
	       (extent->is_host ||
		stasis_id_equal(&extent->device, &allocation_of(object)->device));
}

int stasis_layout_make(const struct stasis_topology *topology, struct stasis_layout *ret_layout,
		       struct stasis_error *err)
{
	struct stasis_layout layout;

	if (room_make(topology, &layout, err) != 0)
		return -1;
	for (uint32_t i = 0; i < topology->object_count; i++) {
		if (has_content(&topology->objects[i]))
			layout.items[layout.item_count++].object = &topology->objects[i];
	}
	if (layout.item_count > 0)
		qsort(layout.items, layout.item_count, sizeof(layout.items[0]), item_compare);
	for (size_t i = 0; i < layout.item_count; i++) {
		const struct stasis_group_object *object = layout.items[i].object;
		struct stasis_layout_extent *last = &layout.extents[layout.extent_count];

		if (layout.extent_count == 0 || !is_of(last - 1, object)) {
			last->owner = *owner_of(object);
			last->is_host = is_host(object);
			last->device = allocation_of(object)->device;
			layout.extent_count++;
			last++;
		}
		layout.items[i].extent_index = layout.extent_count - 1;
		layout.items[i].offset = last[-1].bytes;
		last[-1].bytes += object->bytes;
	}
	*ret_layout = layout;
	return 0;
}

/* ---- from an image ---- */

static bool is_ours(enum stasis_image_store store)
{
	return store == STASIS_IMAGE_STORE_SHARED || store == STASIS_IMAGE_STORE_HOST;
}

static int extents_read(const struct stasis_image_manifest *manifest, size_t room,
			struct stasis_layout *layout, struct stasis_error *err)
{
	for (size_t i = 0; i < manifest->extent_count; i++) {
		const struct stasis_image_extent *extent = &manifest->extents[i];
		const struct stasis_image_process *process =
			&manifest->processes[extent->process_index];

		if (!is_ours(extent->store))
			continue;
		if (layout->extent_count == room || !process->has_participant)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "extent %zu holds shared memory of nothing in "
					   "shared.json",
					   i);
		layout->extents[layout->extent_count++] = (struct stasis_layout_extent){
			.owner = process->participant,
			.is_host = extent->store == STASIS_IMAGE_STORE_HOST,
			.device = manifest->gpus[extent->gpu_index].uuid,
			.bytes = extent->logical_bytes,
			.id = extent->id,
			.image_index = i,
		};
	}
	return 0;
}

static int item_read(const struct stasis_topology *topology,
		     const struct stasis_shared_place *place, struct stasis_layout *layout,
		     struct stasis_error *err)
{
	const struct stasis_group_object *object = stasis_topology_find(topology, &place->object);
	char text[STASIS_ID_TEXT_BYTES];

	for (size_t i = 0; object && has_content(object) && i < layout->extent_count; i++) {
		if (!stasis_id_equal(&layout->extents[i].id, &place->extent) ||
		    !is_of(&layout->extents[i], object))
			continue;
		layout->items[layout->item_count++] = (struct stasis_layout_item){
			.object = object,
			.extent_index = i,
			.offset = place->offset,
		};
		return 0;
	}
	return stasis_fail(err, STASIS_BAD_IMAGE,
			   "shared.json: object %s lies in no extent of the process that owns it",
			   stasis_id_format(&place->object, text));
}

static int place_compare(const void *a, const void *b)
{
	const struct stasis_layout_item *x = a;
	const struct stasis_layout_item *y = b;

	if (x->extent_index != y->extent_index)
		return x->extent_index < y->extent_index ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Objects lie one behind the other from the beginning of each extent to its end. */
static int tiles_check(const struct stasis_layout *layout, struct stasis_error *err)
{
	size_t item = 0;

	for (size_t i = 0; i < layout->extent_count; i++) {
		uint64_t end = 0;

		for (; item < layout->item_count && layout->items[item].extent_index == i; item++) {
			uint64_t bytes = layout->items[item].object->bytes;

			if (layout->items[item].offset != end ||
			    bytes > layout->extents[i].bytes - end)
				break;
			end += bytes;
		}
		if (end != layout->extents[i].bytes)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "shared.json: its objects do not fill the extent of "
					   "%" PRIu64 " bytes from one end to the other",
					   layout->extents[i].bytes);
	}
	return item == layout->item_count
		       ? 0
		       : stasis_fail(err, STASIS_BAD_IMAGE, "shared.json: objects overlap");
}

static size_t content_count(const struct stasis_topology *topology)
{
	size_t count = 0;

	for (uint32_t i = 0; i < topology->object_count; i++)
		count += has_content(&topology->objects[i]);
	return count;
}

/* As many places as objects, and no gap: so no object is there twice. */
static int twins_check(const struct stasis_layout *layout, struct stasis_error *err)
{
	for (size_t i = 1; i < layout->item_count; i++) {
		if (layout->items[i].object == layout->items[i - 1].object)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "shared.json: an object has two places");
	}
	return 0;
}

static int object_compare(const void *a, const void *b)
{
	const struct stasis_layout_item *x = a;
	const struct stasis_layout_item *y = b;

	return id_compare(&x->object->id, &y->object->id);
}

static int layout_fill(const struct stasis_topology *topology,
		       const struct stasis_shared_place *places, size_t place_count,
		       const struct stasis_image_manifest *manifest, struct stasis_layout *layout,
		       struct stasis_error *err)
{
	if (place_count != content_count(topology))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "shared.json: %zu places for the contents of %zu objects",
				   place_count, content_count(topology));
	if (extents_read(manifest, (size_t)topology->object_count + 1, layout, err) != 0)
		return -1;
	for (size_t i = 0; i < place_count; i++) {
		if (item_read(topology, &places[i], layout, err) != 0)
			return -1;
	}
	qsort(layout->items, layout->item_count, sizeof(layout->items[0]), object_compare);
	if (twins_check(layout, err) != 0)
		return -1;
	qsort(layout->items, layout->item_count, sizeof(layout->items[0]), place_compare);
	return tiles_check(layout, err);
}

int stasis_layout_read(const struct stasis_topology *topology,
		       const struct stasis_shared_place *places, size_t place_count,
		       const struct stasis_image_manifest *manifest,
		       struct stasis_layout *ret_layout, struct stasis_error *err)
{
	struct stasis_layout layout;

	if (room_make(topology, &layout, err) != 0)
		return -1;
	if (layout_fill(topology, places, place_count, manifest, &layout, err) != 0) {
		stasis_layout_free(&layout);
		return -1;
	}
	*ret_layout = layout;
	return 0;
}

int stasis_layout_places(const struct stasis_layout *layout,
			 struct stasis_shared_place **ret_places, struct stasis_error *err)
{
	struct stasis_shared_place *places = calloc(layout->item_count + 1, sizeof(*places));

	if (!places)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "describe the contents");
	for (size_t i = 0; i < layout->item_count; i++) {
		const struct stasis_layout_item *item = &layout->items[i];

		places[i] = (struct stasis_shared_place){
			.object = item->object->id,
			.extent = layout->extents[item->extent_index].id,
			.offset = item->offset,
		};
	}
	*ret_places = places;
	return 0;
}

void stasis_layout_free(struct stasis_layout *layout)
{
	free(layout->extents);
	free(layout->items);
	*layout = (struct stasis_layout){.extents = NULL};
}
