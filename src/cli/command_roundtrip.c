/*
 * stasis roundtrip: the proof of one process. SIGINT, SIGTERM and SIGHUP give it up in good order: they
 * are read from a descriptor that the library watches.
 */

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/command.h"

/* Enumerations are parsed as int and put into the library's options at the end. */
struct roundtrip_options {
	struct stasis_cli_common common;
	struct stasis_roundtrip_options library;
	int store;
	int verify;
	int file_store;
	int compress;
	bool is_truncating;
	bool is_corrupting;
};

static const struct stasis_cli_choice store_choices[] = {
	{"custom", STASIS_STORE_CUSTOM},
	{"native", STASIS_STORE_NATIVE},
	{NULL, 0},
};

static const struct stasis_cli_choice verify_choices[] = {
	{"before", STASIS_VERIFY_BEFORE},
	{"loading", STASIS_VERIFY_LOADING},
	{"off", STASIS_VERIFY_OFF},
	{NULL, 0},
};

static const struct stasis_cli_choice file_store_choices[] = {
	{"auto", STASIS_FILE_STORE_AUTO},       {"stripes", STASIS_FILE_STORE_STRIPES},
	{"mapping", STASIS_FILE_STORE_MAPPING}, {"direct", STASIS_FILE_STORE_DIRECT},
	{"plain", STASIS_FILE_STORE_PLAIN},     {NULL, 0},
};

static const struct stasis_cli_choice compress_choices[] = {
	{"none", STASIS_COMPRESS_NONE},
	{"lz4", STASIS_COMPRESS_LZ4},
	{"zstd", STASIS_COMPRESS_ZSTD},
	{NULL, 0},
};

#define FIELD(member) offsetof(struct roundtrip_options, member)

/* clang-format off */
static const struct stasis_cli_option option_table[] = {
	{"--artifact-dir", "DIR", stasis_cli_parse_text, FIELD(library.artifact_dir), NULL,
	 "becomes the image; must not exist yet"},
	{"--bytes", "N", stasis_cli_parse_bytes, FIELD(library.bytes), NULL,
	 "device memory of the program, with K, M, G, T (64M)"},
	{"--device", "N", stasis_cli_parse_ordinal, FIELD(library.device), NULL,
	 "ordinal of the device (0)"},
	{"--store", "custom|native", stasis_cli_parse_choice, FIELD(store), store_choices,
	 "who moves the bytes (custom where the driver can)"},
	{"--truncate-before-restore", NULL, stasis_cli_parse_flag, FIELD(is_truncating), NULL,
	 "take a byte off the image: it must be refused"},
	{"--corrupt-before-restore", NULL, stasis_cli_parse_flag, FIELD(is_corrupting), NULL,
	 "change a byte of the image: it must be found"},
	{"--verify", "before|loading|off", stasis_cli_parse_choice, FIELD(verify), verify_choices,
	 "when digests are compared (before)"},
	{"--timeout", "T", stasis_cli_parse_duration, FIELD(library.timeout_ns), NULL,
	 "for all of it, with ms, s, m (120s)"},
	{"--no-fallback", NULL, stasis_cli_parse_flag, FIELD(library.is_without_fallback), NULL,
	 "reserve no host memory against a failing disk"},
	{"--file-store", "auto|stripes|mapping|direct|plain", stasis_cli_parse_choice, FIELD(file_store),
	 file_store_choices, "how files are written and read (by their file system)"},
	{"--chunk-bytes", "N", stasis_cli_parse_bytes, FIELD(library.chunk_bytes), NULL,
	 "what is moved and digested at once (4M)"},
	{"--workers", "N", stasis_cli_parse_ordinal, FIELD(library.workers), NULL,
	 "threads that move bytes (as many as processors, at most 16)"},
	{"--compress", "none|lz4|zstd", stasis_cli_parse_choice, FIELD(compress), compress_choices,
	 "compress chunks that get shorter by it (none)"},
	STASIS_CLI_COMMON_OPTIONS(struct roundtrip_options),
};
/* clang-format on */

static const struct stasis_cli_syntax syntax = {
	.name = "roundtrip",
	.options = option_table,
	.option_count = ARRAY_COUNT(option_table),
};

static int options_settle(struct roundtrip_options *options, struct stasis_error *err)
{
	if (!options->library.artifact_dir)
		return stasis_fail(err, STASIS_USAGE, "roundtrip: --artifact-dir DIR is missing");
	if (options->is_truncating && options->is_corrupting)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: --truncate-before-restore and "
				   "--corrupt-before-restore exclude each other");
	if (options->is_truncating)
		options->library.damage = STASIS_DAMAGE_TRUNCATE;
	if (options->is_corrupting)
		options->library.damage = STASIS_DAMAGE_CORRUPT;
	options->library.store = (enum stasis_store)options->store;
	options->library.verify = (enum stasis_verify)options->verify;
	options->library.file_store = (enum stasis_file_store)options->file_store;
	options->library.compress = (enum stasis_compress)options->compress;
	return 0;
}

int stasis_cli_roundtrip(const char *summary, int argument_count, char **arguments)
{
	struct roundtrip_options options = {.library = STASIS_ROUNDTRIP_OPTIONS_INIT};
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
				      stasis_library_roundtrip(session.library, &options.library));
}
