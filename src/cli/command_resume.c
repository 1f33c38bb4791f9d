/*
 * stasis resume PID... or DIR: gives suspended programs their GPU back, all of an image together.
 */

#include <string.h>

#include "base/cleanup.h"
#include "cli/group_command.h"

struct resume_options {
	struct stasis_cli_common common;
	struct stasis_resume_options library;
	struct stasis_cli_operands operands;
	int verify;
};

static const struct stasis_cli_choice verify_choices[] = {
	{"before", STASIS_VERIFY_BEFORE},
	{"loading", STASIS_VERIFY_LOADING},
	{"off", STASIS_VERIFY_OFF},
	{NULL, 0},
};

#define FIELD(member) offsetof(struct resume_options, member)

/* clang-format off */
static const struct stasis_cli_option option_table[] = {
	{"--tree", NULL, stasis_cli_parse_flag, FIELD(library.is_tree), NULL,
	 "PID is at the head of a tree that was suspended"},
	{"--verify", "before|loading|off", stasis_cli_parse_choice, FIELD(verify), verify_choices,
	 "when digests are compared (loading)"},
	{"--timeout", "T", stasis_cli_parse_duration, FIELD(library.timeout_ns), NULL,
	 "for all of it, with ms, s, m (300s)"},
	{"--without-missing", NULL, stasis_cli_parse_flag, FIELD(library.is_without_missing), NULL,
	 "go on without processes that have ended"},
	{"--trust", NULL, stasis_cli_parse_flag, FIELD(library.is_trusted), NULL,
	 "accept an image of another owner, or one that others can write"},
	{"--workers", "N", stasis_cli_parse_ordinal, FIELD(library.workers), NULL,
	 "threads that move bytes (as many as processors, at most 16)"},
	STASIS_CLI_COMMON_OPTIONS(struct resume_options),
};
/* clang-format on */

static const struct stasis_cli_syntax syntax = {
	.name = "resume",
	.operand = "PID... | DIR",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = FIELD(operands),
	.has_operands = true,
};

static bool is_number(const char *text)
{
	return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* One operand that is no number is the image. */
static int operands_settle(struct resume_options *options, int32_t *pids, struct stasis_error *err)
{
	const struct stasis_cli_operands *operands = &options->operands;

	if (operands->count == 1 && !is_number(operands->items[0])) {
		options->library.image_path = operands->items[0];
		return 0;
	}
	if (stasis_cli_parse_pids(operands, pids, err) != 0)
		return -1;
	options->library.pids = pids;
	options->library.count = operands->count;
	return 0;
}

static int options_parse(struct resume_options *options, struct stasis_cli_pids *pids,
			 int argument_count, char **arguments, struct stasis_error *err)
{
	if (stasis_cli_pids_init(pids, argument_count, err) != 0)
		return -1;
	options->operands = pids->operands;
	if (stasis_cli_parse(&syntax, argument_count, arguments, sizeof(*options), options, err) !=
		    0 ||
	    (!options->common.is_help && operands_settle(options, pids->pids, err) != 0))
		return -1;
	options->library.verify = (enum stasis_verify)options->verify;
	return 0;
}

int stasis_cli_resume(const char *summary, int argument_count, char **arguments)
{
	struct resume_options options = {
		.library = STASIS_RESUME_OPTIONS_INIT,
		.verify = STASIS_VERIFY_LOADING,
	};
	CLEANUP(cli_pids) struct stasis_cli_pids pids = {.pids = NULL};
	CLEANUP(fd) int cancel_fd = -1;
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
	cancel_fd = stasis_cli_cancel_fd_open();
	options.library.cancel_fd = cancel_fd;
	return stasis_cli_session_end(&session,
				      stasis_library_resume(session.library, &options.library));
}
