/*
 * stasis run [OPTIONS] [--] COMMAND [ARGUMENT...]: becomes the command, with the interposer in it.
 */

#include <string.h>

#include "cli/command.h"

struct run_options {
	struct stasis_cli_common common;
};

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct run_options),
};

static const struct stasis_cli_syntax syntax = {
	.name = "run",
	.rest = "[--] COMMAND [ARGUMENT...]",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
};

/* Ours are those before the command's name; none of them has a value. */
static int own_count(int argument_count, char **arguments)
{
	int count = 0;

	while (count < argument_count && arguments[count][0] == '-' &&
	       strcmp(arguments[count], "--") != 0)
		count++;
	return count;
}

int stasis_cli_run(const char *summary, int argument_count, char **arguments)
{
	int count = own_count(argument_count, arguments);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct run_options options = {0};
	struct stasis_cli_session session;

	if (stasis_cli_parse(&syntax, count, arguments, sizeof(options), &options, &err) != 0)
		return stasis_cli_refuse(count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (count < argument_count && strcmp(arguments[count], "--") == 0)
		count++;
	if (count == argument_count) {
		(void)stasis_fail(&err, STASIS_USAGE, "COMMAND is missing");
		return stasis_cli_refuse(argument_count, arguments, &err);
	}
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	/* The command starts with the signals that we were started with. */
	stasis_cli_signals_restore();
	return stasis_cli_session_end(&session,
				      stasis_library_run(session.library, arguments + count));
}
