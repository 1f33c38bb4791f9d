#ifndef STASIS_DRIVER_DEVICE_H
#define STASIS_DRIVER_DEVICE_H

/*
 * The GPUs that this process sees, known by UUID: an ordinal means nothing outside the process that uses
 * it. The driver must have been started. Any thread.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "driver/driver.h"

#define STASIS_DEVICES_MAX 64

struct stasis_device {
	CUdevice device;
	int ordinal;
	struct stasis_id uuid;
};

struct stasis_device_list {
	unsigned int count;
	struct stasis_device devices[STASIS_DEVICES_MAX];
};

/* Every device that this process sees; failures are STASIS_REFUSED. */
NODISCARD int stasis_device_list_read(const struct stasis_driver *driver,
				      struct stasis_device_list *ret_list,
				      struct stasis_error *err);

/* NULL: not in the list. */
const struct stasis_device *stasis_device_list_find(const struct stasis_device_list *list,
						    const struct stasis_id *uuid);

struct stasis_id stasis_id_of_cuda(const CUuuid *uuid);
CUuuid stasis_id_to_cuda(const struct stasis_id *id);

#endif
