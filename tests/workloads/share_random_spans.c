/*
 * Where share_random has its memory mapped: some objects side by side, each with rights of its own, mapped one by one,
 * made accessible and unmapped together or one by one; the reservation is kept until the last is gone.
 */
#include <string.h>

#include "check.h"
#include "device.h"
#include "share_random.h"

#define READ CU_MEM_ACCESS_FLAGS_PROT_READ
#define WRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct span *span_free(struct actor *actor)
{
	for (size_t i = 0; i < SPANS_MAX; i++)
		if (actor->spans[i].address == 0)
			return &actor->spans[i];
	return NULL;
}

static struct span *span_any(struct actor *actor)
{
	unsigned start = draw(actor, SPANS_MAX);

	for (unsigned i = 0; i < SPANS_MAX; i++) {
		struct span *span = &actor->spans[(start + i) % SPANS_MAX];

		if (span->address != 0)
			return span;
	}
	return NULL;
}

/* One that is mapped and that this device may read, or write; NULL: none was found. */
static struct slot *slot_any(struct actor *actor, unsigned long long rights)
{
	struct span *span = span_any(actor);
	struct slot *slot;

	if (!span)
		return NULL;
	slot = &span->slots[draw(actor, span->count)];
	return slot->object && slot->rights[actor->device] >= rights ? slot : NULL;
}

/* ---- rights ---- */

/*
 * Neighbours of one span, all of them mapped, get these rights by one call. What is queued needs the rights that it was
 * queued with.
 */
static void access_set(struct actor *actor, struct slot *slots, unsigned count, int device,
		       CUmemAccess_flags rights)
{
	CUmemAccessDesc access = t_access(rights);
	size_t bytes = 0;

	finish(actor);
	access.location.id = device;
	for (unsigned i = 0; i < count; i++) {
		bytes += slots[i].bytes;
		slots[i].rights[device] = rights;
	}
	T_OK(cuMemSetAccess(slots[0].address, bytes, &access, 1));
}

/* How many are mapped from this one on, without a gap. */
static unsigned mapped_from(const struct span *span, unsigned first)
{
	unsigned count = 0;

	while (first + count < span->count && span->slots[first + count].object)
		count++;
	return count;
}

void span_access(struct actor *actor)
{
	static const CUmemAccess_flags flags[] = {WRITE, WRITE, READ,
						  CU_MEM_ACCESS_FLAGS_PROT_NONE};
	struct span *span = span_any(actor);
	unsigned first;
	unsigned count;
	int device;

	if (!span)
		return;
	first = draw(actor, span->count);
	count = mapped_from(span, first);
	if (count == 0)
		return;
	device = draw(actor, 3) ? actor->device : (int)draw(actor, actor->options->devices);
	access_set(actor, &span->slots[first], 1 + draw(actor, count), device,
		   flags[draw(actor, COUNT_OF(flags))]);
}

/* ---- mapping ---- */

static void slot_map(struct actor *actor, struct slot *slot, const struct hold *hold)
{
	struct object *object = hold->object;

	model_lock(&object->mutex);
	T_OK(cuMemMap(slot->address, slot->bytes, 0, hold->handle, 0));
	T_OK(cuMemRetainAllocationHandle(&slot->handle, (void *)slot->address)); /* NOLINT */
	T_OK(cuMemRelease(slot->handle));
	slot->object = object;
	object_keep(actor, object);
	model_unlock(&object->mutex);
}

/* What nobody has written yet is written now. */
static void slot_begin(struct actor *actor, const struct slot *slot)
{
	model_lock(&slot->object->mutex);
	contents_begin(actor, slot->object, slot->address);
	model_unlock(&slot->object->mutex);
}

void span_map(struct actor *actor)
{
	struct hold *holds[SLOTS_MAX] = {NULL};
	struct span *span = span_free(actor);
	unsigned count = 1 + draw(actor, SLOTS_MAX);
	CUdeviceptr address;

	if (!span || !hold_any(actor))
		return;
	*span = (struct span){.count = count};
	for (unsigned i = 0; i < count; i++) {
		holds[i] = hold_any(actor);
		span->slots[i].bytes = object_bytes(holds[i]->object);
		span->bytes += span->slots[i].bytes;
	}
	T_OK(cuMemAddressReserve(&span->address, span->bytes, 0, 0, 0));
	address = span->address;
	for (unsigned i = 0; i < count; i++) {
		span->slots[i].address = address;
		address += span->slots[i].bytes;
		slot_map(actor, &span->slots[i], holds[i]);
	}
	access_set(actor, span->slots, count, actor->device, WRITE);
	for (unsigned i = 0; i < count; i++)
		slot_begin(actor, &span->slots[i]);
	if (draw(actor, 3) == 0)
		access_set(actor, span->slots, count, actor->device, READ);
}

/* ---- unmapping ---- */

/* So often is the object among the slots; 0 where an earlier one stands for it. */
static unsigned times_among(const struct slot *slots, unsigned count, unsigned index)
{
	unsigned times = 0;

	for (unsigned i = 0; i < count; i++) {
		if (slots[i].object != slots[index].object)
			continue;
		if (i < index)
			return 0;
		times++;
	}
	return times;
}

/* By their order in the model, each once. */
static void objects_lock(struct actor *actor, const struct slot *slots, unsigned count)
{
	for (unsigned index = 0; index < OBJECTS_MAX; index++) {
		struct object *object = &actor->model->objects[index];
		bool is_there = false;

		for (unsigned i = 0; i < count; i++)
			is_there |= slots[i].object == object;
		if (is_there)
			model_lock(&object->mutex);
	}
}

/* Unmaps neighbours by one call; false: one of them must be kept a while. */
static bool slots_unmap(struct actor *actor, struct slot *slots, unsigned count)
{
	struct object *locked[SLOTS_MAX] = {NULL};
	bool is_awaited = false;
	size_t bytes = 0;

	finish(actor);
	objects_lock(actor, slots, count);
	for (unsigned i = 0; i < count; i++) {
		unsigned times = times_among(slots, count, i);

		bytes += slots[i].bytes;
		if (times > 0)
			locked[i] = slots[i].object;
		is_awaited |= times > 0 && object_is_awaited(actor, slots[i].object, times);
	}
	if (!is_awaited)
		T_OK(cuMemUnmap(slots[0].address, bytes));
	for (unsigned i = 0; i < count && !is_awaited; i++) {
		object_let_go(actor, slots[i].object);
		slots[i].object = NULL;
	}
	for (unsigned i = 0; i < count; i++)
		if (locked[i])
			model_unlock(&locked[i]->mutex);
	return !is_awaited;
}

static bool is_mapped(const struct span *span)
{
	for (unsigned i = 0; i < span->count; i++)
		if (span->slots[i].object)
			return true;
	return false;
}

static void span_end(struct span *span)
{
	if (is_mapped(span))
		return;
	T_OK(cuMemAddressFree(span->address, span->bytes));
	span->address = 0;
}

void span_unmap(struct actor *actor)
{
	struct span *span = span_any(actor);
	unsigned first;
	unsigned count;

	if (!span)
		return;
	first = draw(actor, 2) ? 0 : draw(actor, span->count);
	count = mapped_from(span, first);
	if (count == 0)
		return;
	if (draw(actor, 3) == 0)
		count = 1;
	(void)slots_unmap(actor, &span->slots[first], count);
	span_end(span);
}

bool spans_free(struct actor *actor)
{
	bool are_free = true;

	for (size_t i = 0; i < SPANS_MAX; i++) {
		struct span *span = &actor->spans[i];

		if (span->address == 0)
			continue;
		for (unsigned j = 0; j < span->count; j++)
			if (span->slots[j].object)
				(void)slots_unmap(actor, &span->slots[j], 1);
		span_end(span);
		are_free &= span->address == 0;
	}
	return are_free;
}

/* ---- use ---- */

/* A handle by an address anywhere inside, which is one more reference. */
void span_retain(struct actor *actor)
{
	struct slot *slot = slot_any(actor, 0);
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr inside;

	if (!slot)
		return;
	inside = slot->address + draw(actor, (uint32_t)slot->bytes);
	model_lock(&slot->object->mutex);
	T_OK(cuMemRetainAllocationHandle(&handle, (void *)inside)); /* NOLINT */
	if (handle != slot->handle)
		wrong(actor, "the address 0x%llx was of handle 0x%llx, and is of 0x%llx", inside,
		      slot->handle, handle);
	if (!hold_add(actor, slot->object, handle))
		T_OK(cuMemRelease(handle));
	model_unlock(&slot->object->mutex);
}

void span_write(struct actor *actor)
{
	struct slot *slot = slot_any(actor, WRITE);

	if (!slot)
		return;
	model_lock(&slot->object->mutex);
	contents_write(actor, slot->object, slot->address);
	model_unlock(&slot->object->mutex);
}

void span_copy(struct actor *actor)
{
	struct slot *slots[2] = {slot_any(actor, WRITE), slot_any(actor, READ)};
	struct slot both[2];

	if (!slots[0] || !slots[1])
		return;
	both[0] = *slots[0];
	both[1] = *slots[1];
	objects_lock(actor, both, 2);
	contents_copy(actor, &both[0], &both[1]);
	model_unlock(&both[0].object->mutex);
	if (both[1].object != both[0].object)
		model_unlock(&both[1].object->mutex);
}

static void slot_verify(struct actor *actor, const struct slot *slot)
{
	if (slot->rights[actor->device] < READ)
		return;
	model_lock(&slot->object->mutex);
	contents_verify(actor, slot->object, slot->address);
	model_unlock(&slot->object->mutex);
}

void span_verify(struct actor *actor)
{
	struct slot *slot = slot_any(actor, READ);

	if (slot)
		slot_verify(actor, slot);
}

void spans_verify(struct actor *actor)
{
	for (size_t i = 0; i < SPANS_MAX; i++) {
		const struct span *span = &actor->spans[i];

		for (unsigned j = 0; span->address != 0 && j < span->count; j++)
			if (span->slots[j].object)
				slot_verify(actor, &span->slots[j]);
	}
}

static void slot_rights_check(const struct actor *actor, const struct slot *slot)
{
	for (unsigned i = 0; i < actor->options->devices; i++) {
		CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)i};
		unsigned long long rights = 0;

		T_OK(cuMemGetAccess(&rights, &location, slot->address));
		if (rights != slot->rights[i])
			wrong(actor, "rights of device %u at 0x%llx: expected %llu, found %llu", i,
			      slot->address, slot->rights[i], rights);
	}
}

/* What the driver says about the address. */
static void slot_check(const struct actor *actor, const struct slot *slot)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr start = 0;
	size_t bytes = 0;

	slot_rights_check(actor, slot);
	T_OK(cuMemRetainAllocationHandle(&handle, (void *)slot->address)); /* NOLINT */
	T_OK(cuMemRelease(handle));
	T_OK(cuMemGetAddressRange_v2(&start, &bytes, slot->address + slot->bytes - 1));
	if (handle != slot->handle || start != slot->address || bytes != slot->bytes)
		wrong(actor,
		      "the mapping at 0x%llx of %zu bytes, handle 0x%llx: found one at 0x%llx of "
		      "%zu, "
		      "handle 0x%llx",
		      slot->address, slot->bytes, slot->handle, start, bytes, handle);
}

void spans_check(struct actor *actor)
{
	for (size_t i = 0; i < SPANS_MAX; i++) {
		const struct span *span = &actor->spans[i];

		for (unsigned j = 0; span->address != 0 && j < span->count; j++)
			if (span->slots[j].object)
				slot_check(actor, &span->slots[j]);
	}
}
