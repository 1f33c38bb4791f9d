/*
 * stasis recover [PID...]: finishes, or takes back, what a suspend or resume that was killed has left.
 */

#include "base/cleanup.h"
#include "cli/group_command.h"

struct recover_options {
	struct stasis_cli_common common;
	struct stasis_recover_options library;
	struct stasis_cli_operands operands;
};

#define FIELD(member) offsetof(struct recover_options, member)

/* clang-format off */
static const struct stasis_cli_option option_table[] = {
	{"--timeout", "T", stasis_cli_parse_duration, FIELD(library.timeout_ns), NULL,
	 "for each group of programs, with ms, s, m (300s)"},
	STASIS_CLI_COMMON_OPTIONS(struct recover_options),
};
/* clang-format on */

static const struct stasis_cli_syntax syntax = {
	.name = "recover",
	.operand = "[PID...]",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = FIELD(operands),
	.has_operands = true,
	.is_operand_needless = true,
};

static int options_parse(struct recover_options *options, struct stasis_cli_pids *pids,
			 int argument_count, char **arguments, struct stasis_error *err)
{
	if (stasis_cli_pids_init(pids, argument_count, err) != 0)
		return -1;
	options->operands = pids->operands;
	if (stasis_cli_parse(&syntax, argument_count, arguments, sizeof(*options), options, err) !=
		    0 ||
	    (!options->common.is_help &&
	     stasis_cli_parse_pids(&options->operands, pids->pids, err) != 0))
		return -1;
	options->library.pids = pids->pids;
	options->library.count = options->operands.count;
	return 0;
}

int stasis_cli_recover(const char *summary, int argument_count, char **arguments)
{
	struct recover_options options = {.library = STASIS_RECOVER_OPTIONS_INIT};
	CLEANUP(cli_pids) struct stasis_cli_pids pids = {.pids = NULL};
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (options_parse(&options, &pids, argument_count, arguments, &err) != 0)
		return stasis_cli_refuse(argument_count, arguments, &err);
	if (options.common.is_help) {
		stasis_cli_help_print(&syntax, summary);
		return STASIS_OK;
	}
	if (!stasis_cli_session_begin(&session, &options.common))
		return STASIS_REFUSED;
	return stasis_cli_session_end(&session,
				      stasis_library_recover(session.library, &options.library));
}
