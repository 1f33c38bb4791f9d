#ifndef STASIS_CLI_OUTPUT_H
#define STASIS_CLI_OUTPUT_H

/*
 * What a command prints: its events as `key=value` lines for people and scripts, or, with --json, as one
 * object; and, on a terminal only, a progress line. Nothing else of stasis prints. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <stasis.h>

#include "base/compiler.h"

struct stasis_cli_progress {
	bool is_on; /* standard error is a terminal and nobody asked for JSON */
	bool is_shown;
	char label[32];
	uint64_t start_ns;
	uint64_t drawn_ns;
	uint64_t start_bytes;
};

struct stasis_cli_output {
	json_t *root; /* NULL: text is printed */
	bool is_out_of_memory;
	bool is_write_failed;
	struct stasis_cli_progress progress;
};

void stasis_cli_output_init(struct stasis_cli_output *output, bool is_json);

/* A stasis_event_function; `argument` is the struct stasis_cli_output. */
void stasis_cli_output_event(const char *key, const char *value, void *argument);

/*
 * Prints the error, if any, and the JSON object; frees all. Returns the exit status: the command's own, or
 * STASIS_REFUSED where all went well but the output could not be written.
 */
NODISCARD int stasis_cli_output_finish(struct stasis_cli_output *output, enum stasis_status status,
				       const char *error);

const char *stasis_cli_status_word(enum stasis_status status);

/* Draws "LABEL DONE TOTAL" with rate and time left, at most ten times a second. */
void stasis_cli_progress_draw(struct stasis_cli_progress *progress, const char *value);
void stasis_cli_progress_clear(struct stasis_cli_progress *progress);

#endif
