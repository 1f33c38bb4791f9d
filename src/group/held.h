#ifndef STASIS_GROUP_HELD_H
#define STASIS_GROUP_HELD_H

/*
 * What processes still hold of the GPUs once the driver has checkpointed them: device files that somebody else than the
 * driver's CUDA part opened, as NVML does. It holds no memory, but a GPU that is in use can be neither reset nor given to
 * another machine, and CRIU has to be told of it. One thread at a time.
 */

#include "group/group.h"

/*
 * An event "still_held" for each descriptor and each mapping of a device file in a process of the group, which names
 * process, file and the library that is likely to have opened it. Where one cannot look, a warning says so.
 */
void stasis_held_tell(const struct stasis_group *group);

#endif
