#ifndef STASIS_CLI_OPTIONS_H
#define STASIS_CLI_OPTIONS_H

/*
 * The command line's options as tables: one row an option, one parser a type of value. A value that is
 * refused is named and changes nothing: a command's options are parsed into a copy that counts only when
 * all of them were good.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct stasis_cli_option;

/* Parses `text` into the field at `ret_field`. */
typedef int stasis_cli_parser(const struct stasis_cli_option *option, const char *text,
			      void *ret_field, struct stasis_error *err);

/* A word that an option accepts and the number it stands for. The list ends with a NULL word. */
struct stasis_cli_choice {
	const char *word;
	int value;
};

struct stasis_cli_option {
	const char *name;       /* "--bytes" */
	const char *value_name; /* "N"; NULL: the option has no value */
	stasis_cli_parser *parse;
	size_t offset; /* of its field in the command's options */
	const struct stasis_cli_choice *choices;
	const char *help;
};

/* What every command takes; the first member of each command's options. */
struct stasis_cli_common {
	bool is_json;
	bool is_verbose;
	bool is_help;
};

stasis_cli_parser stasis_cli_parse_flag;     /* bool */
stasis_cli_parser stasis_cli_parse_text;     /* const char *, not empty */
stasis_cli_parser stasis_cli_parse_bytes;    /* uint64_t */
stasis_cli_parser stasis_cli_parse_duration; /* uint64_t, in nanoseconds */
stasis_cli_parser stasis_cli_parse_ordinal;  /* uint32_t */
stasis_cli_parser stasis_cli_parse_choice;   /* int */

/* Operands that are processes; `ret_pids` has room for all. */
struct stasis_cli_operands;
NODISCARD int stasis_cli_parse_pids(const struct stasis_cli_operands *operands, int32_t *ret_pids,
				    struct stasis_error *err);

/* An operand that is a process. */
NODISCARD int stasis_cli_parse_pid(const char *text, int32_t *ret_pid, struct stasis_error *err);

/* Operands of a command that takes several; with room for as many as there are arguments. */
struct stasis_cli_operands {
	const char **items; /* the caller's */
	size_t room;
	size_t count;
};

struct stasis_cli_syntax {
	const char *name;    /* of the command */
	const char *operand; /* "IMAGE"; NULL: it takes none */
	const struct stasis_cli_option *options;
	size_t option_count;
	size_t operand_offset;    /* of a const char *, or of a struct stasis_cli_operands */
	bool has_operands;        /* the latter */
	bool is_operand_needless; /* none will do */
	const char
		*rest; /* what follows the options and is no operand, for the help; NULL: nothing */
};

/* The common options, for each command's table. */
#define STASIS_CLI_COMMON_OPTIONS(type)                                                            \
	{"--json",                                                                                 \
	 NULL,                                                                                     \
	 stasis_cli_parse_flag,                                                                    \
	 offsetof(type, common.is_json),                                                           \
	 NULL,                                                                                     \
	 "print one JSON object instead of text"},                                                 \
		{"--verbose",                                                                      \
		 NULL,                                                                             \
		 stasis_cli_parse_flag,                                                            \
		 offsetof(type, common.is_verbose),                                                \
		 NULL,                                                                             \
		 "say more, on standard error"},                                                   \
	{                                                                                          \
		"--help", NULL, stasis_cli_parse_flag, offsetof(type, common.is_help), NULL,       \
			"print this"                                                               \
	}

/*
 * Parses all that follows the command's name into `options` (of `options_bytes`, holding the defaults),
 * which is unchanged where anything was refused. With --help nothing after it is looked at.
 */
NODISCARD int stasis_cli_parse(const struct stasis_cli_syntax *syntax, int argument_count,
			       char **arguments, size_t options_bytes, void *options,
			       struct stasis_error *err);

void stasis_cli_help_print(const struct stasis_cli_syntax *syntax, const char *summary);

#endif
