/*
 * stasis gc DIR: removes what unfinished captures left.
 */

#include "cli/image_command.h"

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct stasis_cli_image_options),
};

static const struct stasis_cli_syntax syntax = {
	.name = "gc",
	.operand = "DIR",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = offsetof(struct stasis_cli_image_options, image.path),
};

int stasis_cli_gc(const char *summary, int argument_count, char **arguments)
{
	return stasis_cli_image_run(&syntax, summary, argument_count, arguments,
				    stasis_library_collect);
}
