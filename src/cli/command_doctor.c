/*
 * stasis doctor: what this machine can do.
 */

#include <stdio.h>

#include "cli/command.h"

struct doctor_options {
	struct stasis_cli_common common;
	const char *directory;
};

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct doctor_options),
	{"--dir", "DIR", stasis_cli_parse_text, offsetof(struct doctor_options, directory), NULL,
	 "where images would lie (the present directory)"},
};

static const struct stasis_cli_syntax syntax = {
	.name = "doctor",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
};

int stasis_cli_doctor(const char *summary, int argument_count, char **arguments)
{
	struct doctor_options options = {.directory = "."};
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_cli_parse(&syntax, argument_count, arguments, sizeof(options), &options, &err) !=
	    0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	return stasis_cli_session_end(&session,
				      stasis_library_diagnose(session.library, options.directory));
}
