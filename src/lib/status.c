/*
 * status: what state the driver has a process in.
 */

#include <stdlib.h>

#include "base/cleanup.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "lib/library.h"

static int status_report(const struct stasis_lib_sink *sink, int32_t pid, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_driver *driver = calloc(1, sizeof(*driver));
	CLEANUP(target) struct stasis_target target = STASIS_TARGET_EMPTY;
	CUprocessState state;

	if (!driver)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "load the driver");
	if (stasis_driver_open(NULL, driver, err) != 0 || stasis_driver_start(driver, err) != 0 ||
	    stasis_target_open(driver, pid, &target, err) != 0 ||
	    stasis_target_state(&target, &state, err) != 0)
		return -1;
	stasis_lib_event(sink, "pid", "%d", pid);
	stasis_lib_event(sink, "state", "%s", stasis_target_state_name(state));
	return 0;
}

enum stasis_status stasis_library_process_status(struct stasis_library *library, int32_t pid)
{
	struct stasis_error *err = stasis_lib_begin(library);

	return stasis_lib_end(library, status_report(&library->sink, pid, err));
}
