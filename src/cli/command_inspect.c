/*
 * stasis inspect IMAGE: what an image holds, from its manifest.
 */

#include <stdio.h>

#include "cli/command.h"

struct inspect_options {
	struct stasis_cli_common common;
	struct stasis_image_options image;
};

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct inspect_options),
	{"--trust", NULL, stasis_cli_parse_flag, offsetof(struct inspect_options, image.is_trusted),
	 NULL, "accept an image of another owner, or one that others can write"},
};

static const struct stasis_cli_syntax syntax = {
	.name = "inspect",
	.operand = "IMAGE",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = offsetof(struct inspect_options, image.path),
};

int stasis_cli_inspect(const char *summary, int argument_count, char **arguments)
{
	struct inspect_options options = {.image = STASIS_IMAGE_OPTIONS_INIT};
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
				      stasis_library_inspect(session.library, &options.image));
}
