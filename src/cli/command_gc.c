/*
 * stasis gc DIR: removes what unfinished captures left.
 */

#include <stdio.h>

#include "cli/command.h"

struct gc_options {
	struct stasis_cli_common common;
	struct stasis_image_options image;
};

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct gc_options),
};

static const struct stasis_cli_syntax syntax = {
	.name = "gc",
	.operand = "DIR",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = offsetof(struct gc_options, image.path),
};

int stasis_cli_gc(const char *summary, int argument_count, char **arguments)
{
	struct gc_options options = {.image = STASIS_IMAGE_OPTIONS_INIT};
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_cli_parse(&syntax, argument_count, arguments, sizeof(options), &options, &err) !=
	    0)
		return stasis_cli_refuse(&err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	return stasis_cli_session_end(&session,
				      stasis_library_collect(session.library, &options.image));
}
