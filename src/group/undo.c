/*
 * A capture that failed is undone from wherever it has come to. What was taken apart is attached again to the very
 * memory that the descriptors have kept, so nothing is read back and nothing of it can be in the way. A process that
 * died is left out; the others go on.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "group/assemble.h"
#include "group/capture.h"
#include "group/native.h"

/* Keeps what went wrong on the way back; it goes on with those that can. */
static void keep(const struct stasis_error *failure, struct stasis_error *worst)
{
	if (!stasis_error_is_set(worst))
		*worst = *failure;
	stasis_error_worsen(worst, failure->status);
}

static void note(const struct stasis_capture *capture, const struct stasis_error *failure,
		 struct stasis_error *worst)
{
	stasis_group_event(capture->group->watch, "warning", "%s", failure->text);
	keep(failure, worst);
}

/* The steps, in the order in which they undo; each is left out where it was not reached. */
static int steps_run(struct stasis_capture *capture, struct stasis_error *worst)
{
	struct stasis_group *group = capture->group;
	uint64_t limit_ns = stasis_capture_phase_ns(&capture->layout);
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (capture->stage >= STASIS_CAPTURE_NATIVE) {
		stasis_hold_release(&capture->hold);
		/* It has told of each. */
		if (stasis_native_return(group, &failure) != 0)
			keep(&failure, worst);
	}
	failure = (struct stasis_error)STASIS_ERROR_INIT;
	if (stasis_group_bury(group, &failure) != 0)
		note(capture, &failure, worst);
	if (!stasis_group_is_any_left(group))
		return 0;
	failure = (struct stasis_error)STASIS_ERROR_INIT;
	if (capture->stage >= STASIS_CAPTURE_UNICAST &&
	    stasis_assemble_attached(group, &capture->kept, true, limit_ns, &failure) != 0) {
		note(capture, &failure, worst);
		return -1;
	}
	if (capture->stage >= STASIS_CAPTURE_MULTICAST &&
	    stasis_assemble_multicast(group, limit_ns, &failure) != 0) {
		note(capture, &failure, worst);
		return -1;
	}
	if (capture->stage >= STASIS_CAPTURE_GATED &&
	    stasis_group_ask(group, STASIS_WIRE_OPEN, STASIS_GROUP_ANSWER_NS, &failure) != 0) {
		note(capture, &failure, worst);
		return -1;
	}
	return 0;
}

/* Nobody needs the image that was being made. */
static void traces_remove(struct stasis_capture *capture)
{
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (capture->writer && stasis_image_writer_abandon(capture->writer, &failure) != 0)
		stasis_group_event(capture->group->watch, "warning", "%s", failure.text);
	failure = (struct stasis_error)STASIS_ERROR_INIT;
	if (stasis_journal_remove(&capture->journal, &failure) != 0)
		stasis_group_event(capture->group->watch, "warning", "%s", failure.text);
}

void stasis_capture_undo(struct stasis_capture *capture, struct stasis_error *err)
{
	const struct stasis_group_watch *watch = capture->group->watch;
	struct stasis_error worst = STASIS_ERROR_INIT;

	watch->enter(watch->data, STASIS_GROUP_UNDO);
	/* What the failed call said of one process is settled by what becomes of all. */
	if (steps_run(capture, &worst) == 0) {
		err->status = stasis_error_is_set(&worst) ? STASIS_LOST : STASIS_REFUSED;
		if (stasis_error_is_set(&worst))
			stasis_error_append(err, "; then: %s; the other processes run as before",
					    worst.text);
		else
			stasis_error_append(err, "; the processes run as before");
		traces_remove(capture);
		return;
	}
	stasis_error_worsen(err, worst.status == STASIS_LOST ? STASIS_LOST : STASIS_SUSPENDED);
	stasis_error_append(err, "; then: %s", worst.text);
	if (capture->writer)
		stasis_image_writer_keep(capture->writer, err);
	stasis_error_append(err, "; 'stasis recover' brings them back");
}
