/*
 * stasis bench transfer: how fast bytes move on this machine, beside what the machine can do. Rows come as
 * events, member by member; as text each is one line of a table, printed when its last member has come.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"

struct bench_options {
	struct stasis_cli_common common;
	struct stasis_bench_options library;
	const char *figure;
};

#define FIELD(member) offsetof(struct bench_options, member)

/* clang-format off */
static const struct stasis_cli_option option_table[] = {
	{"--bytes", "N", stasis_cli_parse_bytes, FIELD(library.transfer_bytes), NULL,
	 "device memory to move, with K, M, G, T (1G)"},
	{"--disk-bytes", "N", stasis_cli_parse_bytes, FIELD(library.disk_bytes), NULL,
	 "likewise for the rows of the disk (a quarter of it)"},
	{"--tmpfs", "DIR", stasis_cli_parse_text, FIELD(library.tmpfs_dir), NULL,
	 "a directory in memory (/dev/shm)"},
	{"--disk", "DIR", stasis_cli_parse_text, FIELD(library.disk_dir), NULL,
	 "a directory on a disk; without it there are no rows of the disk"},
	{"--rows", "PATTERNS", stasis_cli_parse_text, FIELD(library.rows), NULL,
	 "only these, such as 'load/*,save/tmpfs'"},
	{"--runs", "N", stasis_cli_parse_ordinal, FIELD(library.runs), NULL,
	 "of each row; the median counts (5)"},
	{"--quick", NULL, stasis_cli_parse_flag, FIELD(library.is_quick), NULL,
	 "the defaults only, three runs each"},
	{"--device", "N", stasis_cli_parse_ordinal, FIELD(library.device), NULL,
	 "ordinal of the device (0)"},
	STASIS_CLI_COMMON_OPTIONS(struct bench_options),
};
/* clang-format on */

static const struct stasis_cli_syntax syntax = {
	.name = "bench",
	.operand = "transfer",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
	.operand_offset = FIELD(figure),
};

struct column {
	const char *member;
	const char *title;
	int width; /* below 0: to the left */
};

static const struct column columns[] = {
	{"name", "row", -26},      {"store", "store", -8},   {"bytes", "bytes", 12},
	{"workers", "workers", 8}, {"stripes", "files", 6},  {"seconds", "seconds", 10},
	{"gbps", "GB/s", 8},       {"loop_gbps", "loop", 8}, {"link_gbps", "link", 8},
	{"limit", "against", 8},   {"ratio", "ratio", 7},
};

struct table {
	struct stasis_cli_output *output;
	char cells[ARRAY_COUNT(columns)][64];
	bool has_title;
};

static void title_print(void)
{
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		(void)printf("%*s%s", columns[i].width, columns[i].title,
			     i + 1 < ARRAY_COUNT(columns) ? " " : "\n");
}

static void row_print(struct table *table)
{
	stasis_cli_progress_clear(&table->output->progress);
	if (!table->has_title)
		title_print();
	table->has_title = true;
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		(void)printf("%*s%s", columns[i].width, *table->cells[i] ? table->cells[i] : "-",
			     i + 1 < ARRAY_COUNT(columns) ? " " : "\n");
	memset(table->cells, 0, sizeof(table->cells));
	if (fflush(stdout) != 0)
		table->output->is_write_failed = true;
}

/* A stasis_event_function. */
static void table_event(const char *key, const char *value, void *argument)
{
	struct table *table = argument;
	const char *member = strrchr(key, '.');

	if (table->output->root || strncmp(key, "row.", 4) != 0 || !member) {
		stasis_cli_output_event(key, value, table->output);
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		if (strcmp(columns[i].member, member + 1) == 0)
			(void)snprintf(table->cells[i], sizeof(table->cells[i]), "%s", value);
	}
	if (strcmp(member + 1, "ratio") == 0)
		row_print(table);
}

static int options_settle(const struct bench_options *options, struct stasis_error *err)
{
	if (strcmp(options->figure, "transfer") != 0)
		return stasis_fail(err, STASIS_USAGE,
				   "bench: '%s' is not known; there is 'bench transfer'",
				   options->figure);
	return 0;
}

int stasis_cli_bench(const char *summary, int argument_count, char **arguments)
{
	struct bench_options options = {.library = STASIS_BENCH_OPTIONS_INIT};
	CLEANUP(fd) int cancel_fd = -1;
	struct stasis_cli_session session;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct table table = {.output = &session.output};

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
	stasis_library_set_events(session.library, table_event, &table);
	cancel_fd = stasis_cli_cancel_fd_open();
	options.library.cancel_fd = cancel_fd;
	return stasis_cli_session_end(
		&session, stasis_library_bench_transfer(session.library, &options.library));
}
