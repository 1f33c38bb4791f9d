/*
 * status: what state the driver has a process in, and, where there is an interposer in it, in which capture that is.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "lib/control_file.h"
#include "lib/library.h"

static int state_read(int32_t pid, CUprocessState *ret_state, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_driver *driver = calloc(1, sizeof(*driver));
	CLEANUP(target) struct stasis_target target = STASIS_TARGET_EMPTY;

	if (!driver)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "load the driver");
	if (stasis_driver_open(NULL, driver, err) != 0 || stasis_driver_start(driver, err) != 0 ||
	    stasis_target_open(driver, pid, &target, err) != 0)
		return -1;
	return stasis_target_state(&target, ret_state, err);
}

static void capture_report(const struct stasis_lib_sink *sink,
			   const struct stasis_wire_control *control)
{
	static const struct stasis_id none;
	const char *phase = control->phase > 0 ? stasis_wire_phase_name(control->phase) : NULL;
	char text[STASIS_ID_TEXT_BYTES];

	stasis_lib_event(sink, "participant", "%s", stasis_id_format(&control->participant, text));
	if (stasis_id_equal(&control->operation, &none))
		return;
	stasis_lib_event(sink, "capture", "%s", stasis_id_format(&control->operation, text));
	stasis_lib_event(sink, "capture_phase", "%s", phase ? phase : "none");
	if (control->image[0] != '\0')
		stasis_lib_event(sink, "image", "%s", control->image);
}

/* What one of the two can say is said; only where neither can is it a failure. */
static int status_report(const struct stasis_lib_sink *sink, int32_t pid, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));
	struct stasis_error no_state = STASIS_ERROR_INIT;
	struct stasis_error no_control = STASIS_ERROR_INIT;
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	bool is_participant = false;
	bool has_state;

	if (!control)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "read the control file");
	has_state = state_read(pid, &state, &no_state) == 0;
	if (stasis_lib_control_read(pid, &is_participant, control, &no_control) != 0)
		is_participant = false;
	if (!has_state && !is_participant) {
		stasis_error_take(err, &no_state);
		return -1;
	}
	stasis_lib_event(sink, "pid", "%d", pid);
	if (has_state)
		stasis_lib_event(sink, "state", "%s", stasis_target_state_name(state));
	else
		stasis_lib_event(sink, "warning", "the driver's state is not known: %s",
				 no_state.text);
	if (is_participant)
		capture_report(sink, control);
	else if (stasis_error_is_set(&no_control))
		stasis_lib_event(sink, "warning", "%s", no_control.text);
	return 0;
}

enum stasis_status stasis_library_process_status(struct stasis_library *library, int32_t pid)
{
	struct stasis_error *err = stasis_lib_begin(library);

	return stasis_lib_end(library, status_report(&library->sink, pid, err));
}
