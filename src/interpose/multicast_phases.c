/*
 * The phases of multicast. A process that has made such an object is refused, so that nothing is captured that could
 * not be brought back; for any other there is nothing to do.
 */

#include "interpose/multicast.h"
#include "interpose/phases.h"

#define PHASE(name)                                                                                \
	int stasis_phase_##name(struct stasis_wire_done *ret_done, struct stasis_error *err)       \
	{                                                                                          \
		*ret_done = (struct stasis_wire_done){0};                                          \
		return multicast_check(err);                                                       \
	}

static int multicast_check(struct stasis_error *err)
{
	if (stasis_multicast_created() > 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "this process has made multicast objects, which cannot be "
				   "captured");
	return 0;
}

PHASE(prepare_multicast)
PHASE(restore_multicast_creators)
PHASE(restore_multicast_importers)
PHASE(restore_multicast_devices)
PHASE(restore_multicast_bindings)
