#ifndef STASIS_INTERPOSE_DEVICES_H
#define STASIS_INTERPOSE_DEVICES_H

/* The UUID of a device by its ordinal in this process, asked for once. Any thread, with no lock held. */

#include "base/id.h"
#include "driver/abi.h"

/* All zero for host memory, and where the driver does not say. */
void stasis_device_uuid(const CUmemLocation *location, struct stasis_id *ret_uuid);

#endif
