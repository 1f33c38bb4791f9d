/*
 * A target as the driver sees it: its state, the right to touch it, and what became of it after a call
 * that failed. Makes no call that changes a target, except for the unlock that undoes a failed checkpoint.
 */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "checkpoint/internal.h"

#define YAMA_FILE "/proc/sys/kernel/yama/ptrace_scope"

const char *stasis_target_state_name(CUprocessState state)
{
	static const char *const names[] = {
		[CU_PROCESS_STATE_RUNNING] = "RUNNING",
		[CU_PROCESS_STATE_LOCKED] = "LOCKED",
		[CU_PROCESS_STATE_CHECKPOINTED] = "CHECKPOINTED",
		[CU_PROCESS_STATE_FAILED] = "FAILED",
		[CU_PROCESS_STATE_CHECKPOINTING] = "CHECKPOINTING",
		[CU_PROCESS_STATE_RESTORING] = "RESTORING",
	};

	return (size_t)state < ARRAY_COUNT(names) ? names[state] : "unknown";
}

/* -1: this kernel has no Yama. */
static int yama_scope(void)
{
	CLEANUP(fd) int fd = open(YAMA_FILE, O_RDONLY | O_CLOEXEC);
	char digit = '\0';

	if (fd < 0 || read(fd, &digit, 1) != 1)
		return -1;
	return digit - '0';
}

static const char *ptrace_advice(int scope)
{
	if (scope == 3)
		return "the kernel forbids tracing (kernel.yama.ptrace_scope is 3), until the next "
		       "start with another setting; not even CAP_SYS_PTRACE helps";
	if (scope == 2)
		return "kernel.yama.ptrace_scope is 2: run this as root or with CAP_SYS_PTRACE";
	if (scope == 1)
		return "kernel.yama.ptrace_scope is 1: run this as root or with CAP_SYS_PTRACE, or "
		       "have the process allow us by prctl(PR_SET_PTRACER)";
	return "the right to trace it is missing: run this as the same user, or with "
	       "CAP_SYS_PTRACE; a process that is not dumpable needs the latter too";
}

/* What to do about a result, whatever the call was; NULL: its name says it all. */
static const char *result_advice(CUresult result)
{
	if (result == CUDA_ERROR_OPERATING_SYSTEM)
		return ptrace_advice(yama_scope());
	if (result == CUDA_ERROR_NOT_INITIALIZED)
		return "it has no CUDA state: a launcher or helper process, perhaps; name the "
		       "process that uses the GPU, or take the whole tree (--tree)";
	if (result == CUDA_ERROR_NOT_READY)
		return "it did not pause its GPU work in time; allow more time or try again";
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return "it uses something that this driver cannot checkpoint, such as managed "
		       "memory";
	return NULL;
}

int stasis_target_fail(const struct stasis_target *target, CUresult result, const char *action,
		       struct stasis_error *err)
{
	const char *advice = result_advice(result);

	if (stasis_error_is_set(err))
		return -1;
	(void)stasis_fail_cuda(err, STASIS_REFUSED, result, "%s process %d", action,
			       (int)target->process.pid);
	if (advice)
		stasis_error_append(err, ": %s", advice);
	return -1;
}

int stasis_target_check(const struct stasis_target *target, struct stasis_error *err)
{
	uint64_t start_ticks = 0;

	if (stasis_process_is_alive(&target->process) &&
	    stasis_process_start_ticks(target->process.pid, &start_ticks) &&
	    start_ticks == target->process.start_ticks)
		return 0;
	return stasis_fail(err, STASIS_LOST, "process %d has ended", (int)target->process.pid);
}

int stasis_target_state(const struct stasis_target *target, CUprocessState *ret_state,
			struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	CUresult result;

	if (stasis_target_check(target, err) != 0)
		return -1;
	result = target->driver->cuCheckpointProcessGetState(target->process.pid, &state);
	if (result != CUDA_SUCCESS)
		return stasis_target_fail(target, result, "read the checkpoint state of", err);
	*ret_state = state;
	return 0;
}

int stasis_target_open(const struct stasis_driver *driver, pid_t pid,
		       struct stasis_target *ret_target, struct stasis_error *err)
{
	CLEANUP(target) struct stasis_target target = STASIS_TARGET_EMPTY;
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	char why[STASIS_DRIVER_WHY_BYTES];

	target.driver = driver;
	if (stasis_process_open(pid, &target.process, err) != 0)
		return -1;
	/* The driver asks a thread of the process, and waits for its answer without limit. */
	if (stasis_process_is_stopped(pid))
		return stasis_fail(err, STASIS_REFUSED,
				   "process %d is stopped, by a signal or a debugger, and cannot "
				   "answer the driver; let it go on first (kill -CONT %d)",
				   (int)pid, (int)pid);
	if (!stasis_driver_has_checkpoint(driver))
		return stasis_fail(err, STASIS_REFUSED, "process %d cannot be checkpointed: %s",
				   (int)pid, stasis_driver_why_no_checkpoint(driver, why));
	if (stasis_target_state(&target, &state, err) != 0)
		return -1;
	*ret_target = target;
	target.process.pidfd = -1;
	return 0;
}

void stasis_target_close(struct stasis_target *target)
{
	stasis_process_close(&target->process);
}

/* What a target found in an unfit state says about itself, and the status that goes with it. */
struct finding {
	enum stasis_status status;
	const char *text;
};

static struct finding finding_of(CUprocessState state)
{
	switch (state) {
	case CU_PROCESS_STATE_RUNNING:
		return (struct finding){STASIS_REFUSED, "it runs as before"};
	case CU_PROCESS_STATE_LOCKED:
		return (struct finding){STASIS_SUSPENDED,
					"it is intact but LOCKED: unlock it to let it run"};
	case CU_PROCESS_STATE_CHECKPOINTED:
		return (struct finding){STASIS_SUSPENDED, "it is suspended and intact"};
	case CU_PROCESS_STATE_FAILED:
		return (struct finding){STASIS_LOST, "the driver holds it for FAILED: it is lost"};
	case CU_PROCESS_STATE_CHECKPOINTING:
	case CU_PROCESS_STATE_RESTORING:
		return (struct finding){STASIS_LOST, "an operation on it has begun and not ended; "
						     "unless another program is about to "
						     "complete it, it is lost"};
	}
	return (struct finding){STASIS_LOST, "its state is none that we know: its fate is unknown"};
}

/* Asks a second time where the driver has no answer, since asking changes nothing. */
static int state_ask(const struct stasis_target *target, CUprocessState *ret_state,
		     struct stasis_error *err)
{
	struct stasis_error first = STASIS_ERROR_INIT;

	if (stasis_target_state(target, ret_state, &first) == 0)
		return 0;
	if (first.cuda_result)
		stasis_log_warn("checkpoint: %s; asking once more", first.text);
	return stasis_target_state(target, ret_state, err);
}

/* Nobody can say what state it is in; nothing was done to it. `wanted` is what the caller had made it. */
static int unasked_fail(CUprocessState wanted, struct stasis_error *cause, struct stasis_error *err)
{
	if (cause->status != STASIS_LOST) {
		cause->status = finding_of(wanted).status;
		stasis_error_append(cause, "; it was left as it was");
	}
	stasis_error_take(err, cause);
	return -1;
}

int stasis_target_expect(const struct stasis_target *target, CUprocessState wanted,
			 const char *action, struct stasis_error *err)
{
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	struct finding finding;

	if (state_ask(target, &state, &cause) != 0)
		return unasked_fail(wanted, &cause, err);
	if (state == wanted)
		return 0;
	finding = finding_of(state);
	return stasis_fail(err, finding.status, "%s process %d: it is %s, not %s; %s", action,
			   (int)target->process.pid, stasis_target_state_name(state),
			   stasis_target_state_name(wanted), finding.text);
}

int stasis_target_confirm(const struct stasis_target *target, CUprocessState wanted,
			  const char *action, struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (state_ask(target, &state, err) != 0)
		return -1;
	if (state == wanted)
		return 0;
	return stasis_fail(
		err, STASIS_REFUSED,
		"%s process %d: the driver reported success, but the state is %s, not %s", action,
		(int)target->process.pid, stasis_target_state_name(state),
		stasis_target_state_name(wanted));
}

/*
 * Ends a settling: the status is what was found now, whatever was thought before. A cause that is LOST
 * already is a process that has ended, and says so.
 */
static int settle(struct stasis_error *cause, struct finding finding, struct stasis_error *err)
{
	if (cause->status != STASIS_LOST)
		stasis_error_append(cause, "; %s", finding.text);
	cause->status = finding.status;
	stasis_error_take(err, cause);
	return -1;
}

static struct finding unlock_found(const struct stasis_target *target)
{
	CUcheckpointUnlockArgs args = {0};

	if (stasis_target_check(target, NULL) == 0 &&
	    target->driver->cuCheckpointProcessUnlock(target->process.pid, &args) == CUDA_SUCCESS)
		return (struct finding){STASIS_REFUSED, "it was unlocked and runs as before"};
	return finding_of(CU_PROCESS_STATE_LOCKED);
}

static struct finding found_now(const struct stasis_target *target, CUprocessState *ret_state)
{
	*ret_state = CU_PROCESS_STATE_FAILED;
	if (stasis_target_check(target, NULL) != 0)
		return (struct finding){STASIS_LOST, "the process has ended"};
	if (state_ask(target, ret_state, NULL) != 0)
		return (struct finding){STASIS_LOST,
					"the driver does not say its state: its fate is unknown"};
	return finding_of(*ret_state);
}

int stasis_target_settle_paused(const struct stasis_target *target, struct stasis_error *cause,
				struct stasis_error *err)
{
	CUprocessState state;
	struct finding finding = found_now(target, &state);

	if (state == CU_PROCESS_STATE_LOCKED)
		finding = unlock_found(target);
	return settle(cause, finding, err);
}

int stasis_target_settle_unlock(const struct stasis_target *target, struct stasis_error *cause,
				struct stasis_error *err)
{
	CUprocessState state;

	return settle(cause, found_now(target, &state), err);
}

int stasis_target_settle_lost(const struct stasis_target *target, struct stasis_error *cause,
			      struct stasis_error *err)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	struct stasis_error unanswered = STASIS_ERROR_INIT;
	char text[STASIS_ERROR_TEXT_BYTES + 32];
	struct finding finding = {STASIS_LOST, text};

	if (state_ask(target, &state, &unanswered) != 0)
		(void)snprintf(text, sizeof(text), "%s: its fate is unknown", unanswered.text);
	else
		(void)snprintf(text, sizeof(text),
			       "its state reads %s, which promises nothing after this: the process "
			       "is lost or its fate unknown, and nothing is tried again",
			       stasis_target_state_name(state));
	return settle(cause, finding, err);
}
