/*
 * See control.h. The waiting thread wakes at once when the last worker leaves, and otherwise looks around
 * every 20 ms, a fifth of what cancellation is allowed.
 */

#include "transfer/control.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"

#define TICK_NS (20 * STASIS_NS_PER_MS)
#define PROGRESS_NS (40 * STASIS_NS_PER_MS)

static const struct stasis_transfer_watch watch_nothing = {.deadline_ns = STASIS_NO_DEADLINE};

int stasis_transfer_control_init(struct stasis_transfer_control *control,
				 const struct stasis_transfer_watch *watch, const char *what,
				 uint64_t total_bytes, struct stasis_error *err)
{
	pthread_condattr_t attributes;
	int code;

	memset(control, 0, sizeof(*control));
	control->watch = watch ? watch : &watch_nothing;
	control->what = what;
	control->total_bytes = total_bytes;
	control->started_ns = stasis_clock_now_ns();
	control->mutex = (struct stasis_mutex)STASIS_MUTEX_INITIALIZER;
	code = pthread_condattr_init(&attributes);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "%s: make a condition", what);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	code = pthread_cond_init(&control->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "%s: make a condition", what);
	return 0;
}

void stasis_transfer_control_fini(struct stasis_transfer_control *control)
{
	(void)pthread_cond_destroy(&control->changed);
	(void)pthread_mutex_destroy(&control->mutex.native);
}

void stasis_transfer_control_leave(struct stasis_transfer_control *control)
{
	stasis_mutex_lock(&control->mutex);
	if (--control->running == 0)
		(void)pthread_cond_signal(&control->changed);
	stasis_mutex_unlock(&control->mutex);
}

void stasis_transfer_control_fail(struct stasis_transfer_control *control, uint64_t order,
				  const struct stasis_transfer_failure *failure,
				  const struct stasis_error *error)
{
	stasis_mutex_lock(&control->mutex);
	if (!stasis_error_is_set(&control->error) || order < control->error_order) {
		control->error = *error;
		control->error_order = order;
		control->failure = *failure;
	}
	stasis_mutex_unlock(&control->mutex);
	atomic_store_explicit(&control->is_stopped, true, memory_order_relaxed);
}

/* A cancelled or late transfer fails, too, but only if nothing else went wrong before. */
static void control_abandon_locked(struct stasis_transfer_control *control, bool is_cancelled)
	REQUIRES(control->mutex)
{
	uint64_t done = atomic_load_explicit(&control->done_bytes, memory_order_relaxed);
	char done_text[32];
	char total_text[32];

	atomic_store_explicit(&control->is_abandoned, true, memory_order_relaxed);
	atomic_store_explicit(&control->is_stopped, true, memory_order_relaxed);
	if (stasis_error_is_set(&control->error))
		return;
	control->is_cancelled = is_cancelled;
	control->is_timed_out = !is_cancelled;
	control->error_order = UINT64_MAX;
	(void)stasis_fail(
		&control->error, STASIS_REFUSED, "%s: %s after %.1f s with %s of %s done",
		control->what, is_cancelled ? "cancelled" : "the deadline passed",
		stasis_seconds(stasis_clock_now_ns() - control->started_ns),
		stasis_format_bytes(done, done_text, sizeof(done_text)),
		stasis_format_bytes(control->total_bytes, total_text, sizeof(total_text)));
}

static void control_look_around_locked(struct stasis_transfer_control *control)
	REQUIRES(control->mutex)
{
	const atomic_bool *cancel = control->watch->cancel;

	if (atomic_load_explicit(&control->is_abandoned, memory_order_relaxed))
		return;
	if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
		control_abandon_locked(control, true);
	else if (stasis_deadline_passed(control->watch->deadline_ns))
		control_abandon_locked(control, false);
}

void stasis_transfer_control_enter(struct stasis_transfer_control *control, uint32_t thread_count)
{
	stasis_mutex_lock(&control->mutex);
	control->running += thread_count;
	/* What was cancelled before it began does not begin. */
	control_look_around_locked(control);
	stasis_mutex_unlock(&control->mutex);
}

static void control_report(struct stasis_transfer_control *control)
{
	if (control->watch->progress)
		control->watch->progress(
			control->watch->progress_data,
			atomic_load_explicit(&control->done_bytes, memory_order_relaxed),
			control->total_bytes);
}

static void control_tick(struct stasis_transfer_control *control) REQUIRES(control->mutex)
{
	uint64_t until_ns = stasis_clock_now_ns() + TICK_NS;
	struct timespec until = {.tv_sec = (time_t)(until_ns / STASIS_NS_PER_S),
				 .tv_nsec = (long)(until_ns % STASIS_NS_PER_S)};

	(void)pthread_cond_timedwait(&control->changed, &control->mutex.native, &until);
}

static int control_conclude(struct stasis_transfer_control *control,
			    struct stasis_transfer_result *result, struct stasis_error *err)
{
	struct stasis_transfer_failure failure;
	struct stasis_error error;

	stasis_mutex_lock(&control->mutex);
	failure = control->failure;
	error = control->error;
	result->is_cancelled = control->is_cancelled;
	result->is_timed_out = control->is_timed_out;
	stasis_mutex_unlock(&control->mutex);
	result->logical_bytes = control->total_bytes;
	result->stored_bytes = atomic_load_explicit(&control->stored_bytes, memory_order_relaxed);
	result->zero_bytes = atomic_load_explicit(&control->zero_bytes, memory_order_relaxed);
	result->elapsed_ns = stasis_clock_now_ns() - control->started_ns;
	if (!stasis_error_is_set(&error)) {
		control_report(control);
		return 0;
	}
	result->failed_side = failure.side;
	result->has_damage = failure.has_damage;
	result->damage_extent_index = failure.extent_index;
	result->damage_chunk_index = failure.chunk_index;
	result->damage_file_offset = failure.file_offset;
	stasis_error_take(err, &error);
	return -1;
}

int stasis_transfer_control_wait(struct stasis_transfer_control *control,
				 struct stasis_transfer_result *result, struct stasis_error *err)
{
	uint64_t reported_ns = control->started_ns;

	stasis_mutex_lock(&control->mutex);
	while (control->running > 0) {
		control_tick(control);
		if (control->running == 0)
			break;
		control_look_around_locked(control);
		if (stasis_clock_now_ns() - reported_ns < PROGRESS_NS)
			continue;
		reported_ns = stasis_clock_now_ns();
		stasis_mutex_unlock(&control->mutex);
		control_report(control);
		stasis_mutex_lock(&control->mutex);
	}
	stasis_mutex_unlock(&control->mutex);
	return control_conclude(control, result, err);
}
