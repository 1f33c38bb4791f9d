/*
 * Primary contexts of ours, in which the views of an operation live. See checkpoint.h for which are
 * needed when.
 */

#include <string.h>

#include "checkpoint/internal.h"

static const char *retain_advice(CUresult result)
{
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		return "there is no room for a context of ours, which takes about half a GiB";
	if (result == CUDA_ERROR_DEVICE_UNAVAILABLE)
		return "it is in exclusive or prohibited compute mode, or in use by a process that "
		       "shares it with nobody; a second context is needed (nvidia-smi -c DEFAULT)";
	return NULL;
}

static int context_retain(struct stasis_contexts *contexts, const struct stasis_device *device,
			  struct stasis_error *err)
{
	struct stasis_context *item = &contexts->items[contexts->count];
	char text[STASIS_UUID_TEXT_BYTES];
	CUcontext context = NULL;
	CUresult result = contexts->driver->cuDevicePrimaryCtxRetain(&context, device->device);
	const char *advice = retain_advice(result);

	if (result == CUDA_SUCCESS) {
		*item = (struct stasis_context){.device = *device, .context = context};
		contexts->count++;
		return 0;
	}
	(void)stasis_fail_cuda(err, STASIS_REFUSED, result, "make a context on GPU %d (%s)",
			       device->ordinal, stasis_uuid_format(&device->uuid, text));
	if (advice)
		stasis_error_append(err, ": %s", advice);
	return -1;
}

static int contexts_retain_set(struct stasis_contexts *contexts, const struct stasis_gpu_set *gpus,
			       const struct stasis_device_list *list, struct stasis_error *err)
{
	char text[STASIS_UUID_TEXT_BYTES];

	for (unsigned int i = 0; i < list->count && gpus->count == 0; i++) {
		if (context_retain(contexts, &list->devices[i], err) != 0)
			return -1;
	}
	for (unsigned int i = 0; i < gpus->count; i++) {
		const struct stasis_device *device = stasis_device_list_find(list, &gpus->uuids[i]);

		if (!device)
			return stasis_fail(err, STASIS_REFUSED,
					   "%s is needed and not visible to this process",
					   stasis_uuid_format(&gpus->uuids[i], text));
		if (context_retain(contexts, device, err) != 0)
			return -1;
	}
	return 0;
}

int stasis_contexts_retain(const struct stasis_driver *driver, const struct stasis_gpu_set *gpus,
			   struct stasis_contexts *ret_contexts, struct stasis_error *err)
{
	struct stasis_contexts contexts = {.driver = driver};
	struct stasis_device_list list;

	if (gpus->count > STASIS_DEVICES_MAX)
		return stasis_fail(err, STASIS_REFUSED, "%u GPUs; at most %d are supported",
				   gpus->count, STASIS_DEVICES_MAX);
	if (stasis_device_list_read(driver, &list, err) != 0)
		return -1;
	if (contexts_retain_set(&contexts, gpus, &list, err) != 0) {
		stasis_contexts_release(&contexts);
		return -1;
	}
	*ret_contexts = contexts;
	return 0;
}

void stasis_contexts_release(struct stasis_contexts *contexts)
{
	for (unsigned int i = contexts->count; i > 0; i--)
		(void)contexts->driver->cuDevicePrimaryCtxRelease(
			contexts->items[i - 1].device.device);
	contexts->count = 0;
}

static bool views_have(const struct stasis_view *views, unsigned int view_count,
		       const struct stasis_id *uuid)
{
	for (unsigned int i = 0; i < view_count; i++) {
		if (stasis_id_equal(&views[i].device.uuid, uuid))
			return true;
	}
	return false;
}

static bool contexts_have(const struct stasis_contexts *contexts, const struct stasis_id *uuid)
{
	for (unsigned int i = 0; i < contexts->count; i++) {
		if (stasis_id_equal(&contexts->items[i].device.uuid, uuid))
			return true;
	}
	return false;
}

int stasis_contexts_narrow(struct stasis_contexts *contexts, const struct stasis_view *views,
			   unsigned int view_count, struct stasis_error *err)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < contexts->count; i++) {
		struct stasis_context item = contexts->items[i];

		if (views_have(views, view_count, &item.device.uuid))
			contexts->items[kept++] = item;
		else
			(void)contexts->driver->cuDevicePrimaryCtxRelease(item.device.device);
	}
	contexts->count = kept;
	for (unsigned int i = 0; i < view_count; i++) {
		if (contexts_have(contexts, &views[i].device.uuid))
			continue;
		if (context_retain(contexts, &views[i].device, err) != 0)
			return -1;
	}
	return 0;
}
