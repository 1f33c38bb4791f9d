/*
 * See supervise.h.
 */

#include "lib/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"

/* How long a child that was asked to give up may stay silent, and move nothing. */
#define GRACE_MAX_NS (5 * STASIS_NS_PER_S)
#define GRACE_SHARE 8 /* of the whole time */

#define WAITING_BYTES 128

struct supervisor {
	const struct stasis_lib_watch *watch;
	pid_t pid;
	int fd;
	stasis_lib_call_word *call_word; /* what driver call the child is in */
	uint64_t deadline_ns;
	bool was_asked; /* to give up */
	bool is_undoing;
	bool is_late; /* time ran out, rather than somebody wanting an end */
	bool is_overdue;
	bool has_ended; /* its last word has come */
	char progress[sizeof(((struct stasis_lib_record *)NULL)->text)]; /* the last that came */
	struct stasis_error *outcome;
};

NORETURN static void child_run(int fd, stasis_lib_call_word *call_word,
			       stasis_lib_child_function *function, void *argument)
{
	struct stasis_lib_channel channel = STASIS_LIB_CHANNEL_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;

	/* A terminal's signals are for the supervisor, which asks us to give up in good order. */
	(void)setpgid(0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	stasis_lib_channel_init(&channel, fd, call_word);
	if (function(&channel, argument, &err) != 0 && !stasis_error_is_set(&err))
		(void)stasis_fail(&err, STASIS_INTERNAL,
				  "the worker failed without saying why; this is a bug of stasis");
	stasis_lib_channel_end(&channel, &err);
	_exit(0);
}

static void path_keep(char *ret_path, const char *text)
{
	(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", text);
}

static void fact_take(struct stasis_lib_knowledge *knowledge,
		      const struct stasis_lib_record *record)
{
	switch ((enum stasis_lib_fact)record->number) {
	case STASIS_LIB_FACT_NATIVE:
		knowledge->is_native = true;
		break;
	case STASIS_LIB_FACT_LIBCUDA:
		path_keep(knowledge->libcuda, record->text);
		break;
	case STASIS_LIB_FACT_PARTIAL:
		path_keep(knowledge->partial, record->text);
		break;
	case STASIS_LIB_FACT_DURABLE:
		knowledge->is_durable = true;
		break;
	case STASIS_LIB_FACT_PUBLISHED:
		knowledge->is_published = true;
		break;
	case STASIS_LIB_FACT_REMOVED:
		knowledge->is_removed = true;
		break;
	case STASIS_LIB_FACT_KEEP:
		knowledge->is_kept = true;
		break;
	case STASIS_LIB_FACT_OUTGROWN:
		knowledge->is_outgrown = true;
		break;
	case STASIS_LIB_FACT_SUSPENDED:
		knowledge->is_suspended = true;
		break;
	}
}

static void phase_take(struct supervisor *supervisor, enum stasis_lib_phase phase)
{
	struct stasis_lib_knowledge *knowledge = supervisor->watch->knowledge;
	char point[48];

	knowledge->phase = phase;
	knowledge->has_phase = true;
	stasis_lib_event(supervisor->watch->sink, "phase", "%s", stasis_lib_phase_name(phase));
	/* Undoing takes its time, and it is what was asked for. */
	if (stasis_lib_phase_is_undo(phase) && !supervisor->is_undoing) {
		supervisor->is_undoing = true;
		supervisor->was_asked = true;
		supervisor->deadline_ns = stasis_deadline_after_ns(supervisor->watch->timeout_ns);
	}
	(void)snprintf(point, sizeof(point), "supervisor_%s", stasis_lib_phase_name(phase));
	(void)stasis_fault_point(point);
}

static uint64_t grace_deadline_ns(const struct supervisor *supervisor)
{
	uint64_t grace_ns = supervisor->watch->timeout_ns / GRACE_SHARE;

	return stasis_deadline_after_ns(grace_ns < GRACE_MAX_NS ? grace_ns : GRACE_MAX_NS);
}

/*
 * Bringing the workload back may mean moving all its bytes, however many: as long as they move, nobody who
 * was asked to give up is ended, since ending an open operation loses the workload.
 */
static void progress_take(struct supervisor *supervisor, const char *text)
{
	uint64_t deadline_ns = grace_deadline_ns(supervisor);

	if (strncmp(supervisor->progress, text, sizeof(supervisor->progress) - 1) == 0)
		return;
	(void)snprintf(supervisor->progress, sizeof(supervisor->progress), "%s", text);
	if (supervisor->was_asked && deadline_ns > supervisor->deadline_ns)
		supervisor->deadline_ns = deadline_ns;
}

static void record_take(struct supervisor *supervisor, const struct stasis_lib_record *record)
{
	switch ((enum stasis_lib_record_kind)record->kind) {
	case STASIS_LIB_RECORD_EVENT:
		if (strcmp(record->key, "progress") == 0)
			progress_take(supervisor, record->text);
		stasis_lib_event(supervisor->watch->sink, record->key, "%s", record->text);
		break;
	case STASIS_LIB_RECORD_PHASE:
		phase_take(supervisor, (enum stasis_lib_phase)record->number);
		break;
	case STASIS_LIB_RECORD_WORKLOAD:
		supervisor->watch->knowledge->workload = record->number;
		break;
	case STASIS_LIB_RECORD_FACT:
		fact_take(supervisor->watch->knowledge, record);
		break;
	case STASIS_LIB_RECORD_END:
		supervisor->has_ended = true;
		*supervisor->outcome = record->err;
		break;
	}
}

static void give_up_ask(struct supervisor *supervisor, bool is_late)
{
	supervisor->was_asked = true;
	supervisor->is_late = is_late;
	stasis_lib_channel_cancel(supervisor->fd);
	supervisor->deadline_ns = grace_deadline_ns(supervisor);
}

/* Waits for the next record. *ret_is_over: the child closed its end, or its time is over for good. */
static int record_wait(struct supervisor *supervisor, bool *ret_is_over, struct stasis_error *err)
{
	struct pollfd waits[] = {
		{.fd = supervisor->fd, .events = POLLIN},
		{.fd = supervisor->was_asked ? -1 : supervisor->watch->cancel_fd, .events = POLLIN},
	};
	struct stasis_lib_record record;
	int count =
		poll(waits, ARRAY_COUNT(waits), stasis_deadline_poll_ms(supervisor->deadline_ns));

	if (count < 0 && errno != EINTR)
		return stasis_fail_errno(err, STASIS_INTERNAL, "watch the worker");
	if (count < 0)
		return 0;
	if (waits[0].revents) {
		if (stasis_lib_channel_receive(supervisor->fd, &record, ret_is_over, err) != 0)
			return -1;
		if (!*ret_is_over)
			record_take(supervisor, &record);
		return 0;
	}
	if (waits[1].revents)
		give_up_ask(supervisor, false);
	else if (stasis_deadline_passed(supervisor->deadline_ns) && supervisor->was_asked)
		*ret_is_over = supervisor->is_overdue = true;
	else if (stasis_deadline_passed(supervisor->deadline_ns))
		give_up_ask(supervisor, true);
	return 0;
}

/* What was waited for: the driver call that the child is in, or what its phase is about. */
static const char *waiting_for(const struct supervisor *supervisor, char text[WAITING_BYTES])
{
	const struct stasis_lib_knowledge *knowledge = supervisor->watch->knowledge;
	const char *call = stasis_lib_call_name(supervisor->call_word);

	(void)snprintf(text, WAITING_BYTES, "%s%s", call ? "driver call " : "",
		       call                   ? call
		       : knowledge->has_phase ? stasis_lib_phase_waits_for(knowledge->phase)
					      : "the worker's first word");
	return text;
}

static const char *phase_of(const struct supervisor *supervisor)
{
	const struct stasis_lib_knowledge *knowledge = supervisor->watch->knowledge;

	return knowledge->has_phase ? stasis_lib_phase_name(knowledge->phase) : "none";
}

static void died_describe(const struct supervisor *supervisor, const siginfo_t *info)
{
	char waiting[WAITING_BYTES];

	(void)stasis_fail(supervisor->outcome, STASIS_REFUSED,
			  "the worker process %d died in phase '%s' (%s %d) while waiting for %s",
			  (int)supervisor->pid, phase_of(supervisor),
			  info->si_code == CLD_EXITED ? "exit status" : "signal", info->si_status,
			  waiting_for(supervisor, waiting));
}

static void timed_out_describe(const struct supervisor *supervisor)
{
	char waiting[WAITING_BYTES];

	(void)stasis_fail(supervisor->outcome, STASIS_REFUSED,
			  "%s in phase '%s' after %.1f s, while waiting for %s; ended the worker "
			  "process %d",
			  supervisor->is_late ? "timed out" : "would not be given up",
			  phase_of(supervisor), stasis_seconds(supervisor->watch->timeout_ns),
			  waiting_for(supervisor, waiting), (int)supervisor->pid);
}

static enum stasis_lib_ending child_end(struct supervisor *supervisor)
{
	siginfo_t info = {0};

	if (supervisor->is_overdue)
		(void)kill(supervisor->pid, SIGKILL);
	while (waitid(P_PID, (id_t)supervisor->pid, &info, WEXITED) != 0) {
		if (errno != EINTR)
			break;
	}
	if (supervisor->has_ended) {
		if (stasis_error_is_set(supervisor->outcome) && supervisor->is_late)
			stasis_error_context(supervisor->outcome, "timed out after %.1f s",
					     stasis_seconds(supervisor->watch->timeout_ns));
		return STASIS_LIB_ENDED;
	}
	if (supervisor->is_overdue) {
		timed_out_describe(supervisor);
		return STASIS_LIB_TIMED_OUT;
	}
	died_describe(supervisor, &info);
	return STASIS_LIB_DIED;
}

int stasis_lib_supervise(stasis_lib_child_function *function, void *argument,
			 const struct stasis_lib_watch *watch, enum stasis_lib_ending *ret_ending,
			 struct stasis_error *ret_outcome, struct stasis_error *err)
{
	CLEANUP(fd) int ours = -1;
	struct supervisor supervisor = {.watch = watch, .outcome = ret_outcome};
	bool is_over = false;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "socketpair to the worker");
	ours = ends[0];
	supervisor.call_word = stasis_lib_call_word_new();
	supervisor.pid = fork();
	if (supervisor.pid == 0) {
		(void)close(ends[0]);
		child_run(ends[1], supervisor.call_word, function, argument);
	}
	(void)close(ends[1]);
	if (supervisor.pid < 0) {
		(void)stasis_fail_errno(err, STASIS_REFUSED, "fork the worker");
		stasis_lib_call_word_free(supervisor.call_word);
		return -1;
	}
	supervisor.fd = ours;
	supervisor.deadline_ns = stasis_deadline_after_ns(watch->timeout_ns);
	while (!is_over && !supervisor.has_ended) {
		if (record_wait(&supervisor, &is_over, ret_outcome) != 0)
			is_over = supervisor.is_overdue = true;
	}
	*ret_ending = child_end(&supervisor);
	stasis_lib_call_word_free(supervisor.call_word);
	return 0;
}
