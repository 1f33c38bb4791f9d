#ifndef STASIS_LIB_CONTROL_FILE_H
#define STASIS_LIB_CONTROL_FILE_H

/*
 * What the interposer in a process says of itself without being asked (wire/control.h): also while another coordinator
 * speaks to it, and while it is suspended.
 */

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "wire/control.h"

/* *ret_is_participant: false where there is no interposer in it; *ret_control is not written then. */
NODISCARD int stasis_lib_control_read(int32_t pid, bool *ret_is_participant,
				      struct stasis_wire_control *ret_control,
				      struct stasis_error *err);

/* Past ARM, it lets go of its memory or has done so: it cannot go on by itself. */
bool stasis_lib_control_is_armed(const struct stasis_wire_control *control);

#endif
