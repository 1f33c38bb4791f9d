#ifndef STASIS_CLI_COMMAND_H
#define STASIS_CLI_COMMAND_H

/*
 * The commands, one file each, and what they have in common: a use of the library whose events are
 * printed.
 */

#include <stdbool.h>

#include <stasis.h>

#include "base/compiler.h"
#include "cli/options.h"
#include "cli/output.h"

/* Runs with what follows the command's name; returns the exit status. */
typedef int stasis_cli_command(const char *summary, int argument_count, char **arguments);

stasis_cli_command stasis_cli_roundtrip;
stasis_cli_command stasis_cli_suspend;
stasis_cli_command stasis_cli_resume;
stasis_cli_command stasis_cli_recover;
stasis_cli_command stasis_cli_inspect;
stasis_cli_command stasis_cli_verify;
stasis_cli_command stasis_cli_reserve;
stasis_cli_command stasis_cli_gc;
stasis_cli_command stasis_cli_bench;
stasis_cli_command stasis_cli_run;
stasis_cli_command stasis_cli_doctor;
stasis_cli_command stasis_cli_status;

struct stasis_cli_session {
	struct stasis_library *library;
	struct stasis_cli_output output;
};

/* False: there is no memory, which has been said. */
NODISCARD bool stasis_cli_session_begin(struct stasis_cli_session *session,
					const struct stasis_cli_common *common);

/* Prints the end of the output, frees all, returns the exit status. */
NODISCARD int stasis_cli_session_end(struct stasis_cli_session *session, enum stasis_status status);

/* Says what was wrong with the arguments, as JSON too if they ask for it; returns the exit status for that. */
int stasis_cli_refuse(int argument_count, char **arguments, const struct stasis_error *err);

/* Gives signals the meaning that they had when we were started. */
void stasis_cli_signals_restore(void);

/*
 * A descriptor that turns readable on the first SIGINT, SIGTERM or SIGHUP, which no longer end us. -1: there
 * is none, and they do.
 */
int stasis_cli_cancel_fd_open(void);

#endif
