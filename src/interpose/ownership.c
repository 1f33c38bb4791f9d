/*
 * The phases in which memory that we save is given up and taken back: shared allocations, imports, and host memory
 * of a NUMA node. Reservations of addresses stay throughout, and so do virtual handles; what is private to
 * this process stays as it is. The gate is shut, so that nobody but the peer thread looks at the records,
 * which takes the lock for what it reads.
 *
 * Whatever fails leaves each mapping and handle marked as it is, up or down, so that the phase that undoes it
 * goes on from there.
 */

#include <errno.h>

#include "base/clock.h"
#include "driver/cuda_error.h"
#include "interpose/calls.h"
#include "interpose/descriptors.h"
#include "interpose/objects.h"
#include "interpose/peer.h"
#include "interpose/phases.h"
#include "interpose/registry.h"

static int calls_need(const struct stasis_calls **ret_calls, struct stasis_error *err)
{
	*ret_calls = stasis_calls_get();
	if (*ret_calls)
		return 0;
	return stasis_fail(err, STASIS_REFUSED, "libcuda is not to be found in this process");
}

static struct stasis_object *object_first(void)
{
	struct stasis_object *object;

	stasis_registry_lock();
	object = stasis_registry.first;
	stasis_registry_unlock();
	return object;
}

/* ---- what is handed out ---- */

/* Its content can be handed out here: by an export, or by the descriptor that is kept. */
static bool is_in_page(const struct stasis_object *object)
{
	return stasis_object_is_ours(object) && object->has_driver_handle &&
	       (object->descriptor >= 0 || !object->is_importer || object->is_recreated);
}

/* Where the page behind the last one begins, so that it need not be counted out again. */
static struct {
	uint64_t generation; /* of what follows; 0: nothing */
	uint64_t first;
	struct stasis_object *object;
} next_page GUARDED_BY(stasis_registry.mutex);

/* The object with that number, or one before it that is in no page; NULL: there are not so many. */
static struct stasis_object *page_begin(uint64_t first)
{
	struct stasis_object *object;

	stasis_registry_lock();
	object = stasis_registry.first;
	if (next_page.generation == stasis_registry.generation && next_page.first == first)
		object = next_page.object;
	else
		for (uint64_t index = 0; object && index < first; object = object->next)
			index += is_in_page(object);
	stasis_registry_unlock();
	return object;
}

static void page_end(uint64_t first, struct stasis_object *object)
{
	stasis_registry_lock();
	next_page.generation = stasis_registry.generation;
	next_page.first = first;
	next_page.object = object;
	stasis_registry_unlock();
}

static int page_fill(uint64_t first, struct stasis_phase_page *ret_page, struct stasis_error *err)
{
	ret_page->exports = (struct stasis_wire_exports){.first = first};
	ret_page->descriptors.count = 0;
	ret_page->has_more = false;
	for (struct stasis_object *object = page_begin(first); object; object = object->next) {
		uint32_t at = ret_page->exports.count;

		if (!is_in_page(object))
			continue;
		if (at == STASIS_WIRE_DESCRIPTORS_MAX) {
			ret_page->has_more = true;
			page_end(first + at, object);
			return 0;
		}
		if (stasis_object_export(object, &ret_page->descriptors.fds[at], err) != 0) {
			stasis_wire_descriptors_close(&ret_page->descriptors);
			return -1;
		}
		ret_page->descriptors.count++;
		ret_page->exports.items[at] =
			(struct stasis_wire_export){.object = object->id, .bytes = object->bytes};
		ret_page->exports.count++;
	}
	return 0;
}

int stasis_phase_save_page(uint64_t first, struct stasis_phase_page *ret_page,
			   struct stasis_error *err)
{
	return page_fill(first, ret_page, err);
}

int stasis_phase_export_page(uint64_t first, struct stasis_phase_page *ret_page,
			     struct stasis_error *err)
{
	return page_fill(first, ret_page, err);
}

/* ---- giving up ---- */

int stasis_object_unmap(const struct stasis_calls *calls, struct stasis_object *object,
			struct stasis_error *err)
{
	for (struct stasis_mapping *mapping = object->mappings; mapping; mapping = mapping->next) {
		CUresult result;

		if (!mapping->is_mapped)
			continue;
		result = calls->cuMemUnmap(mapping->address, mapping->bytes);
		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_REFUSED, result,
						"unmap %llu bytes at 0x%llx",
						(unsigned long long)mapping->bytes,
						(unsigned long long)mapping->address);
		mapping->is_mapped = false;
		mapping->is_up = false;
	}
	return 0;
}

static void handle_drop(struct stasis_object *object)
{
	stasis_registry_lock();
	object->has_driver_handle = false;
	object->is_recreated = false;
	stasis_registry.generation++;
	stasis_registry_unlock();
	stasis_descriptors_close(&object->descriptor);
}

static int object_take_down(const struct stasis_calls *calls, struct stasis_object *object,
			    struct stasis_wire_done *done, struct stasis_error *err)
{
	CUresult result;

	if (stasis_object_unmap(calls, object, err) != 0)
		return -1;
	if (!object->has_driver_handle)
		return 0;
	result = calls->cuMemRelease(object->driver_handle);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "release memory of %llu bytes",
					(unsigned long long)object->bytes);
	handle_drop(object);
	done->objects++;
	done->bytes += object->bytes;
	return 0;
}

int stasis_phase_prepare_unicast(struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	struct stasis_wire_done done = {.bytes = 0};
	const struct stasis_calls *calls;

	if (calls_need(&calls, err) != 0)
		return -1;
	for (struct stasis_object *object = object_first(); object; object = object->next) {
		if (stasis_object_is_ours(object) &&
		    object_take_down(calls, object, &done, err) != 0)
			return -1;
	}
	*ret_done = done;
	return 0;
}

/* ---- taking back ---- */

static int access_set(const struct stasis_calls *calls, const struct stasis_mapping *mapping,
		      struct stasis_error *err)
{
	for (uint32_t i = 0; i < mapping->access_count; i++) {
		CUmemAccessDesc access = {.location = mapping->access[i].location,
					  .flags = (CUmemAccess_flags)mapping->access[i].rights};
		CUresult result =
			calls->cuMemSetAccess(mapping->address, mapping->bytes, &access, 1);

		if (result != CUDA_SUCCESS)
			return stasis_fail_cuda(err, STASIS_SUSPENDED, result,
						"grant access to %llu bytes at 0x%llx",
						(unsigned long long)mapping->bytes,
						(unsigned long long)mapping->address);
	}
	return 0;
}

static int mapping_map(const struct stasis_calls *calls, struct stasis_mapping *mapping,
		       struct stasis_error *err)
{
	CUresult result = calls->cuMemMap(mapping->address, mapping->bytes, mapping->offset,
					  mapping->object->driver_handle, mapping->flags);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_SUSPENDED, result, "map %llu bytes at 0x%llx",
					(unsigned long long)mapping->bytes,
					(unsigned long long)mapping->address);
	mapping->is_mapped = true;
	return 0;
}

int stasis_object_map_again(const struct stasis_calls *calls, struct stasis_object *object,
			    struct stasis_error *err)
{
	for (struct stasis_mapping *mapping = object->mappings; mapping; mapping = mapping->next) {
		if (mapping->is_up)
			continue;
		if (!mapping->is_mapped && mapping_map(calls, mapping, err) != 0)
			return -1;
		if (access_set(calls, mapping, err) != 0)
			return -1;
		mapping->is_up = true;
	}
	return 0;
}

static bool is_up(const struct stasis_object *object)
{
	if (!object->has_driver_handle)
		return false;
	for (const struct stasis_mapping *mapping = object->mappings; mapping;
	     mapping = mapping->next) {
		if (!mapping->is_up)
			return false;
	}
	return true;
}

/* That nothing was left out: of what was created here, or of all that is ours. */
static int all_up_check(bool is_created_only, struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];

	for (const struct stasis_object *object = object_first(); object; object = object->next) {
		if (!stasis_object_is_ours(object) || is_up(object) ||
		    (is_created_only && object->is_importer))
			continue;
		return stasis_fail(err, STASIS_SUSPENDED,
				   "the object %s of %llu bytes, %s here, is still down: nothing "
				   "that came brought it back",
				   stasis_id_format(&object->id, text),
				   (unsigned long long)object->bytes,
				   object->is_importer ? "imported" : "created");
	}
	return 0;
}

/* Its driver handle is new; `fd` is kept, -1: it was created here. */
static void handle_take(struct stasis_object *object, CUmemGenericAllocationHandle handle, int fd)
{
	if (fd >= 0)
		(void)stasis_descriptors_add(fd);
	stasis_registry_lock();
	object->driver_handle = handle;
	object->has_driver_handle = true;
	object->descriptor = fd;
	object->is_reattached = fd >= 0 && !object->is_importer;
	object->is_recreated = fd < 0;
	stasis_registry.generation++;
	stasis_registry_unlock();
}

static int object_create(const struct stasis_calls *calls, struct stasis_object *object,
			 struct stasis_error *err)
{
	CUmemAllocationProp prop = object->prop;
	CUmemGenericAllocationHandle handle;
	CUresult result;

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	result = calls->cuMemCreate(&handle, object->bytes, &prop, 0);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_SUSPENDED, result,
					"create memory of %llu bytes",
					(unsigned long long)object->bytes);
	handle_take(object, handle, -1);
	return 0;
}

/* Takes *fd if it succeeds. */
static int object_attach(const struct stasis_calls *calls, struct stasis_object *object, int *fd,
			 struct stasis_error *err)
{
	CUmemGenericAllocationHandle handle;
	CUresult result = calls->cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)*fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_SUSPENDED, result,
					"attach memory of %llu bytes",
					(unsigned long long)object->bytes);
	handle_take(object, handle, *fd);
	*fd = -1;
	return 0;
}

static struct stasis_object *object_of_item(const struct stasis_wire_export *item,
					    struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];
	struct stasis_object *object;

	stasis_registry_lock();
	object = stasis_object_find(&item->object);
	stasis_registry_unlock();
	if (!object || !stasis_object_is_ours(object) || object->bytes != item->bytes) {
		(void)stasis_fail(err, STASIS_SUSPENDED,
				  "the object %s of %llu bytes is not this process's to load",
				  stasis_id_format(&item->object, text),
				  (unsigned long long)item->bytes);
		return NULL;
	}
	return object;
}

static int item_load(const struct stasis_calls *calls, const struct stasis_wire_export *item,
		     int *fd, struct stasis_wire_done *done, struct stasis_error *err)
{
	struct stasis_object *object = object_of_item(item, err);
	int result = 0;

	if (!object)
		return -1;
	if (!object->has_driver_handle)
		result = fd ? object_attach(calls, object, fd, err)
			    : object_create(calls, object, err);
	if (result != 0 || stasis_object_map_again(calls, object, err) != 0)
		return -1;
	done->objects++;
	done->bytes += object->bytes;
	return 0;
}

int stasis_phase_load_allocations(const struct stasis_wire_exports *exports,
				  struct stasis_wire_descriptors *descriptors, bool is_last,
				  struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	struct stasis_wire_done done = {.bytes = 0};
	const struct stasis_calls *calls;

	if (calls_need(&calls, err) != 0)
		return -1;
	for (uint32_t i = 0; i < exports->count; i++) {
		int *fd = i < descriptors->count ? &descriptors->fds[i] : NULL;

		if (item_load(calls, &exports->items[i], fd, &done, err) != 0)
			return -1;
	}
	if (is_last && all_up_check(true, err) != 0)
		return -1;
	*ret_done = done;
	return 0;
}

static int object_fetch(const struct stasis_calls *calls, struct stasis_object *object,
			struct stasis_error *err)
{
	uint64_t bytes;
	int result;
	int fd;

	if (stasis_peer_fetch(&object->creator, &object->id,
			      stasis_clock_now_ns() + STASIS_PEER_FETCH_NS, &fd, &bytes, err) != 0)
		return -1;
	if (bytes == object->bytes)
		result = object_attach(calls, object, &fd, err);
	else
		result = stasis_fail(err, STASIS_SUSPENDED,
				     "a peer gave memory of %llu bytes in place of %llu",
				     (unsigned long long)bytes, (unsigned long long)object->bytes);
	stasis_descriptors_close(&fd);
	return result;
}

int stasis_phase_restore_unicast(struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	struct stasis_wire_done done = {.bytes = 0};
	const struct stasis_calls *calls;

	if (calls_need(&calls, err) != 0)
		return -1;
	for (struct stasis_object *object = object_first(); object; object = object->next) {
		if (!stasis_object_is_ours(object) || !object->is_importer)
			continue;
		/* What came with a descriptor, or was made anew here, is up: its creator is not asked. */
		if (!object->has_driver_handle && object_fetch(calls, object, err) != 0)
			return -1;
		if (stasis_object_map_again(calls, object, err) != 0)
			return -1;
		done.objects++;
		done.bytes += object->bytes;
	}
	if (all_up_check(false, err) != 0)
		return -1;
	*ret_done = done;
	return 0;
}
