/*
 * The program of the round trip: a plain CUDA program that knows nothing of checkpoints. It fills device
 * memory with a pattern, keeps no copy of it, and compares it when told to.
 *
 *     stasis-workload --bytes N --device N --libcuda PATH --seed N [--tracer PID]
 *
 * Standard output and input are pipes of lines, for coordination only:
 *
 *     > ready POINTER BYTES      (numbers are decimal)
 *     < verify                   > verified BYTES   or   mismatch OFFSET EXPECTED FOUND
 *     < operate                  > operated
 *     < quit
 *
 * or, to any of these, "error TEXT". When its input ends without `quit`, whoever led it has died: it then
 * compares by itself, writes its verdict ("passed", "mismatch …", "error …") to the file that
 * STASIS_WORKLOAD_REPORT names, if any, and exits.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "workload/memory.h"

#define LINE_BYTES 1200

enum verdict_exit { EXIT_PASSED = 0, EXIT_WRONG = 1 };

static int options_parse(int argument_count, char **arguments,
			 struct stasis_workload_options *options, uint64_t *ret_tracer,
			 struct stasis_error *err)
{
	uint64_t device = 0;

	for (int i = 1; i + 1 < argument_count; i += 2) {
		const char *name = arguments[i];
		const char *value = arguments[i + 1];
		int result = 0;

		if (strcmp(name, "--bytes") == 0)
			result = stasis_parse_u64(name, value, &options->bytes, err);
		else if (strcmp(name, "--device") == 0)
			result = stasis_parse_u64(name, value, &device, err);
		else if (strcmp(name, "--seed") == 0)
			result = stasis_parse_u64(name, value, &options->seed, err);
		else if (strcmp(name, "--tracer") == 0)
			result = stasis_parse_u64(name, value, ret_tracer, err);
		else if (strcmp(name, "--libcuda") == 0)
			options->libcuda = value;
		else
			result = stasis_fail(err, STASIS_USAGE, "unknown option '%s'", name);
		if (result != 0)
			return -1;
	}
	if (argument_count % 2 == 0 || !options->bytes || device > INT32_MAX)
		return stasis_fail(err, STASIS_USAGE, "--bytes N is missing, or an option's value");
	options->device = (int)device;
	return 0;
}

/* One line in one write: shorter than PIPE_BUF, so never torn. A leader that is gone is no error. */
FORMAT(1, 2) static void answer(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (bytes < 0)
		return;
	if ((size_t)bytes > sizeof(line) - 2)
		bytes = (int)sizeof(line) - 2;
	line[bytes] = '\n';
	(void)!stasis_write_all(STDOUT_FILENO, line, (size_t)bytes + 1);
}

/* Appears whole or not at all, so that nobody reads half a verdict. */
static void report_write(const char *text)
{
	const char *path = secure_getenv("STASIS_WORKLOAD_REPORT");
	char temporary[4096];
	CLEANUP(fd) int fd = -1;

	if (!path || !*path)
		return;
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= sizeof(temporary))
		return;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || stasis_write_all(fd, text, strlen(text)) != 0 || rename(temporary, path) != 0)
		(void)fprintf(stderr, "stasis-workload: error: report '%s' not written\n", path);
}

/* "verified …", "mismatch …" or "error …". */
static enum verdict_exit memory_verify(struct stasis_workload_memory *memory, char *text)
{
	struct stasis_workload_mismatch mismatch;
	struct stasis_error err = STASIS_ERROR_INIT;
	bool is_right = false;

	if (stasis_workload_memory_verify(memory, &is_right, &mismatch, &err) != 0) {
		(void)snprintf(text, LINE_BYTES, "error %s", err.text);
		return EXIT_WRONG;
	}
	if (!is_right) {
		(void)snprintf(text, LINE_BYTES, "mismatch %" PRIu64 " %u %u", mismatch.offset,
			       mismatch.expected, mismatch.found);
		return EXIT_WRONG;
	}
	(void)snprintf(text, LINE_BYTES, "verified %" PRIu64, memory->bytes);
	return EXIT_PASSED;
}

static void operation_answer(struct stasis_workload_memory *memory)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	if (stasis_workload_memory_operate(memory, &err) != 0)
		answer("error %s", err.text);
	else
		answer("operated");
}

/* The leader died: the verdict is ours to find. Blocks for as long as our GPU state is suspended. */
static enum verdict_exit orphan_verdict(struct stasis_workload_memory *memory)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	char text[LINE_BYTES];
	enum verdict_exit exit_status = memory_verify(memory, text);

	if (exit_status == EXIT_PASSED && stasis_workload_memory_operate(memory, &err) != 0) {
		(void)snprintf(text, sizeof(text), "error %s", err.text);
		exit_status = EXIT_WRONG;
	}
	report_write(exit_status == EXIT_PASSED ? "passed\n" : text);
	return exit_status;
}

/* Serves until `quit` or the end of input. */
static enum verdict_exit commands_serve(struct stasis_workload_memory *memory)
{
	enum verdict_exit exit_status = EXIT_WRONG;
	char line[64];
	char text[LINE_BYTES] = "error told to quit before anything was compared";

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "quit") == 0) {
			report_write(exit_status == EXIT_PASSED ? "passed\n" : text);
			return exit_status;
		}
		if (strcmp(line, "verify") == 0) {
			exit_status = memory_verify(memory, text);
			answer("%s", text);
		} else if (strcmp(line, "operate") == 0) {
			operation_answer(memory);
		} else {
			answer("error unknown command '%s'", line);
		}
	}
	return orphan_verdict(memory);
}

int main(int argument_count, char **arguments)
{
	struct stasis_workload_options options = {0};
	struct stasis_workload_memory memory;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t tracer = 0;

	(void)signal(SIGPIPE, SIG_IGN);
	if (options_parse(argument_count, arguments, &options, &tracer, &err) != 0) {
		(void)fprintf(stderr, "stasis-workload: error: %s\n", err.text);
		return STASIS_USAGE;
	}
	/*
	 * Under Yama's scope 1 only an ancestor may act on us; the supervisor and its children are named
	 * in case the process that started us dies. Without Yama the call fails and nothing is needed.
	 */
	if (tracer)
		(void)prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
	if (stasis_workload_memory_open(&options, &memory, &err) != 0) {
		answer("error %s", err.text);
		return EXIT_WRONG;
	}
	answer("ready %llu %" PRIu64, memory.pointer, memory.bytes);
	return (int)commands_serve(&memory);
}
