/*
 * See workload.h.
 */

#include "lib/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"

#define EXIT_NO_PROGRAM 127

/* Runs in the forked child: only calls that are safe after a fork. */
NORETURN static void program_exec(char **arguments, int command_fd, int answer_fd)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)pthread_sigmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (dup2(command_fd, STDIN_FILENO) >= 0 && dup2(answer_fd, STDOUT_FILENO) >= 0)
		(void)execv(arguments[0], arguments);
	_exit(EXIT_NO_PROGRAM);
}

int stasis_lib_workload_start(const struct stasis_lib_workload_plan *plan,
			      struct stasis_lib_workload *workload, struct stasis_error *err)
{
	char texts[4][24];
	const char *const words[] = {
		plan->program, "--bytes",  texts[0], "--device",  texts[1],      "--seed",
		texts[2],      "--tracer", texts[3], "--libcuda", plan->libcuda, NULL,
	};
	char *arguments[ARRAY_COUNT(words)];
	int commands[2];
	int answers[2];
	pid_t pid;

	(void)snprintf(texts[0], sizeof(texts[0]), "%" PRIu64, plan->bytes);
	(void)snprintf(texts[1], sizeof(texts[1]), "%" PRIu32, plan->device);
	(void)snprintf(texts[2], sizeof(texts[2]), "%" PRIu64, plan->seed);
	(void)snprintf(texts[3], sizeof(texts[3]), "%d", (int)plan->tracer);
	/* execv() takes writable strings for historical reasons and does not write them. */
	memcpy(arguments, words, sizeof(arguments));

	if (pipe2(commands, O_CLOEXEC) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "pipe to the workload");
	if (pipe2(answers, O_CLOEXEC) != 0) {
		(void)stasis_fail_errno(err, STASIS_REFUSED, "pipe from the workload");
		(void)close(commands[0]);
		(void)close(commands[1]);
		return -1;
	}
	workload->command_fd = commands[1];
	workload->answer_fd = answers[0];
	pid = fork();
	if (pid == 0)
		program_exec(arguments, commands[0], answers[1]);
	if (pid < 0)
		(void)stasis_fail_errno(err, STASIS_REFUSED, "fork the workload");
	else
		workload->pid = pid;
	(void)close(commands[0]);
	(void)close(answers[1]);
	return pid < 0 ? -1 : 0;
}

/* How the program ended, after its pipe did. It is left unreaped, so that its pid stays its own. */
static int end_describe(struct stasis_lib_workload *workload, const char *what,
			struct stasis_error *err)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)workload->pid, &info, WEXITED | WNOWAIT) != 0)
		return stasis_fail_errno(err, STASIS_LOST, "%s: wait for workload %d", what,
					 (int)workload->pid);
	if (info.si_code == CLD_EXITED && info.si_status == EXIT_NO_PROGRAM)
		return stasis_fail(err, STASIS_REFUSED,
				   "%s: the workload program could not be executed", what);
	return stasis_fail(err, STASIS_LOST, "%s: workload %d ended: %s %d", what,
			   (int)workload->pid,
			   info.si_code == CLD_EXITED ? "exit status" : "signal", info.si_status);
}

/* Waits until there is something to read; fails when the supervisor wants an end. */
static int answer_wait(struct stasis_lib_workload *workload, struct stasis_lib_channel *channel,
		       const char *what, struct stasis_error *err)
{
	struct pollfd waits[] = {
		{.fd = workload->answer_fd, .events = POLLIN},
		{.fd = channel->is_past_cancel ? -1 : channel->fd, .events = POLLIN},
	};

	for (;;) {
		int count = poll(waits, ARRAY_COUNT(waits), -1);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return stasis_fail_errno(err, STASIS_REFUSED, "%s: poll", what);
		if (waits[0].revents)
			return 0;
		if (stasis_lib_channel_is_cancelled(channel))
			return stasis_fail(err, STASIS_REFUSED,
					   "%s: given up while waiting for the workload's answer "
					   "on its pipe",
					   what);
	}
}

/* The next line without its end. */
static int answer_read(struct stasis_lib_workload *workload, struct stasis_lib_channel *channel,
		       const char *what, char *line, size_t line_bytes, struct stasis_error *err)
{
	char *end;
	size_t used;

	while (!(end = memchr(workload->buffer, '\n', workload->buffered))) {
		ssize_t count;

		if (workload->buffered == sizeof(workload->buffer))
			return stasis_fail(err, STASIS_INTERNAL, "%s: the answer is too long",
					   what);
		if (answer_wait(workload, channel, what, err) != 0)
			return -1;
		count = read(workload->answer_fd, workload->buffer + workload->buffered,
			     sizeof(workload->buffer) - workload->buffered);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return stasis_fail_errno(err, STASIS_REFUSED, "%s: read the answer", what);
		if (count == 0)
			return end_describe(workload, what, err);
		workload->buffered += (size_t)count;
	}
	*end = '\0';
	used = (size_t)(end - workload->buffer) + 1;
	(void)snprintf(line, line_bytes, "%.*s", (int)line_bytes - 1, workload->buffer);
	memmove(workload->buffer, workload->buffer + used, workload->buffered - used);
	workload->buffered -= used;
	if (strncmp(line, "error ", 6) == 0)
		return stasis_fail(err, STASIS_REFUSED, "%s: the workload says: %s", what,
				   line + 6);
	return 0;
}

static int command_send(struct stasis_lib_workload *workload, const char *what, const char *command,
			struct stasis_error *err)
{
	int code = stasis_write_all(workload->command_fd, command, strlen(command));

	if (code == EPIPE)
		return end_describe(workload, what, err);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "%s: write the command", what);
	return 0;
}

/* "WORD NUMBER …" with exactly `count` numbers. */
static bool answer_parse(const char *line, const char *word, uint64_t *ret_numbers, size_t count)
{
	char copy[STASIS_ERROR_TEXT_BYTES];
	char *rest = NULL;
	char *part;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	part = strtok_r(copy, " ", &rest);
	if (!part || strcmp(part, word) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		part = strtok_r(NULL, " ", &rest);
		if (!part || stasis_parse_u64(word, part, &ret_numbers[i], NULL) != 0)
			return false;
	}
	return !strtok_r(NULL, " ", &rest);
}

static int answer_refuse(const char *what, const char *line, struct stasis_error *err)
{
	return stasis_fail(err, STASIS_INTERNAL, "%s: unexpected answer '%s'", what, line);
}

int stasis_lib_workload_ready(struct stasis_lib_workload *workload,
			      struct stasis_lib_channel *channel, uint64_t *ret_pointer,
			      uint64_t *ret_bytes, struct stasis_error *err)
{
	static const char what[] = "fill the workload's memory";
	char line[STASIS_ERROR_TEXT_BYTES];
	uint64_t numbers[2];
	int result = answer_read(workload, channel, what, line, sizeof(line), err);

	if (result != 0) {
		/* Nothing has been done to it yet, so nothing of it is lost. */
		if (err->status == STASIS_LOST)
			err->status = STASIS_REFUSED;
		return -1;
	}
	if (!answer_parse(line, "ready", numbers, ARRAY_COUNT(numbers)))
		return answer_refuse(what, line, err);
	*ret_pointer = numbers[0];
	*ret_bytes = numbers[1];
	return 0;
}

int stasis_lib_workload_compare(struct stasis_lib_workload *workload,
				struct stasis_lib_channel *channel,
				struct stasis_lib_comparison *ret_comparison,
				struct stasis_error *err)
{
	static const char what[] = "compare the workload's memory";
	char line[STASIS_ERROR_TEXT_BYTES];
	uint64_t numbers[3]; /* offset, expected, found */

	if (command_send(workload, what, "verify\n", err) != 0 ||
	    answer_read(workload, channel, what, line, sizeof(line), err) != 0)
		return -1;
	if (answer_parse(line, "verified", numbers, 1)) {
		ret_comparison->is_right = true;
		return 0;
	}
	if (!answer_parse(line, "mismatch", numbers, ARRAY_COUNT(numbers)))
		return answer_refuse(what, line, err);
	ret_comparison->is_right = false;
	ret_comparison->offset = numbers[0];
	(void)snprintf(ret_comparison->text, sizeof(ret_comparison->text),
		       "expected 0x%02" PRIx64 ", found 0x%02" PRIx64, numbers[1], numbers[2]);
	return 0;
}

int stasis_lib_workload_operate(struct stasis_lib_workload *workload,
				struct stasis_lib_channel *channel, struct stasis_error *err)
{
	static const char what[] = "use the device after the restore";
	char line[STASIS_ERROR_TEXT_BYTES];

	if (command_send(workload, what, "operate\n", err) != 0 ||
	    answer_read(workload, channel, what, line, sizeof(line), err) != 0)
		return -1;
	if (strcmp(line, "operated") != 0)
		return answer_refuse(what, line, err);
	return 0;
}

int stasis_lib_workload_finish(struct stasis_lib_workload *workload, int exit_status,
			       struct stasis_error *err)
{
	static const char what[] = "end the workload";
	siginfo_t info = {0};

	if (command_send(workload, what, "quit\n", err) != 0)
		return -1;
	while (waitid(P_PID, (id_t)workload->pid, &info, WEXITED) != 0) {
		if (errno != EINTR)
			return stasis_fail_errno(err, STASIS_REFUSED, "%s: wait", what);
	}
	workload->pid = 0;
	if (info.si_code != CLD_EXITED || info.si_status != exit_status)
		return stasis_fail(err, STASIS_LOST, "%s: it ended with %s %d, not exit status %d",
				   what, info.si_code == CLD_EXITED ? "exit status" : "signal",
				   info.si_status, exit_status);
	return 0;
}

void stasis_lib_workload_release(struct stasis_lib_workload *workload)
{
	cleanup_fd(&workload->command_fd);
	cleanup_fd(&workload->answer_fd);
}
