/*
 * stasis suspend PID...: takes the GPU away from running programs that may share its memory. SIGINT, SIGTERM and SIGHUP
 * give it up in good order.
 */

#include "base/cleanup.h"
#include "cli/group_command.h"

struct suspend_options {
	struct stasis_cli_common common;
	struct stasis_suspend_options library;
	struct stasis_cli_operands operands;
	int file_store;
};

static const struct stasis_cli_choice file_store_choices[] = {
	{"auto", STASIS_FILE_STORE_AUTO},       {"stripes", STASIS_FILE_STORE_STRIPES},
	{"mapping", STASIS_FILE_STORE_MAPPING}, {"direct", STASIS_FILE_STORE_DIRECT},
	{"plain", STASIS_FILE_STORE_PLAIN},     {NULL, 0},
};

#define FIELD(member) offsetof(struct suspend_options, member)

/* clang-format off */
static const struct stasis_cli_option option_table[] = {
	{"--to", "DIR", stasis_cli_parse_text, FIELD(library.image_path), NULL,
	 "becomes the image; must not exist yet (one in memory)"},
	{"--tree", NULL, stasis_cli_parse_flag, FIELD(library.is_tree), NULL,
	 "with all descendants that use CUDA; the others run on"},
	{"--timeout", "T", stasis_cli_parse_duration, FIELD(library.timeout_ns), NULL,
	 "for all of it, with ms, s, m (300s)"},
	{"--gate-timeout", "T", stasis_cli_parse_duration, FIELD(library.gate_timeout_ns), NULL,
	 "for the programs' GPU work to come to rest (30s)"},
	{"--assume-memory", "N", stasis_cli_parse_bytes, FIELD(library.memory_bytes), NULL,
	 "host memory that may be used, with K, M, G, T (what is available)"},
	{"--chunk-bytes", "N", stasis_cli_parse_bytes, FIELD(library.chunk_bytes), NULL,
	 "what is moved and digested at once (4M)"},
	{"--workers", "N", stasis_cli_parse_ordinal, FIELD(library.workers), NULL,
	 "threads that move bytes (as many as processors, at most 16)"},
	{"--file-store", "auto|stripes|mapping|direct|plain", stasis_cli_parse_choice, FIELD(file_store),
	 file_store_choices, "how files are written (by their file system)"},
	STASIS_CLI_COMMON_OPTIONS(struct suspend_options),
};
/* clang-format on */

static const struct stasis_cli_syntax syntax = {
	.name = "suspend",
	.operand = "PID...",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = FIELD(operands),
	.has_operands = true,
};

static int options_parse(struct suspend_options *options, struct stasis_cli_pids *pids,
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
	options->library.file_store = (enum stasis_file_store)options->file_store;
	return 0;
}

int stasis_cli_suspend(const char *summary, int argument_count, char **arguments)
{
	struct suspend_options options = {.library = STASIS_SUSPEND_OPTIONS_INIT};
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
				      stasis_library_suspend(session.library, &options.library));
}
