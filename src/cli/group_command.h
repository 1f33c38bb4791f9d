#ifndef STASIS_CLI_GROUP_COMMAND_H
#define STASIS_CLI_GROUP_COMMAND_H

/* What the commands that name processes have in common: a list of operands, and pids made of it. */

#include "cli/command.h"

struct stasis_cli_pids {
	struct stasis_cli_operands operands;
	int32_t *pids;
};

/* Room for as many as there are arguments; freed by _fini. */
NODISCARD int stasis_cli_pids_init(struct stasis_cli_pids *pids, int argument_count,
				   struct stasis_error *err);
void stasis_cli_pids_fini(struct stasis_cli_pids *pids);

static inline void cleanup_cli_pids(struct stasis_cli_pids *pids)
{
	stasis_cli_pids_fini(pids);
}

#endif
