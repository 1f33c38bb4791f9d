#ifndef STASIS_GROUP_FOREIGN_H
#define STASIS_GROUP_FOREIGN_H

/*
 * Descriptors of a process with which it cannot be captured, found from outside:
 *
 *   - an export of the driver's that no participant made. The native checkpoint would give the process new memory
 *     and leave the descriptor, and whoever imports it, the old;
 *   - RDMA devices, over which other hardware may read and write memory that we would give up.
 *
 * What participants export to each other is known by its mark (wire/mark.h) and passed over: it is closed before the
 * native checkpoint. So this may be asked at any time; what is opened later is not seen.
 */

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/process.h"
#include "driver/driver.h"

enum stasis_foreign_kind {
	STASIS_FOREIGN_NONE,
	STASIS_FOREIGN_DRIVER, /* a descriptor of the driver's: perhaps an export */
	STASIS_FOREIGN_RDMA,
};

/*
 * What a descriptor is by its link in /proc/PID/fd, or, where that leads out of our view of the file system (a
 * container's), by the name that /proc/devices has for its device ("" for none).
 */
enum stasis_foreign_kind stasis_foreign_kind(const char *link, const char *device);

/*
 * Refuses, as STASIS_REFUSED and naming process, descriptor and remedy, a process that holds such an export, and, if
 * `releases_memory`, one that holds RDMA devices. The driver must have been started in this process; a context is
 * not needed. Also refused where one cannot look: a process that may not be traced, descriptors that have run out.
 */
NODISCARD int stasis_foreign_check(const struct stasis_driver *driver,
				   const struct stasis_process *process, bool releases_memory,
				   struct stasis_error *err);

typedef void stasis_foreign_found(void *data, int number, const char *link);

/*
 * Calls `found` for each descriptor that is a device file of the driver's, with as much of its link as fits. Refused
 * where one cannot look.
 */
NODISCARD int stasis_foreign_device_files(const struct stasis_process *process,
					  stasis_foreign_found *found, void *data,
					  struct stasis_error *err);

#endif
