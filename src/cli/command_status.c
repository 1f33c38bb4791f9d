/*
 * stasis status PID: the driver's state of a process.
 */

#include <stdio.h>

#include "cli/command.h"

struct status_options {
	struct stasis_cli_common common;
	const char *pid_text;
};

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct status_options),
};

static const struct stasis_cli_syntax syntax = {
	.name = "status",
	.operand = "PID",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = offsetof(struct status_options, pid_text),
};

int stasis_cli_status(const char *summary, int argument_count, char **arguments)
{
	struct status_options options = {0};
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;
	int32_t pid = 0;

	if (stasis_cli_parse(&syntax, argument_count, arguments, sizeof(options), &options, &err) !=
	    0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (stasis_cli_parse_pid(options.pid_text, &pid, &err) != 0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	return stasis_cli_session_end(&session,
				      stasis_library_process_status(session.library, pid));
}
