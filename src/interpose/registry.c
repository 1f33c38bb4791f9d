/* See registry.h: objects and their virtual handles. */

#include "interpose/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/fork.h"
#include "interpose/multicast.h"

struct stasis_registry stasis_registry = {.mutex = STASIS_MUTEX_INITIALIZER, .generation = 1};

/*
 * Chained, and never grown: what is not used is never touched, so that the room costs nothing, and a million
 * handles make chains of 16.
 */
#define HANDLE_SLOTS 65536u
#define OBJECT_SLOTS 16384u

static struct stasis_handle *handle_slots[HANDLE_SLOTS] GUARDED_BY(stasis_registry.mutex);
static struct stasis_object *object_slots[OBJECT_SLOTS] GUARDED_BY(stasis_registry.mutex);
static atomic_bool has_handler; /* what a forked child calls is registered */
static uint64_t last_number GUARDED_BY(stasis_registry.mutex);

void stasis_registry_lock(void)
{
	stasis_mutex_lock(&stasis_registry.mutex);
}

void stasis_registry_unlock(void)
{
	stasis_mutex_unlock(&stasis_registry.mutex);
}

struct stasis_handle *stasis_handle_new(void)
{
	return calloc(1, sizeof(struct stasis_handle));
}

struct stasis_object *stasis_object_new(enum stasis_object_kind kind)
{
	struct stasis_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	if (!atomic_exchange(&has_handler, true))
		stasis_fork_forget_add(stasis_registry_forget);
	object->handles = stasis_handle_new();
	if (!object->handles) {
		free(object);
		return NULL;
	}
	object->kind = kind;
	object->descriptor = -1;
	return object;
}

void stasis_object_free(struct stasis_object *object)
{
	struct stasis_handle *handle = object->handles;

	while (handle) {
		struct stasis_handle *next = handle->next;

		free(handle);
		handle = next;
	}
	stasis_multicast_free(object);
	free(object);
}

/* ---- tables ---- */

static struct stasis_handle **handle_slot(uint64_t value) REQUIRES(stasis_registry.mutex)
{
	return &handle_slots[value % HANDLE_SLOTS];
}

static struct stasis_object **object_slot(const struct stasis_id *id)
	REQUIRES(stasis_registry.mutex)
{
	uint64_t word;

	/* ids are random */
	memcpy(&word, id->bytes, sizeof(word));
	return &object_slots[word % OBJECT_SLOTS];
}

static void handle_index(struct stasis_handle *handle) REQUIRES(stasis_registry.mutex)
{
	struct stasis_handle **slot;

	handle->value = STASIS_HANDLE_TAG << 48 | ++last_number;
	slot = handle_slot(handle->value);
	handle->next_in_slot = *slot;
	*slot = handle;
}

uint64_t stasis_object_add(struct stasis_object *object)
{
	struct stasis_handle *handle = object->handles;
	struct stasis_object **slot = object_slot(&object->id);

	handle->object = object;
	handle->link = &object->handles;
	handle->count = 1;
	object->handle_count = 1;
	handle_index(handle);
	object->next_in_slot = *slot;
	*slot = object;
	object->previous = stasis_registry.last;
	if (stasis_registry.last)
		stasis_registry.last->next = object;
	else
		stasis_registry.first = object;
	stasis_registry.last = object;
	stasis_registry.object_count++;
	stasis_registry.generation++;
	return handle->value;
}

struct stasis_object *stasis_object_find(const struct stasis_id *id)
{
	struct stasis_object *object = *object_slot(id);

	while (object && !stasis_id_equal(&object->id, id))
		object = object->next_in_slot;
	return object;
}

struct stasis_handle *stasis_handle_find(uint64_t value)
{
	struct stasis_handle *handle = *handle_slot(value);

	while (handle && handle->value != value)
		handle = handle->next_in_slot;
	return handle && handle->count > 0 ? handle : NULL;
}

uint64_t stasis_handle_add(struct stasis_object *object, struct stasis_handle *handle)
{
	handle->object = object;
	handle->count = 1;
	handle->next = object->handles;
	handle->link = &object->handles;
	if (handle->next)
		handle->next->link = &handle->next;
	object->handles = handle;
	object->handle_count++;
	handle_index(handle);
	stasis_registry.generation++;
	return handle->value;
}

static void object_take_out(struct stasis_object *object) REQUIRES(stasis_registry.mutex)
{
	struct stasis_object **slot = object_slot(&object->id);

	while (*slot != object)
		slot = &(*slot)->next_in_slot;
	*slot = object->next_in_slot;
	if (object->previous)
		object->previous->next = object->next;
	else
		stasis_registry.first = object->next;
	if (object->next)
		object->next->previous = object->previous;
	else
		stasis_registry.last = object->previous;
	stasis_registry.object_count--;
	stasis_registry.generation++;
}

/* ---- the end of handles and objects ---- */

static void handle_take_out(struct stasis_handle *handle) REQUIRES(stasis_registry.mutex)
{
	struct stasis_handle **slot = handle_slot(handle->value);

	while (*slot != handle)
		slot = &(*slot)->next_in_slot;
	*slot = handle->next_in_slot;
	*handle->link = handle->next;
	if (handle->next)
		handle->next->link = handle->link;
	free(handle);
}

/* What nobody holds goes; its driver handle is the caller's to give back. */
static void object_settle(struct stasis_object *object, struct stasis_gone *ret_gone)
	REQUIRES(stasis_registry.mutex)
{
	*ret_gone = (struct stasis_gone){.object = NULL};
	if (object->handle_count > 0 || object->mapping_count > 0 || object->pin_count > 0 ||
	    object->binding_member_count > 0)
		return;
	while (object->handles)
		handle_take_out(object->handles);
	object_take_out(object);
	ret_gone->object = object;
}

static void handle_settle(struct stasis_handle *handle) REQUIRES(stasis_registry.mutex)
{
	if (handle->count == 0 && handle->mapping_count == 0)
		handle_take_out(handle);
}

void stasis_handle_release(struct stasis_handle *handle, struct stasis_gone *ret_gone)
{
	struct stasis_object *object = handle->object;

	handle->count--;
	object->handle_count--;
	stasis_registry.generation++;
	handle_settle(handle);
	object_settle(object, ret_gone);
}

void stasis_handle_unuse(struct stasis_handle *handle)
{
	handle->mapping_count--;
	handle_settle(handle);
}

void stasis_object_unpin(struct stasis_object *object, struct stasis_gone *ret_gone)
{
	object->pin_count--;
	object_settle(object, ret_gone);
}

void stasis_mapping_drop(struct stasis_mapping *mapping, struct stasis_gone *ret_gone)
{
	struct stasis_object *object = mapping->object;

	handle_settle(mapping->handle);
	stasis_mapping_free(mapping);
	object_settle(object, ret_gone);
}

static void count_raise(uint64_t *count)
{
	stasis_registry_lock();
	++*count;
	stasis_registry.generation++;
	stasis_registry_unlock();
}

void stasis_registry_damage(void)
{
	count_raise(&stasis_registry.damage_count);
}

void stasis_registry_note_sparse(void)
{
	count_raise(&stasis_registry.sparse_count);
}

void stasis_registry_note_endpoint(void)
{
	count_raise(&stasis_registry.endpoint_count);
}

void stasis_registry_note_ipc(enum stasis_ipc what)
{
	stasis_registry_lock();
	switch (what) {
	case STASIS_IPC_MEMORY_GIVEN:
		stasis_registry.ipc_given_count++;
		break;
	case STASIS_IPC_MEMORY_OPENED:
		stasis_registry.ipc_open_count++;
		break;
	case STASIS_IPC_MEMORY_CLOSED:
		if (stasis_registry.ipc_open_count > 0)
			stasis_registry.ipc_open_count--;
		break;
	case STASIS_IPC_EVENT:
		stasis_registry.ipc_event_count++;
		break;
	case STASIS_IPC_POOL:
		stasis_registry.pool_count++;
		break;
	}
	stasis_registry.generation++;
	stasis_registry_unlock();
}

bool stasis_object_is_ours(const struct stasis_object *object)
{
	if (object->kind != STASIS_OBJECT_ALLOCATION)
		return false;
	return object->is_shared || object->is_importer || object->is_reattached ||
	       object->prop.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

void stasis_registry_forget(void) NO_THREAD_SAFETY_ANALYSIS
{
	stasis_registry = (struct stasis_registry){.mutex = STASIS_MUTEX_INITIALIZER,
						   .generation = stasis_registry.generation + 1};
	memset(handle_slots, 0, sizeof(handle_slots));
	memset(object_slots, 0, sizeof(object_slots));
	stasis_mappings_forget();
}
