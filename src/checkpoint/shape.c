/*
 * The driver's description of a target's memory: judged once, and each entry's GPU found. An entry says
 * nothing of its GPU but through its stream: the order of the entries means nothing, and the context
 * attribute of a mapped pointer is NULL.
 */

#include "base/number.h"
#include "checkpoint/internal.h"

static int entry_check(const CUcheckpointCustomStoragePerDeviceData *entry, unsigned int index,
		       uint64_t *io_total_bytes, struct stasis_error *err)
{
	uint64_t end;

	if (!entry->devPtr)
		return stasis_fail(err, STASIS_LOST, "entry %u has no pointer", index);
	if (!entry->size)
		return stasis_fail(err, STASIS_LOST, "entry %u has no size", index);
	if (!entry->stream)
		return stasis_fail(err, STASIS_LOST, "entry %u has no stream", index);
	if (!stasis_add_u64(entry->devPtr, entry->size, &end))
		return stasis_fail(err, STASIS_LOST, "entry %u ends beyond all addresses", index);
	if (!stasis_add_u64(*io_total_bytes, entry->size, io_total_bytes))
		return stasis_fail(err, STASIS_LOST, "the sizes' sum overflows at entry %u", index);
	return 0;
}

static int info_check(const CUcheckpointCustomStorageInfo *info, struct stasis_error *err)
{
	uint64_t total_bytes = 0;

	if (!info)
		return stasis_fail(err, STASIS_LOST, "there is none");
	if (!info->handle)
		return stasis_fail(err, STASIS_LOST, "it has no handle");
	if (info->deviceCount > STASIS_DEVICES_MAX)
		return stasis_fail(err, STASIS_LOST, "it has %u entries; %d are the most possible",
				   info->deviceCount, STASIS_DEVICES_MAX);
	if (info->deviceCount && !info->perDeviceData)
		return stasis_fail(err, STASIS_LOST, "it has %u entries and no array",
				   info->deviceCount);
	for (unsigned int i = 0; i < info->deviceCount; i++) {
		if (entry_check(&info->perDeviceData[i], i, &total_bytes, err) != 0)
			return -1;
	}
	return 0;
}

/* The device that a context is of, asked of the driver by making it current for the moment. */
static CUresult context_device(const struct stasis_driver *driver, CUcontext context,
			       CUdevice *ret_device)
{
	CUcontext popped = NULL;
	CUresult result = driver->cuCtxPushCurrent(context);

	if (result != CUDA_SUCCESS)
		return result;
	result = driver->cuCtxGetDevice(ret_device);
	(void)driver->cuCtxPopCurrent(&popped);
	return result;
}

/* The stream's context and device; the latter asked in two ways, which must agree. */
static int stream_read(const struct stasis_driver *driver, CUstream stream, unsigned int index,
		       struct stasis_view *view, struct stasis_error *err)
{
	CUgreenCtx green = NULL;
	CUdevice by_context = -1;
	CUdevice by_stream = -1;
	CUresult result = driver->cuStreamGetCtx(stream, &view->context, &green);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_LOST, result,
					"entry %u: find its stream's context", index);
	if (!view->context)
		return stasis_fail(err, STASIS_LOST, "entry %u: its stream has no context", index);
	result = context_device(driver, view->context, &by_context);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_LOST, result,
					"entry %u: find its context's GPU", index);
	result = driver->cuStreamGetDevice(stream, &by_stream);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_LOST, result, "entry %u: find its stream's GPU",
					index);
	if (by_context != by_stream)
		return stasis_fail(err, STASIS_LOST,
				   "entry %u: its stream is of device %d, its context of device %d",
				   index, by_stream, by_context);
	view->device.device = by_stream;
	return 0;
}

/* The handle's own UUID, found again among the devices: handles are not compared, nor taken for ordinals. */
static int device_find(const struct stasis_driver *driver, const struct stasis_device_list *list,
		       unsigned int index, struct stasis_view *view, struct stasis_error *err)
{
	const struct stasis_device *device;
	char text[STASIS_UUID_TEXT_BYTES];
	struct stasis_id uuid;
	CUuuid answer = {0};
	CUresult result = driver->cuDeviceGetUuid(&answer, view->device.device);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_LOST, result, "entry %u: read its GPU's UUID",
					index);
	uuid = stasis_id_of_cuda(&answer);
	device = stasis_device_list_find(list, &uuid);
	if (!device)
		return stasis_fail(err, STASIS_LOST, "entry %u is on %s, which is not visible here",
				   index, stasis_uuid_format(&uuid, text));
	view->device = *device;
	return 0;
}

static int views_check_distinct(const struct stasis_view *views, unsigned int count,
				struct stasis_error *err)
{
	char text[STASIS_UUID_TEXT_BYTES];

	for (unsigned int i = 0; i < count; i++) {
		for (unsigned int k = 0; k < i; k++) {
			if (stasis_id_equal(&views[i].device.uuid, &views[k].device.uuid))
				return stasis_fail(err, STASIS_LOST,
						   "entries %u and %u are both on %s", k, i,
						   stasis_uuid_format(&views[i].device.uuid, text));
		}
	}
	return 0;
}

int stasis_shape_read(const struct stasis_driver *driver, const CUcheckpointCustomStorageInfo *info,
		      struct stasis_view views[STASIS_DEVICES_MAX], unsigned int *ret_view_count,
		      struct stasis_error *err)
{
	struct stasis_device_list list;

	if (info_check(info, err) != 0)
		return -1;
	if (stasis_device_list_read(driver, &list, err) != 0)
		return -1;
	for (unsigned int i = 0; i < info->deviceCount; i++) {
		const CUcheckpointCustomStoragePerDeviceData *entry = &info->perDeviceData[i];

		views[i] = (struct stasis_view){
			.pointer = entry->devPtr, .bytes = entry->size, .stream = entry->stream};
		if (stream_read(driver, entry->stream, i, &views[i], err) != 0 ||
		    device_find(driver, &list, i, &views[i], err) != 0)
			return -1;
	}
	if (views_check_distinct(views, info->deviceCount, err) != 0)
		return -1;
	*ret_view_count = info->deviceCount;
	return 0;
}
