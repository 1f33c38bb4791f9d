/* See group_command.h. */

#include "cli/group_command.h"

#include <stdlib.h>

int stasis_cli_pids_init(struct stasis_cli_pids *pids, int argument_count, struct stasis_error *err)
{
	size_t room = (size_t)argument_count + 1;

	*pids = (struct stasis_cli_pids){
		.operands = {.items = calloc(room, sizeof(pids->operands.items[0])), .room = room},
		.pids = calloc(room, sizeof(pids->pids[0])),
	};
	if (pids->operands.items && pids->pids)
		return 0;
	return stasis_fail(err, STASIS_REFUSED, "out of memory");
}

void stasis_cli_pids_fini(struct stasis_cli_pids *pids)
{
	free(pids->operands.items);
	free(pids->pids);
	*pids = (struct stasis_cli_pids){.pids = NULL};
}
