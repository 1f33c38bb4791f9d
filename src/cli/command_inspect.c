/*
 * stasis inspect IMAGE: what an image holds, from its manifest.
 */

#include "cli/image_command.h"

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct stasis_cli_image_options),
	{"--trust", NULL, stasis_cli_parse_flag,
	 offsetof(struct stasis_cli_image_options, image.is_trusted), NULL,
	 "accept an image of another owner, or one that others can write"},
};

static const struct stasis_cli_syntax syntax = {
	.name = "inspect",
	.operand = "IMAGE",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = offsetof(struct stasis_cli_image_options, image.path),
};

int stasis_cli_inspect(const char *summary, int argument_count, char **arguments)
{
	return stasis_cli_image_run(&syntax, summary, argument_count, arguments,
				    stasis_library_inspect);
}
