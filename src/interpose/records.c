/*
 * What INSPECT tells of this process: the registry as wire records. Counted through from the first to the last
 * under the lock, so that all pages of a generation are of one state.
 */

#include <string.h>

#include "interpose/multicast.h"
#include "interpose/phases.h"
#include "interpose/registry.h"

struct page {
	struct stasis_wire_record *records;
	uint64_t first;
	uint64_t total; /* seen so far */
	uint32_t max;
	uint32_t count;
};

static void page_add(struct page *page, const struct stasis_wire_record *record)
{
	if (page->total >= page->first && page->count < page->max)
		page->records[page->count++] = *record;
	page->total++;
}

static uint32_t flags_of(const struct stasis_object *object)
{
	uint32_t flags = 0;

	if (object->is_shared)
		flags |= STASIS_WIRE_IS_SHARED;
	if (object->is_reattached)
		flags |= STASIS_WIRE_IS_REATTACHED;
	if (!object->is_importer && stasis_object_is_ours(object))
		flags |= STASIS_WIRE_HAS_CONTENT;
	return flags;
}

static void allocation_add(struct page *page, const struct stasis_object *object)
{
	const CUmemAllocationProp *prop = &object->prop;
	struct stasis_wire_record record = {
		.type = STASIS_WIRE_ALLOCATION,
		.allocation = {
			.object = object->id,
			.creator = object->creator,
			.device = object->device,
			.bytes = object->bytes,
			.role = object->is_importer ? STASIS_WIRE_IMPORTER : STASIS_WIRE_CREATOR,
			.flags = flags_of(object),
			.location_type = (uint32_t)prop->location.type,
			.location_id = prop->location.id,
			.handle_types = (uint32_t)prop->requestedHandleTypes,
			.compression = prop->allocFlags.compressionType,
			.gpu_direct_rdma = prop->allocFlags.gpuDirectRDMACapable,
			.usage = prop->allocFlags.usage,
		}};

	page_add(page, &record);
}

static void multicast_add(struct page *page, const struct stasis_object *object)
{
	struct stasis_wire_record record = {
		.type = STASIS_WIRE_MULTICAST,
		.multicast = {
			.object = object->id,
			.creator = object->creator,
			.bytes = object->multicast.size,
			.flags = object->multicast.flags,
			.device_count = object->multicast.numDevices,
			.handle_types = (uint32_t)object->multicast.handleTypes,
			.role = object->is_importer ? STASIS_WIRE_IMPORTER : STASIS_WIRE_CREATOR,
		}};

	page_add(page, &record);
}

static void team_add(struct page *page, const struct stasis_object *object)
{
	for (const struct stasis_team_device *device = object->team; device;
	     device = device->next) {
		struct stasis_wire_record record = {.type = STASIS_WIRE_TEAM_DEVICE,
						    .team_device = {.object = object->id,
								    .device = device->uuid,
								    .ordinal = device->ordinal}};

		page_add(page, &record);
	}
	for (const struct stasis_binding *binding = object->bindings; binding;
	     binding = binding->next) {
		struct stasis_wire_record record = {
			.type = STASIS_WIRE_BINDING,
			.binding = {.object = object->id,
				    .address = binding->address,
				    .member_offset = binding->member_offset,
				    .offset = binding->offset,
				    .bytes = binding->bytes,
				    .flags = binding->flags,
				    .ordinal = binding->device,
				    .kind = binding->address ? STASIS_WIRE_BIND_ADDRESS
							     : STASIS_WIRE_BIND_MEMORY,
				    .call_version = binding->call_version}};

		if (binding->is_unsupported)
			continue;
		if (binding->member)
			record.binding.member = binding->member->id;
		page_add(page, &record);
	}
}

static void handles_add(struct page *page, const struct stasis_object *object)
{
	for (const struct stasis_handle *handle = object->handles; handle; handle = handle->next) {
		struct stasis_wire_record record = {.type = STASIS_WIRE_HANDLE,
						    .handle = {.object = object->id,
							       .handle = handle->value,
							       .count = handle->count}};

		if (handle->count > 0)
			page_add(page, &record);
	}
}

static void mapping_add(struct page *page, const struct stasis_mapping *mapping)
{
	struct stasis_wire_record record = {.type = STASIS_WIRE_MAPPING,
					    .mapping = {.object = mapping->object->id,
							.address = mapping->address,
							.bytes = mapping->bytes,
							.offset = mapping->offset,
							.handle = mapping->handle->value,
							.flags = mapping->flags}};

	page_add(page, &record);
	for (uint32_t i = 0; i < mapping->access_count; i++) {
		struct stasis_wire_record access = {
			.type = STASIS_WIRE_ACCESS,
			.access = {.address = mapping->address,
				   .location_type = (uint32_t)mapping->access[i].location.type,
				   .location_id = mapping->access[i].location.id,
				   .rights = mapping->access[i].rights}};

		page_add(page, &access);
	}
}

static void note_add(struct page *page, uint32_t kind, uint64_t count, const char *text)
{
	struct stasis_wire_record record = {.type = STASIS_WIRE_NOTE,
					    .note = {.kind = kind, .count = count}};

	if (count == 0)
		return;
	/* Both are of one size; the last byte stays 0. */
	strncpy(record.note.text, text, sizeof(record.note.text) - 1);
	page_add(page, &record);
}

/*
 * Host memory that the CPU may touch at any time: while it is given up its address would fault. Refused until
 * other pages stand there meanwhile.
 */
static bool is_mapped_by_cpu(const struct stasis_object *object)
{
	if (object->prop.location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return false;
	for (const struct stasis_mapping *mapping = object->mappings; mapping;
	     mapping = mapping->next) {
		for (uint32_t i = 0; i < mapping->access_count; i++) {
			if (mapping->access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
				return true;
		}
	}
	return false;
}

/*
 * What the first page of a generation found out, so that the later ones need not go through everything again: how
 * much there is, and the object with which the next page begins.
 */
static struct {
	uint64_t generation; /* of what follows; 0: nothing */
	const struct stasis_object *object;
	uint64_t before; /* records of the objects before it */
	uint64_t total;  /* of all objects; the notes come behind them */
	uint64_t foreign_count;
	uint64_t cpu_count;
	uint64_t binding_count; /* unsupported ones */
} seen GUARDED_BY(stasis_registry.mutex);

static void object_add(struct page *page, const struct stasis_object *object)
{
	if (object->kind == STASIS_OBJECT_FOREIGN)
		return;
	if (object->kind == STASIS_OBJECT_MULTICAST) {
		multicast_add(page, object);
		team_add(page, object);
	} else {
		allocation_add(page, object);
	}
	handles_add(page, object);
	for (const struct stasis_mapping *mapping = object->mappings; mapping;
	     mapping = mapping->next)
		mapping_add(page, mapping);
}

/* Goes through everything, once a generation. */
static void registry_look(void) REQUIRES(stasis_registry.mutex)
{
	struct page counted = {.records = NULL};

	seen.foreign_count = 0;
	seen.cpu_count = 0;
	seen.binding_count = 0;
	for (struct stasis_object *object = stasis_registry.first; object; object = object->next) {
		seen.foreign_count += object->kind == STASIS_OBJECT_FOREIGN;
		seen.cpu_count +=
			object->kind == STASIS_OBJECT_ALLOCATION && is_mapped_by_cpu(object);
		seen.binding_count += stasis_binding_count_unsupported(object);
		object_add(&counted, object);
	}
	seen.generation = stasis_registry.generation;
	seen.total = counted.total;
	seen.object = stasis_registry.first;
	seen.before = 0;
}

static void objects_add(struct page *page) REQUIRES(stasis_registry.mutex)
{
	const struct stasis_object *object = stasis_registry.first;

	if (page->first >= seen.before) {
		object = seen.object;
		page->total = seen.before;
	}
	for (; object && page->count < page->max; object = object->next) {
		seen.object = object;
		seen.before = page->total;
		object_add(page, object);
	}
	page->total = seen.total;
}

static void notes_add(struct page *page) REQUIRES(stasis_registry.mutex)
{
	note_add(page, STASIS_WIRE_NOTE_FOREIGN_IMPORT, seen.foreign_count,
		 "memory imported from a program without the interposer");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, seen.cpu_count,
		 "host memory of a NUMA node that its CPU has mapped cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, seen.binding_count,
		 "memory without descriptors that multicast alone may hold cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.sparse_count,
		 "memory that it has mapped into sparse arrays cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.endpoint_count,
		 "logical endpoints, made or imported, cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.ipc_given_count,
		 "memory that it has given out by cuIpcGetMemHandle may be open elsewhere");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.ipc_open_count,
		 "memory of others that it holds by cuIpcOpenMemHandle cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.ipc_event_count,
		 "events shared by cuIpcGetEventHandle or cuIpcOpenEventHandle cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.pool_count,
		 "memory pools shared with other processes cannot be captured");
	note_add(page, STASIS_WIRE_NOTE_UNSUPPORTED, stasis_registry.damage_count,
		 "changes to memory that could not be recorded, for want of memory");
}

void stasis_phase_records(uint64_t first, uint32_t max, struct stasis_wire_record *ret_records,
			  struct stasis_phase_records *ret_info)
{
	struct page page = {.records = ret_records, .first = first, .max = max};

	stasis_registry_lock();
	if (seen.generation != stasis_registry.generation)
		registry_look();
	objects_add(&page);
	notes_add(&page);
	ret_info->generation = stasis_registry.generation;
	stasis_registry_unlock();
	ret_info->total = page.total;
	ret_info->count = page.count;
}
