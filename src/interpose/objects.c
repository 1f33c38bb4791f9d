/* See objects.h. */

#include "interpose/objects.h"

#include "interpose/calls.h"
#include "interpose/descriptors.h"
#include "interpose/multicast.h"

bool stasis_use_begin(uint64_t handle, struct stasis_use *ret_use)
{
	bool is_there = false;

	*ret_use = (struct stasis_use){.driver_handle = handle};
	if (!stasis_handle_is_virtual(handle))
		return true;
	stasis_registry_lock();
	ret_use->handle = stasis_handle_find(handle);
	if (ret_use->handle && ret_use->handle->object->has_driver_handle) {
		ret_use->object = ret_use->handle->object;
		ret_use->driver_handle = ret_use->object->driver_handle;
		stasis_object_pin(ret_use->object);
		/* Another thread may release the handle meanwhile. */
		ret_use->handle->mapping_count++;
		is_there = true;
	}
	stasis_registry_unlock();
	return is_there;
}

void stasis_use_end(struct stasis_use *use)
{
	struct stasis_gone gone;

	if (!use->object)
		return;
	stasis_registry_lock();
	stasis_handle_unuse(use->handle);
	stasis_object_unpin(use->object, &gone);
	stasis_registry_unlock();
	(void)stasis_object_end(&gone, NULL);
}

void stasis_object_mark_shared(struct stasis_object *object)
{
	if (object->is_shared)
		return;
	object->is_shared = true;
	stasis_registry.generation++;
}

/* What was bound was bound no more with the driver's object; its memory may have waited for that. */
static void bindings_end(struct stasis_object *object)
{
	while (object->bindings) {
		struct stasis_binding *binding = object->bindings;
		struct stasis_gone gone;

		object->bindings = binding->next;
		stasis_registry_lock();
		stasis_binding_drop(binding, &gone);
		stasis_registry_unlock();
		/* An allocation, which has no bindings: it goes no deeper. */
		(void)stasis_object_end(&gone, NULL); /* NOLINT(misc-no-recursion) */
	}
}

CUresult stasis_object_end(struct stasis_gone *gone, __typeof__(cuMemRelease) *release)
{
	struct stasis_object *object = gone->object;
	CUresult result = CUDA_SUCCESS;

	if (!object)
		return CUDA_SUCCESS;
	if (!release && stasis_calls_get())
		release = stasis_calls_get()->cuMemRelease;
	/* Before the handle: the kernel lets the memory go with the last of both. */
	stasis_descriptors_close(&object->descriptor);
	if (object->has_driver_handle && release)
		result = release(object->driver_handle);
	bindings_end(object);
	stasis_object_free(object);
	gone->object = NULL;
	return result;
}
