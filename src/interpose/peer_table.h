#ifndef STASIS_INTERPOSE_PEER_TABLE_H
#define STASIS_INTERPOSE_PEER_TABLE_H

/*
 * For the peer modules only: the coordinator's table of participants and their incarnations. Any thread.
 */

#include <stdbool.h>

#include "base/id.h"

/* False: the participant is not in it. */
bool stasis_peer_table_find(const struct stasis_id *participant, struct stasis_id *ret_incarnation);

/* In a forked child, see fork.h. */
void stasis_peer_table_forget(void);

#endif
