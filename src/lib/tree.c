/* See tree.h. */

#include "lib/tree.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/process_tree.h"

static int process_sort(const struct stasis_driver *driver, int32_t pid,
			struct stasis_lib_tree *tree, struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	CUresult result = driver->cuCheckpointProcessGetState(pid, &state);
	char name[STASIS_PROCESS_NAME_BYTES];
	pid_t parent;

	if (result == CUDA_SUCCESS)
		return stasis_lib_pids_add(state == CU_PROCESS_STATE_RUNNING ? &tree->running
									     : &tree->suspended,
					   pid, err);
	/* What the driver says of a process without CUDA, up to 610 at least. */
	if (result == CUDA_ERROR_NOT_INITIALIZED)
		return stasis_lib_pids_add(&tree->others, pid, err);
	if (!stasis_process_parent(pid, &parent))
		return 0; /* It has ended since it was listed. */
	stasis_process_name(pid, name);
	return stasis_fail_cuda(err, STASIS_REFUSED, result,
				"ask whether process %d (%s) of the tree uses CUDA", (int)pid,
				name);
}

int stasis_lib_tree_read(const struct stasis_driver *driver, const int32_t *roots,
			 size_t root_count, struct stasis_lib_tree *ret_tree,
			 struct stasis_error *err)
{
	CLEANUP(lib_tree) struct stasis_lib_tree tree = {.running = {.count = 0}};
	CLEANUP(free) int32_t *pids = NULL;
	char why[STASIS_DRIVER_WHY_BYTES];
	size_t count = 0;

	if (!stasis_driver_has_checkpoint(driver))
		return stasis_fail(err, STASIS_REFUSED, "the driver cannot checkpoint: %s",
				   stasis_driver_why_no_checkpoint(driver, why));
	if (stasis_process_tree(roots, root_count, &pids, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (process_sort(driver, pids[i], &tree, err) != 0)
			return -1;
	}
	*ret_tree = tree;
	tree = (struct stasis_lib_tree){.running = {.count = 0}};
	return 0;
}

void stasis_lib_tree_free(struct stasis_lib_tree *tree)
{
	free(tree->running.items);
	free(tree->suspended.items);
	free(tree->others.items);
	*tree = (struct stasis_lib_tree){.running = {.count = 0}};
}

int32_t stasis_lib_tree_newcomer(const struct stasis_lib_tree *earlier,
				 const struct stasis_lib_tree *later)
{
	for (size_t i = 0; i < later->running.count; i++) {
		bool is_known = false;

		for (size_t j = 0; j < earlier->running.count; j++)
			is_known = is_known || earlier->running.items[j] == later->running.items[i];
		if (!is_known)
			return later->running.items[i];
	}
	return 0;
}
