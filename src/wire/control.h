#ifndef STASIS_WIRE_CONTROL_H
#define STASIS_WIRE_CONTROL_H

/*
 * How a coordinator finds its way into a participant, with no path and no name: the participant holds both
 * ends of a socketpair, its *door*, and a memory file named `stasis-control` that says which descriptor
 * the far end is. The coordinator takes both by pidfd_getfd and uses the far end only to hand in one end
 * of a fresh socketpair, the *session*. End of file on a session means that the other side is gone.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/message.h"

#define STASIS_WIRE_CONTROL_BYTES 8448

struct stasis_wire_control {
	int32_t door_fd; /* the far end, in the participant */
	uint32_t pid;    /* in the participant's own namespace */
	struct stasis_id participant;
	struct stasis_id incarnation;
	struct stasis_id operation; /* all zero: none runs */
	uint8_t phase;              /* the last one begun; 0: none */
	char build[STASIS_WIRE_BUILD_TEXT_BYTES];
	char journal[STASIS_WIRE_PATH_BYTES]; /* empty until ARM */
	char image[STASIS_WIRE_PATH_BYTES];
};

NODISCARD int stasis_wire_control_encode(const struct stasis_wire_control *control,
					 uint8_t bytes[STASIS_WIRE_CONTROL_BYTES],
					 struct stasis_error *err);
NODISCARD int stasis_wire_control_decode(const uint8_t *bytes, size_t byte_count,
					 struct stasis_wire_control *ret_control,
					 struct stasis_error *err);

/* In the participant. The file is written again whenever one of its fields changes, by one thread. */
NODISCARD int stasis_wire_control_create(const struct stasis_wire_control *control, int *ret_fd,
					 struct stasis_error *err);
NODISCARD int stasis_wire_control_write(int fd, const struct stasis_wire_control *control,
					struct stasis_error *err);

/* One that is just being written is read again. */
NODISCARD int stasis_wire_control_read(int fd, struct stasis_wire_control *ret_control,
				       struct stasis_error *err);

#endif
