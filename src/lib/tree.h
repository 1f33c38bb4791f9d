#ifndef STASIS_LIB_TREE_H
#define STASIS_LIB_TREE_H

/*
 * Process trees as the driver sees them: who of them uses CUDA. One thread at a time.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "driver/driver.h"
#include "lib/group_work.h"

struct stasis_lib_tree {
	struct stasis_lib_pids running;   /* use CUDA and run */
	struct stasis_lib_pids suspended; /* use CUDA, and somebody has locked or suspended them */
	struct stasis_lib_pids others;    /* shells, data loaders: nothing of theirs is on a GPU */
};

/*
 * `roots` and all their descendants, of which the driver is asked for the state. Refused: one that it does not tell of,
 * because the right to trace it is missing. Freed by _free.
 */
NODISCARD int stasis_lib_tree_read(const struct stasis_driver *driver, const int32_t *roots,
				   size_t root_count, struct stasis_lib_tree *ret_tree,
				   struct stasis_error *err);

void stasis_lib_tree_free(struct stasis_lib_tree *tree);

static inline void cleanup_lib_tree(struct stasis_lib_tree *tree)
{
	stasis_lib_tree_free(tree);
}

/* One that runs and uses CUDA in `later` and not in `earlier`; 0: none. */
int32_t stasis_lib_tree_newcomer(const struct stasis_lib_tree *earlier,
				 const struct stasis_lib_tree *later);

#endif
