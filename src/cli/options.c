/*
 * See options.h.
 */

#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* The largest options structure of any command. */
#define OPTIONS_MAX_BYTES 256

int stasis_cli_parse_flag(const struct stasis_cli_option *option, const char *text, void *ret_field,
			  struct stasis_error *err)
{
	bool *flag = ret_field;

	(void)option;
	(void)text;
	(void)err;
	*flag = true;
	return 0;
}

int stasis_cli_parse_text(const struct stasis_cli_option *option, const char *text, void *ret_field,
			  struct stasis_error *err)
{
	const char **field = ret_field;

	if (!*text)
		return stasis_fail(err, STASIS_USAGE, "%s: the value is empty", option->name);
	*field = text;
	return 0;
}

int stasis_cli_parse_bytes(const struct stasis_cli_option *option, const char *text,
			   void *ret_field, struct stasis_error *err)
{
	return stasis_parse_bytes(option->name, text, ret_field, err);
}

int stasis_cli_parse_duration(const struct stasis_cli_option *option, const char *text,
			      void *ret_field, struct stasis_error *err)
{
	return stasis_parse_duration(option->name, text, ret_field, err);
}

int stasis_cli_parse_ordinal(const struct stasis_cli_option *option, const char *text,
			     void *ret_field, struct stasis_error *err)
{
	uint32_t *field = ret_field;
	uint64_t value;

	if (stasis_parse_u64(option->name, text, &value, err) != 0)
		return -1;
	if (value > INT32_MAX)
		return stasis_fail(err, STASIS_USAGE, "%s: '%s' is out of range", option->name,
				   text);
	*field = (uint32_t)value;
	return 0;
}

int stasis_cli_parse_choice(const struct stasis_cli_option *option, const char *text,
			    void *ret_field, struct stasis_error *err)
{
	int *field = ret_field;

	for (const struct stasis_cli_choice *choice = option->choices; choice->word; choice++) {
		if (strcmp(choice->word, text) == 0) {
			*field = choice->value;
			return 0;
		}
	}
	return stasis_fail(err, STASIS_USAGE, "%s: '%s' is none of %s", option->name, text,
			   option->value_name);
}

/* The option that `argument` names, alone or before a '='; *ret_value is behind the '=' or NULL. */
static const struct stasis_cli_option *option_find(const struct stasis_cli_syntax *syntax,
						   const char *argument, const char **ret_value)
{
	const char *equals = strchr(argument, '=');
	size_t name_bytes = equals ? (size_t)(equals - argument) : strlen(argument);

	for (size_t i = 0; i < syntax->option_count; i++) {
		const struct stasis_cli_option *option = &syntax->options[i];

		if (strlen(option->name) == name_bytes &&
		    strncmp(option->name, argument, name_bytes) == 0) {
			*ret_value = equals ? equals + 1 : NULL;
			return option;
		}
	}
	return NULL;
}

static int option_take(const struct stasis_cli_syntax *syntax, char **arguments, int *io_index,
		       char *options, struct stasis_error *err)
{
	const char *argument = arguments[*io_index];
	const char *next = arguments[*io_index + 1];
	const char *value = NULL;
	const struct stasis_cli_option *option = option_find(syntax, argument, &value);

	if (!option)
		return stasis_fail(err, STASIS_USAGE, "unknown option '%s'; see 'stasis %s --help'",
				   argument, syntax->name);
	if (!option->value_name && value)
		return stasis_fail(err, STASIS_USAGE, "%s takes no value", option->name);
	if (option->value_name && !value) {
		if (!next || strncmp(next, "--", 2) == 0)
			return stasis_fail(err, STASIS_USAGE, "%s: the value %s is missing",
					   option->name, option->value_name);
		value = next;
		(*io_index)++;
	}
	return option->parse(option, value, options + option->offset, err);
}

int stasis_cli_parse_pid(const char *text, int32_t *ret_pid, struct stasis_error *err)
{
	uint64_t value;

	if (stasis_parse_u64("PID", text, &value, err) != 0)
		return -1;
	if (value > INT32_MAX)
		return stasis_fail(err, STASIS_USAGE, "PID: '%s' is out of range", text);
	*ret_pid = (int32_t)value;
	return 0;
}

static int operand_take(const struct stasis_cli_syntax *syntax, const char *argument, char *options,
			struct stasis_error *err)
{
	const char **field = (const char **)(void *)(options + syntax->operand_offset);
	struct stasis_cli_operands *list = (void *)(options + syntax->operand_offset);

	if (!syntax->operand)
		return stasis_fail(err, STASIS_USAGE, "unexpected argument '%s'", argument);
	if (!*argument)
		return stasis_fail(err, STASIS_USAGE, "%s is empty", syntax->operand);
	if (syntax->has_operands) {
		if (list->count == list->room)
			return stasis_fail(err, STASIS_INTERNAL, "no room for '%s'", argument);
		list->items[list->count++] = argument;
		return 0;
	}
	if (*field)
		return stasis_fail(err, STASIS_USAGE, "one %s only: '%s' is one too many",
				   syntax->operand, argument);
	*field = argument;
	return 0;
}

static bool is_operand_missing(const struct stasis_cli_syntax *syntax, const char *options)
{
	const void *field = options + syntax->operand_offset;

	if (!syntax->operand)
		return false;
	return syntax->has_operands ? ((const struct stasis_cli_operands *)field)->count == 0
				    : *(const char *const *)field == NULL;
}

static int arguments_take(const struct stasis_cli_syntax *syntax, int argument_count,
			  char **arguments, char *options, struct stasis_error *err)
{
	const struct stasis_cli_common *common = (const void *)options;
	bool are_options = true;

	for (int i = 0; i < argument_count && !common->is_help; i++) {
		int result;

		if (are_options && strcmp(arguments[i], "--") == 0) {
			are_options = false;
			continue;
		}
		if (are_options && arguments[i][0] == '-' && arguments[i][1])
			result = option_take(syntax, arguments, &i, options, err);
		else
			result = operand_take(syntax, arguments[i], options, err);
		if (result != 0)
			return -1;
	}
	if (!common->is_help && !syntax->is_operand_needless && is_operand_missing(syntax, options))
		return stasis_fail(err, STASIS_USAGE, "%s is missing; see 'stasis %s --help'",
				   syntax->operand, syntax->name);
	return 0;
}

int stasis_cli_parse_pids(const struct stasis_cli_operands *operands, int32_t *ret_pids,
			  struct stasis_error *err)
{
	for (size_t i = 0; i < operands->count; i++) {
		if (stasis_cli_parse_pid(operands->items[i], &ret_pids[i], err) != 0)
			return -1;
	}
	return 0;
}

int stasis_cli_parse(const struct stasis_cli_syntax *syntax, int argument_count, char **arguments,
		     size_t options_bytes, void *options, struct stasis_error *err)
{
	_Alignas(max_align_t) char copy[OPTIONS_MAX_BYTES];

	if (options_bytes > sizeof(copy))
		return stasis_fail(err, STASIS_INTERNAL, "options of '%s' are too large",
				   syntax->name);
	memcpy(copy, options, options_bytes);
	if (arguments_take(syntax, argument_count, arguments, copy, err) != 0) {
		stasis_error_context(err, "%s", syntax->name);
		return -1;
	}
	memcpy(options, copy, options_bytes);
	return 0;
}

void stasis_cli_help_print(const struct stasis_cli_syntax *syntax, const char *summary)
{
	const char *rest = syntax->operand ? syntax->operand : syntax->rest;

	(void)printf("usage: stasis %s [OPTIONS]%s%s\n\n%s\n\n", syntax->name, rest ? " " : "",
		     rest ? rest : "", summary);
	for (size_t i = 0; i < syntax->option_count; i++) {
		const struct stasis_cli_option *option = &syntax->options[i];
		char left[64];

		(void)snprintf(left, sizeof(left), "%s%s%s", option->name,
			       option->value_name ? " " : "",
			       option->value_name ? option->value_name : "");
		(void)printf("  %-34s %s\n", left, option->help);
	}
}
