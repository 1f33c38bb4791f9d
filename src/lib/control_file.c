/* See control_file.h. */

#include "lib/control_file.h"

#include "base/cleanup.h"
#include "base/process.h"
#include "wire/session.h"

int stasis_lib_control_read(int32_t pid, bool *ret_is_participant,
			    struct stasis_wire_control *ret_control, struct stasis_error *err)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	CLEANUP(fd) int door_fd = -1;

	if (stasis_process_open(pid, &process, err) != 0)
		return -1;
	return stasis_wire_control_take(pid, process.pidfd, ret_is_participant, ret_control,
					&door_fd, err);
}

bool stasis_lib_control_is_armed(const struct stasis_wire_control *control)
{
	return control->journal[0] != '\0';
}
