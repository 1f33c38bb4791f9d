#ifndef STASIS_GROUP_REBUILD_H
#define STASIS_GROUP_REBUILD_H

/*
 * A suspended group becomes a running one again, from its image.
 *
 *     native restore and unlock (all) → LOAD_ALLOCATIONS (owners make their memory anew, contents are loaded) →
 *     descriptors to the other holders → RESTORE_UNICAST → multicast in four barriers → compared → OPEN
 *
 * Everything that can be refused is refused before the first of it. What fails later puts the processes to sleep again:
 * their gates were shut all the time, and the image is whole.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"
#include "group/journal.h"
#include "group/kept.h"
#include "image/image.h"
#include "transfer/transfer.h"

enum stasis_rebuild_verify {
	STASIS_REBUILD_VERIFY_BEFORE,
	STASIS_REBUILD_VERIFY_LOADING,
	STASIS_REBUILD_VERIFY_OFF,
};

struct stasis_rebuild_options {
	const char *image_path; /* absolute; of the partial, where is_partial */
	bool is_partial;
	bool is_trusted;
	bool is_without_missing; /* go on without processes of the image that have ended */
	enum stasis_rebuild_verify verify;
	struct stasis_transfer_options transfer; /* driver is filled in */
	/*
	 * Descriptors that have kept all the shared memory: it is attached to, and nothing is loaded. NULL, or one that
	 * lacks any: the image is loaded.
	 */
	const struct stasis_kept *kept;
};

enum stasis_group_fate {
	STASIS_GROUP_UNSETTLED, /* the journal stays */
	STASIS_GROUP_SUSPENDED, /* all that live */
	STASIS_GROUP_RUNNING,   /* all that live; nobody needs the image any more */
};

/*
 * On success all processes run. On failure err->status says what became of the worst off, and *ret_fate of all that
 * live; with STASIS_SUSPENDED and STASIS_BAD_IMAGE all are suspended and intact.
 */
NODISCARD int stasis_group_rebuild(struct stasis_group *group,
				   const struct stasis_rebuild_options *options,
				   enum stasis_group_fate *ret_fate, struct stasis_error *err);

/*
 * Finishes, or takes back, what a coordinator that died has left, as its journal says; the group's processes are
 * those of the journal that still live. *ret_fate as above: STASIS_GROUP_SUSPENDED where the capture had been
 * finished.
 */
NODISCARD int stasis_group_recover(struct stasis_group *group, struct stasis_journal *journal,
				   const struct stasis_rebuild_options *options,
				   enum stasis_group_fate *ret_fate, struct stasis_error *err);

#endif
