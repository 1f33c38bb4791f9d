/*
 * The progress line: what is moved, how much, how fast, how long it will yet take. Drawn over itself on
 * standard error.
 */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/output.h"

#define DRAW_INTERVAL_NS (100 * STASIS_NS_PER_MS)

void stasis_cli_progress_clear(struct stasis_cli_progress *progress)
{
	if (progress->is_shown)
		(void)fputs("\r\033[K", stderr);
	progress->is_shown = false;
}

static void progress_begin(struct stasis_cli_progress *progress, const char *label, uint64_t done,
			   uint64_t now_ns)
{
	(void)snprintf(progress->label, sizeof(progress->label), "%s", label);
	progress->start_ns = now_ns;
	progress->start_bytes = done;
	progress->drawn_ns = 0;
}

static void progress_print(struct stasis_cli_progress *progress, uint64_t done, uint64_t total,
			   uint64_t now_ns)
{
	double seconds = stasis_seconds(now_ns - progress->start_ns);
	double rate = seconds > 0 ? (double)(done - progress->start_bytes) / seconds : 0;
	char done_text[32];
	char total_text[32];
	char rate_text[32];

	(void)stasis_format_bytes(done, done_text, sizeof(done_text));
	(void)stasis_format_bytes(total, total_text, sizeof(total_text));
	(void)stasis_format_bytes((uint64_t)rate, rate_text, sizeof(rate_text));
	(void)fprintf(stderr, "\r\033[K%s: %s of %s", progress->label, done_text, total_text);
	if (rate > 0)
		(void)fprintf(stderr, ", %s/s, %.0f s left", rate_text,
			      (double)(total - done) / rate);
	(void)fflush(stderr);
	progress->is_shown = true;
	progress->drawn_ns = now_ns;
}

/* "LABEL DONE TOTAL". */
static bool value_parse(const char *value, char *label, size_t label_bytes, uint64_t *ret_done,
			uint64_t *ret_total)
{
	char copy[96];
	char *rest = NULL;
	const char *parts[3];

	(void)snprintf(copy, sizeof(copy), "%s", value);
	parts[0] = strtok_r(copy, " ", &rest);
	parts[1] = strtok_r(NULL, " ", &rest);
	parts[2] = strtok_r(NULL, " ", &rest);
	if (!parts[0] || !parts[1] || !parts[2])
		return false;
	(void)snprintf(label, label_bytes, "%s", parts[0]);
	return stasis_parse_u64("progress", parts[1], ret_done, NULL) == 0 &&
	       stasis_parse_u64("progress", parts[2], ret_total, NULL) == 0 &&
	       *ret_done <= *ret_total;
}

void stasis_cli_progress_draw(struct stasis_cli_progress *progress, const char *value)
{
	uint64_t now_ns = stasis_clock_now_ns();
	uint64_t done = 0;
	uint64_t total = 0;
	char label[32];

	if (!progress->is_on || !value_parse(value, label, sizeof(label), &done, &total))
		return;
	if (strcmp(label, progress->label) != 0 || done < progress->start_bytes)
		progress_begin(progress, label, done, now_ns);
	if (done == total)
		stasis_cli_progress_clear(progress);
	else if (now_ns - progress->drawn_ns >= DRAW_INTERVAL_NS)
		progress_print(progress, done, total, now_ns);
}
