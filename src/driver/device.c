/*
 * See device.h.
 */

#include "driver/device.h"

#include <string.h>

_Static_assert(sizeof(CUuuid) == sizeof(struct stasis_id), "both are 16 bytes");

struct stasis_id stasis_id_of_cuda(const CUuuid *uuid)
{
	struct stasis_id id;

	memcpy(id.bytes, uuid->bytes, sizeof(id.bytes));
	return id;
}

CUuuid stasis_id_to_cuda(const struct stasis_id *id)
{
	CUuuid uuid;

	memcpy(uuid.bytes, id->bytes, sizeof(uuid.bytes));
	return uuid;
}

static int device_read(const struct stasis_driver *driver, int ordinal,
		       struct stasis_device *ret_device, struct stasis_error *err)
{
	struct stasis_device device = {.ordinal = ordinal};
	CUuuid uuid = {0};
	CUresult result = driver->cuDeviceGet(&device.device, ordinal);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "open GPU %d", ordinal);
	result = driver->cuDeviceGetUuid(&uuid, device.device);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "read the UUID of GPU %d",
					ordinal);
	device.uuid = stasis_id_of_cuda(&uuid);
	*ret_device = device;
	return 0;
}

int stasis_device_list_read(const struct stasis_driver *driver, struct stasis_device_list *ret_list,
			    struct stasis_error *err)
{
	struct stasis_device_list list = {0};
	int count = 0;
	CUresult result = driver->cuDeviceGetCount(&count);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "count the GPUs");
	if (count < 0 || count > STASIS_DEVICES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "the driver reports %d GPUs; at most %d are supported (narrow "
				   "CUDA_VISIBLE_DEVICES)",
				   count, STASIS_DEVICES_MAX);
	for (int i = 0; i < count; i++) {
		if (device_read(driver, i, &list.devices[i], err) != 0)
			return -1;
	}
	list.count = (unsigned int)count;
	*ret_list = list;
	return 0;
}

const struct stasis_device *stasis_device_list_find(const struct stasis_device_list *list,
						    const struct stasis_id *uuid)
{
	for (unsigned int i = 0; i < list->count; i++) {
		if (stasis_id_equal(&list->devices[i].uuid, uuid))
			return &list->devices[i];
	}
	return NULL;
}
