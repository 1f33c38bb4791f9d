/*
 * stasis reserve DIR: room for the next capture, allocated ahead.
 */

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/command.h"

struct reserve_options {
	struct stasis_cli_common common;
	struct stasis_reserve_options library;
};

#define FIELD(member) offsetof(struct reserve_options, member)

static const struct stasis_cli_option option_table[] = {
	{"--bytes", "N", stasis_cli_parse_bytes, FIELD(library.bytes), NULL,
	 "device memory that the capture may hold, with K, M, G, T"},
	{"--gpus", "N", stasis_cli_parse_ordinal, FIELD(library.gpus), NULL,
	 "of so many GPUs, divided evenly (1)"},
	{"--remove", NULL, stasis_cli_parse_flag, FIELD(library.is_removing), NULL,
	 "give the room back"},
	STASIS_CLI_COMMON_OPTIONS(struct reserve_options),
};

static const struct stasis_cli_syntax syntax = {
	.name = "reserve",
	.operand = "DIR",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = FIELD(library.path),
};

static int options_settle(const struct reserve_options *options, struct stasis_error *err)
{
	if (options->library.bytes > 0 && options->library.is_removing)
		return stasis_fail(err, STASIS_USAGE,
				   "reserve: --bytes and --remove exclude each other");
	if (options->library.bytes == 0 && !options->library.is_removing)
		return stasis_fail(err, STASIS_USAGE, "reserve: --bytes N is missing");
	return 0;
}

int stasis_cli_reserve(const char *summary, int argument_count, char **arguments)
{
	struct reserve_options options = {.library = STASIS_RESERVE_OPTIONS_INIT};
	CLEANUP(fd) int cancel_fd = -1;
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_cli_parse(&syntax, argument_count, arguments, sizeof(options), &options, &err) !=
	    0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (options_settle(&options, &err) != 0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	cancel_fd = stasis_cli_cancel_fd_open();
	options.library.cancel_fd = cancel_fd;
	return stasis_cli_session_end(&session,
				      stasis_library_reserve(session.library, &options.library));
}
