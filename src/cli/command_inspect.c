/*
 * stasis inspect IMAGE: what an image holds, from its manifest. stasis inspect PID...: what running programs hold.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/image_command.h"

static const struct stasis_cli_option option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct stasis_cli_image_options),
	{"--trust", NULL, stasis_cli_parse_flag,
	 offsetof(struct stasis_cli_image_options, image.is_trusted), NULL,
	 "accept an image of another owner, or one that others can write"},
};

static const struct stasis_cli_syntax syntax = {
	.name = "inspect",
	.operand = "IMAGE | PID...",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = offsetof(struct stasis_cli_image_options, image.path),
};

static const struct stasis_cli_option process_option_table[] = {
	STASIS_CLI_COMMON_OPTIONS(struct stasis_cli_image_options),
};

static const struct stasis_cli_syntax process_syntax = {
	.name = "inspect",
	.options = process_option_table,
	.option_count = ARRAY_COUNT(process_option_table),
};

/* A number that names no file is a process. */
static bool is_process(const char *argument)
{
	return argument[0] != '\0' && strspn(argument, "0123456789") == strlen(argument) &&
	       access(argument, F_OK) != 0;
}

static int first_operand(int argument_count, char **arguments)
{
	int i = 0;

	while (i < argument_count && arguments[i][0] == '-')
		i++;
	return i;
}

/* Splits what is given into pids and options; both arrays have room for all. */
static int arguments_split(int argument_count, char **arguments, int32_t *pids, size_t *ret_count,
			   char **options, int *ret_option_count, struct stasis_error *err)
{
	size_t count = 0;
	int option_count = 0;

	for (int i = 0; i < argument_count; i++) {
		if (arguments[i][0] == '-')
			options[option_count++] = arguments[i];
		else if (stasis_cli_parse_pid(arguments[i], &pids[count], err) == 0)
			count++;
		else
			return -1;
	}
	*ret_count = count;
	*ret_option_count = option_count;
	return 0;
}

static int processes_inspect(const char *summary, int argument_count, char **arguments)
{
	size_t room = (size_t)argument_count + 1;
	CLEANUP(free) int32_t *pids = calloc(room, sizeof(*pids));
	CLEANUP(free) char **option_arguments = calloc(room, sizeof(*option_arguments));
	struct stasis_cli_image_options options = {0};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_cli_session session;
	int option_count = 0;
	size_t count = 0;

	if (!pids || !option_arguments) {
		(void)stasis_fail(&err, STASIS_REFUSED, "out of memory");
		return stasis_cli_refuse(argument_count, arguments, &err);
	}
	if (arguments_split(argument_count, arguments, pids, &count, option_arguments,
			    &option_count, &err) != 0 ||
	    stasis_cli_parse(&process_syntax, option_count, option_arguments, sizeof(options),
			     &options, &err) != 0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	return stasis_cli_session_end(
		&session, stasis_library_inspect_processes(session.library, pids, count));
}

int stasis_cli_inspect(const char *summary, int argument_count, char **arguments)
{
	int first = first_operand(argument_count, arguments);

	if (first < argument_count && is_process(arguments[first]))
		return processes_inspect(summary, argument_count, arguments);
	return stasis_cli_image_run(&syntax, summary, argument_count, arguments,
				    stasis_library_inspect);
}
