/*
 * The round trip as the supervisor sees it: checks what was asked for, has a worker do it, and sees to it
 * that the program whose state was captured is brought back, or named, whatever became of the worker.
 */

#include "lib/roundtrip.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "lib/library.h"
#include "lib/rescue.h"
#include "lib/supervise.h"
#include "transfer/codec.h"
#include "transfer/transfer.h"

#define POLL_US 10000                            /* between two looks at a process */
#define DEATH_NOTICE_NS (200 * STASIS_NS_PER_MS) /* until a killed process shows that it is */
#define DEATH_NS (5 * STASIS_NS_PER_S)           /* from there until it is gone */

struct roundtrip {
	struct stasis_roundtrip_options options;
	const struct stasis_lib_sink *sink;
	struct stasis_lib_knowledge knowledge;
};

static int transfer_options_check(const struct stasis_roundtrip_options *options,
				  struct stasis_error *err)
{
	uint64_t chunk_bytes = options->chunk_bytes;

	if (chunk_bytes > 0 &&
	    (chunk_bytes < STASIS_CHUNK_BYTES_MIN || chunk_bytes > STASIS_CHUNK_BYTES_MAX ||
	     chunk_bytes % STASIS_STORED_ALIGNMENT != 0))
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: chunks must be between 64K and 64M and a multiple "
				   "of 4096 bytes");
	if (options->workers > STASIS_TRANSFER_WORKERS_MAX)
		return stasis_fail(err, STASIS_USAGE, "roundtrip: at most %d workers",
				   STASIS_TRANSFER_WORKERS_MAX);
	if ((unsigned int)options->file_store > STASIS_FILE_STORE_PLAIN)
		return stasis_fail(err, STASIS_USAGE, "roundtrip: unknown file store");
	return 0;
}

static int compress_check(const struct stasis_roundtrip_options *options, struct stasis_error *err)
{
	if (options->compress == STASIS_COMPRESS_NONE)
		return 0;
	if ((unsigned int)options->compress > STASIS_COMPRESS_ZSTD)
		return stasis_fail(err, STASIS_USAGE, "roundtrip: unknown compression");
	if (options->store == STASIS_STORE_NATIVE)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: the native store has no files to compress");
	if (options->chunk_bytes > STASIS_TRANSFER_PACKED_CHUNK_BYTES_MAX)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: to be compressed, chunks have at most 16M");
	if (options->damage == STASIS_DAMAGE_CORRUPT && options->verify == STASIS_VERIFY_OFF)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: without digests, damage to what is compressed could "
				   "end the program instead of reaching it");
	return 0;
}

static int options_check(const struct stasis_roundtrip_options *options, struct stasis_error *err)
{
	if (!options->artifact_dir || !*options->artifact_dir)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: the artifact directory is missing");
	if (options->bytes == 0 || options->timeout_ns == 0)
		return stasis_fail(err, STASIS_USAGE, "roundtrip: bytes and timeout must not be 0");
	if (options->damage != STASIS_DAMAGE_NONE && options->store == STASIS_STORE_NATIVE)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: the native store has no files to damage; use the "
				   "custom store");
	if (options->damage == STASIS_DAMAGE_CORRUPT && options->bytes < STASIS_LIB_NEEDLE_BYTES)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: corruption needs at least %d bytes, so that the "
				   "program's bytes can be told from others",
				   STASIS_LIB_NEEDLE_BYTES);
	if ((unsigned int)options->store > STASIS_STORE_NATIVE ||
	    (unsigned int)options->damage > STASIS_DAMAGE_CORRUPT ||
	    (unsigned int)options->verify > STASIS_VERIFY_OFF)
		return stasis_fail(err, STASIS_USAGE,
				   "roundtrip: unknown store, damage or verification");
	return transfer_options_check(options, err) == 0 ? compress_check(options, err) : -1;
}

/* Removes a partial that nobody needs any more. */
static void partial_remove(struct roundtrip *roundtrip)
{
	struct stasis_lib_knowledge *knowledge = &roundtrip->knowledge;
	struct stasis_error err = STASIS_ERROR_INIT;

	if (!*knowledge->partial || knowledge->is_published || knowledge->is_removed)
		return;
	if (stasis_tree_remove(AT_FDCWD, knowledge->partial, &err) != 0)
		stasis_lib_event(roundtrip->sink, "warning", "%s", err.text);
	knowledge->is_removed = true;
}

/* Says where the bytes of a program that stays suspended are. */
static void copy_name(const struct roundtrip *roundtrip, struct stasis_error *outcome)
{
	const struct stasis_lib_knowledge *knowledge = &roundtrip->knowledge;

	if (knowledge->is_published)
		stasis_error_append(outcome, "; the image is kept: %s",
				    roundtrip->options.artifact_dir);
	else if (*knowledge->partial && knowledge->is_durable)
		stasis_error_append(outcome, "; the only copy of its device memory is kept: %s",
				    knowledge->partial);
}

/* Waits for a process of ours; false: it still lives at the deadline. */
static bool workload_reap(pid_t pid, uint64_t deadline_ns)
{
	for (;;) {
		pid_t got = waitpid(pid, NULL, WNOHANG);

		if (got == pid || (got < 0 && errno == ECHILD))
			return true;
		if (stasis_deadline_passed(deadline_ns))
			return false;
		(void)usleep(POLL_US);
	}
}

/* How the workload judged its own memory, which it does as soon as its leader is gone. */
enum verdict { VERDICT_NONE, VERDICT_RIGHT, VERDICT_WRONG };

/* Waits for the workload's end until the deadline; leaves it to be reaped. */
static enum verdict verdict_wait(pid_t pid, uint64_t deadline_ns)
{
	for (;;) {
		siginfo_t info = {0};

		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) != 0)
			return VERDICT_NONE;
		if (info.si_pid == pid)
			return info.si_code == CLD_EXITED && info.si_status == 0 ? VERDICT_RIGHT
										 : VERDICT_WRONG;
		if (stasis_deadline_passed(deadline_ns))
			return VERDICT_NONE;
		(void)usleep(POLL_US);
	}
}

/* Dead already, though perhaps not wholly gone: a process with many threads takes a moment. */
static bool workload_is_ending(pid_t pid)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;

	return stasis_process_open(pid, &process, NULL) != 0;
}

/* Has a process of ours bring the workload back. 0: it runs. */
static int workload_rescue(struct roundtrip *roundtrip, struct stasis_error *err)
{
	struct stasis_lib_watch watch = {
		.sink = roundtrip->sink,
		.timeout_ns = roundtrip->options.timeout_ns,
		.cancel_fd = -1,
		.knowledge = &roundtrip->knowledge,
	};
	struct stasis_lib_rescue rescue = {
		.knowledge = roundtrip->knowledge,
		.image_path = roundtrip->options.artifact_dir,
	};
	enum stasis_lib_ending ending = STASIS_LIB_DIED;
	struct stasis_error outcome = STASIS_ERROR_INIT;

	if (stasis_lib_supervise(stasis_lib_rescue_run, &rescue, &watch, &ending, &outcome, err) !=
	    0)
		stasis_error_worsen(err, STASIS_LOST);
	else
		stasis_error_take(err, &outcome);
	if (ending != STASIS_LIB_ENDED)
		stasis_error_worsen(err, STASIS_LOST);
	return stasis_error_is_set(err) ? -1 : 0;
}

/* The workload was not brought back: says so, and where its bytes are. */
static void rescue_fail(struct roundtrip *roundtrip, const struct stasis_error *found,
			struct stasis_error *outcome)
{
	stasis_error_worsen(outcome, found->status);
	stasis_error_append(outcome, "; then: %s", found->text);
	if (found->status == STASIS_SUSPENDED)
		roundtrip->knowledge.is_kept = true;
	if (!roundtrip->knowledge.is_durable)
		partial_remove(roundtrip);
	copy_name(roundtrip, outcome);
}

/*
 * The worker is gone without having said what became of the workload: finds out, and brings it back. What
 * the workload says of its own memory counts more than what the driver says of its state.
 */
static void worker_replace(struct roundtrip *roundtrip, struct stasis_error *outcome)
{
	pid_t pid = roundtrip->knowledge.workload;
	struct stasis_error found = STASIS_ERROR_INIT;
	enum verdict verdict;
	bool is_running;

	if (!pid || roundtrip->knowledge.phase < STASIS_LIB_LOCK) {
		stasis_error_append(outcome, "; nothing had been done to the workload");
		partial_remove(roundtrip);
		return;
	}
	verdict = verdict_wait(pid, 0);
	is_running = verdict == VERDICT_NONE && workload_rescue(roundtrip, &found) == 0;
	/* It may also have run all the time, and have ended before it was looked at. */
	if (verdict == VERDICT_NONE && (is_running || workload_is_ending(pid)))
		verdict =
			verdict_wait(pid, stasis_deadline_after_ns(roundtrip->options.timeout_ns));
	if (verdict == VERDICT_NONE && !is_running) {
		rescue_fail(roundtrip, &found, outcome);
		return;
	}
	if (verdict == VERDICT_WRONG) {
		stasis_error_worsen(outcome, STASIS_LOST);
		stasis_error_append(outcome, "; the workload found its memory wrong, or died");
		copy_name(roundtrip, outcome);
		return;
	}
	stasis_error_append(outcome, "; the workload runs as before%s",
			    verdict == VERDICT_RIGHT ? ", and has compared all its memory" : "");
	partial_remove(roundtrip);
}

/*
 * Ends the workload, unless it is suspended and intact. One that was told where to write its verdict is
 * never killed: a test reads there what became of it.
 */
static void workload_end(const struct roundtrip *roundtrip, const struct stasis_error *outcome)
{
	const struct stasis_lib_knowledge *knowledge = &roundtrip->knowledge;
	bool has_report = secure_getenv("STASIS_WORKLOAD_REPORT") != NULL;

	if (!knowledge->workload || knowledge->is_kept)
		return;
	if (has_report && (outcome->status == STASIS_LOST || outcome->status == STASIS_SUSPENDED))
		return;
	if (has_report)
		(void)workload_reap(knowledge->workload,
				    stasis_deadline_after_ns(roundtrip->options.timeout_ns));
	else if (kill(knowledge->workload, SIGKILL) == 0)
		(void)workload_reap(knowledge->workload,
				    stasis_deadline_after_ns(5 * STASIS_NS_PER_S));
}

/* A process that was killed takes a moment to be gone, and longer the more threads it has. */
static bool workload_has_died(pid_t pid)
{
	uint64_t deadline_ns = stasis_deadline_after_ns(DEATH_NOTICE_NS);

	for (;;) {
		enum verdict verdict = verdict_wait(pid, 0);

		if (verdict == VERDICT_NONE && workload_is_ending(pid))
			verdict = verdict_wait(pid, stasis_deadline_after_ns(DEATH_NS));
		if (verdict != VERDICT_NONE)
			return verdict == VERDICT_WRONG;
		if (stasis_deadline_passed(deadline_ns))
			return false;
		(void)usleep(POLL_US);
	}
}

/* A workload that was whole and has died since was lost, whatever else failed. */
static void workload_death_note(const struct roundtrip *roundtrip, struct stasis_error *outcome)
{
	const struct stasis_lib_knowledge *knowledge = &roundtrip->knowledge;

	if (!stasis_error_is_set(outcome) || outcome->status == STASIS_LOST ||
	    !knowledge->workload || knowledge->phase <= STASIS_LIB_FILL_WORKLOAD ||
	    !workload_has_died(knowledge->workload))
		return;
	stasis_error_worsen(outcome, STASIS_LOST);
	stasis_error_append(outcome, "; the workload has died");
}

static int roundtrip_run(struct roundtrip *roundtrip, struct stasis_error *err)
{
	struct stasis_lib_watch watch = {
		.sink = roundtrip->sink,
		.timeout_ns = roundtrip->options.timeout_ns,
		.cancel_fd = roundtrip->options.cancel_fd,
		.knowledge = &roundtrip->knowledge,
	};
	struct stasis_lib_work work = {
		.options = &roundtrip->options,
		.supervisor_pid = getpid(),
	};
	struct stasis_error outcome = STASIS_ERROR_INIT;
	enum stasis_lib_ending ending;

	if (stasis_lib_supervise(stasis_lib_work_run, &work, &watch, &ending, &outcome, err) != 0)
		return -1;
	if (ending != STASIS_LIB_ENDED)
		worker_replace(roundtrip, &outcome);
	workload_death_note(roundtrip, &outcome);
	workload_end(roundtrip, &outcome);
	if (!stasis_error_is_set(&outcome))
		return 0;
	stasis_error_take(err, &outcome);
	return -1;
}

enum stasis_status stasis_library_roundtrip(struct stasis_library *library,
					    const struct stasis_roundtrip_options *options)
{
	struct stasis_error *err = stasis_lib_begin(library);
	struct roundtrip roundtrip = {
		.options = STASIS_ROUNDTRIP_OPTIONS_INIT,
		.sink = &library->sink,
	};
	int was_subreaper = 0;
	int result;

	if (stasis_lib_options_copy("roundtrip", options, &roundtrip.options,
				    sizeof(roundtrip.options), err) != 0 ||
	    options_check(&roundtrip.options, err) != 0)
		return stasis_lib_end(library, -1);
	/* So that the workload becomes our child when the worker, its parent, dies. */
	(void)prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	result = roundtrip_run(&roundtrip, err);
	(void)prctl(PR_SET_CHILD_SUBREAPER, was_subreaper, 0, 0, 0);
	if (result == 0)
		stasis_lib_event(&library->sink,
				 roundtrip.options.damage == STASIS_DAMAGE_NONE
					 ? "roundtrip"
					 : "corruption_check",
				 "passed");
	return stasis_lib_end(library, result);
}
