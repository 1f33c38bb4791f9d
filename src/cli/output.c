/*
 * See output.h. In JSON a dotted key becomes an object in an object, a component of digits an element of
 * an array: "extent.0.bytes" is .extent[0].bytes. Whole numbers become numbers, and so do the values of
 * keys that end in "seconds", "gbps" or "ratio"; everything else stays a text.
 */

#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/phases.h"

struct status_word {
	enum stasis_status status;
	const char *word;
};

static const struct status_word status_words[] = {
	{STASIS_OK, "ok"},
	{STASIS_REFUSED, "refused"},
	{STASIS_USAGE, "usage"},
	{STASIS_SUSPENDED, "suspended"},
	{STASIS_LOST, "lost"},
	{STASIS_BAD_IMAGE, "bad_image"},
	{STASIS_INTERNAL, "internal"},
};

/* Keys that come several times; in JSON always arrays. */
static const char *const repeated_keys[] = {"phase", "state", "warning"};

const char *stasis_cli_status_word(enum stasis_status status)
{
	for (size_t i = 0; i < ARRAY_COUNT(status_words); i++) {
		if (status_words[i].status == status)
			return status_words[i].word;
	}
	return "unknown";
}

void stasis_cli_output_init(struct stasis_cli_output *output, bool is_json)
{
	*output = (struct stasis_cli_output){.root = is_json ? json_object() : NULL};
	output->is_out_of_memory = is_json && !output->root;
	output->progress.is_on = !is_json && isatty(STDERR_FILENO) == 1;
}

static bool text_is_digits(const char *text, size_t bytes)
{
	return bytes > 0 && strspn(text, "0123456789") >= bytes;
}

static bool key_is_real(const char *key)
{
	static const char *const tails[] = {"seconds", "gbps", "ratio"};

	for (size_t i = 0; i < ARRAY_COUNT(tails); i++) {
		size_t bytes = strlen(key);
		size_t tail = strlen(tails[i]);

		if (bytes >= tail && strcmp(key + bytes - tail, tails[i]) == 0)
			return true;
	}
	return false;
}

/* A text of somebody else's, a path for one, may hold anything; JSON holds UTF-8 only. NULL: no memory. */
static json_t *json_of_text(const char *text)
{
	json_t *value = json_string(text);
	char *copy = value ? NULL : strdup(text);

	if (value || !copy)
		return value;
	for (char *at = copy; *at; at++) {
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	}
	value = json_string(copy);
	free(copy);
	return value;
}

static json_t *json_of_value(const char *key, const char *value)
{
	char *end = NULL;
	long long whole;
	double real;

	if (text_is_digits(value, strlen(value))) {
		errno = 0;
		whole = strtoll(value, &end, 10);
		if (errno == 0)
			return json_integer(whole);
	}
	if (key_is_real(key)) {
		real = strtod(value, &end);
		if (end != value && !*end)
			return json_real(real);
	}
	return json_of_text(value);
}

/* The member `name` of an object, or the element of that index of an array; made if it is not there. */
static json_t *json_descend(json_t *parent, const char *name, bool is_array)
{
	json_t *child;

	if (json_is_array(parent)) {
		size_t index = (size_t)strtoull(name, NULL, 10);

		child = json_array_get(parent, index);
		if (!child && json_array_append_new(parent, json_object()) == 0)
			child = json_array_get(parent, json_array_size(parent) - 1);
		return child;
	}
	child = json_object_get(parent, name);
	if (child)
		return child;
	child = is_array ? json_array() : json_object();
	return json_object_set_new(parent, name, child) == 0 ? child : NULL;
}

static bool key_is_repeated(const char *key)
{
	for (size_t i = 0; i < ARRAY_COUNT(repeated_keys); i++) {
		if (strcmp(repeated_keys[i], key) == 0)
			return true;
	}
	return false;
}

/* 0, or -1 where memory ran out or the key does not fit what is there already. */
static int json_put(json_t *root, const char *key, const char *value)
{
	json_t *at = root;
	const char *part = key;
	const char *dot;

	for (dot = strchr(part, '.'); dot && at; dot = strchr(part, '.')) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%.*s", (int)(dot - part), part);
		at = json_descend(at, name, text_is_digits(dot + 1, strcspn(dot + 1, ".")));
		part = dot + 1;
	}
	if (at && key_is_repeated(key)) {
		at = json_descend(at, part, true);
		return json_array_append_new(at, json_of_value(key, value));
	}
	if (json_is_array(at))
		return json_array_append_new(at, json_of_value(key, value));
	return json_object_set_new(at, part, json_of_value(key, value));
}

/* A reader that went away has what it wanted: that is no failure of ours. */
static void output_flush(struct stasis_cli_output *output)
{
	errno = 0;
	if (fflush(stdout) != 0 && errno != EPIPE)
		output->is_write_failed = true;
}

/* On one line, whatever is in it: a path must not be able to begin a line or to steer a terminal. */
static void line_end(FILE *stream, const char *text)
{
	for (const char *at = text; *at; at++) {
		bool is_control = (unsigned char)*at < 0x20 || *at == 0x7f;

		(void)fputc(is_control ? '?' : *at, stream);
	}
	(void)fputc('\n', stream);
}

static void text_print(struct stasis_cli_output *output, const char *key, const char *value)
{
	stasis_cli_progress_clear(&output->progress);
	if (strcmp(key, "phase") == 0) {
		(void)printf("phase=%-22s %s\n", value, stasis_cli_phase_sentence(value));
	} else {
		(void)printf("%s=", key);
		line_end(stdout, value);
	}
	output_flush(output);
}

void stasis_cli_output_event(const char *key, const char *value, void *argument)
{
	struct stasis_cli_output *output = argument;

	if (strcmp(key, "progress") == 0)
		stasis_cli_progress_draw(&output->progress, value);
	else if (!output->root)
		text_print(output, key, value);
	else if (json_put(output->root, key, value) != 0)
		output->is_out_of_memory = true;
}

static void json_finish(struct stasis_cli_output *output, enum stasis_status status,
			const char *error)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", (int)status);
	stasis_cli_output_event("status", stasis_cli_status_word(status), output);
	stasis_cli_output_event("exit_status", number, output);
	if (*error)
		stasis_cli_output_event("error", error, output);
	if (output->root && json_dumpf(output->root, stdout, JSON_INDENT(2)) != 0)
		output->is_out_of_memory = true;
	(void)fputc('\n', stdout);
	json_decref(output->root);
	output->root = NULL;
}

int stasis_cli_output_finish(struct stasis_cli_output *output, enum stasis_status status,
			     const char *error)
{
	bool is_json = output->root != NULL;

	stasis_cli_progress_clear(&output->progress);
	if (is_json)
		json_finish(output, status, error);
	if (*error) {
		(void)fputs("stasis: error: ", stderr);
		line_end(stderr, error);
	}
	if (output->is_out_of_memory)
		(void)fputs("stasis: error: the JSON object could not be made whole\n", stderr);
	output_flush(output);
	if (output->is_write_failed)
		(void)fputs("stasis: error: standard output could not be written\n", stderr);
	if (status == STASIS_OK && (output->is_out_of_memory || output->is_write_failed))
		return STASIS_REFUSED;
	return (int)status;
}
