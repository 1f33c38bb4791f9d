#ifndef STASIS_BASE_PROCESS_TREE_H
#define STASIS_BASE_PROCESS_TREE_H

/*
 * Processes and their descendants, by who is whose parent in /proc (proc(5)). A process whose parent has ended belongs
 * to whoever adopted it, and is in no tree of ours then. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * `roots` and all their descendants that live now, parents before children, each once; zombies are left out. The caller
 * frees the array. Refused: a root that is not there.
 */
NODISCARD int stasis_process_tree(const int32_t *roots, size_t root_count, int32_t **ret_pids,
				  size_t *ret_count, struct stasis_error *err);

#endif
