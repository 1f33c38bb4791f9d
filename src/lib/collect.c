/*
 * gc: removes what unfinished captures left in a directory. A partial whose process still lives with its
 * GPU state suspended is the only copy of that state; whether it is, the driver knows, and the interposer of a
 * process that gives up its shared memory before the driver is asked to do anything. Where there is no driver to ask,
 * a process that still lives counts as suspended.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "image/image.h"
#include "lib/control_file.h"
#include "lib/library.h"

struct judge {
	struct stasis_driver driver;
	bool is_started;
	bool has_failed; /* there is no driver to ask; it was tried */
};

/* Loaded only when there is a process to ask about. */
static bool driver_start(struct judge *judge)
{
	if (judge->is_started || judge->has_failed)
		return judge->is_started;
	judge->is_started = stasis_driver_open(NULL, &judge->driver, NULL) == 0 &&
			    stasis_driver_start(&judge->driver, NULL) == 0;
	judge->has_failed = !judge->is_started;
	return judge->is_started;
}

/* One that cannot be looked at may be armed. */
static bool is_armed(pid_t pid)
{
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));
	bool is_participant = false;

	if (!control || stasis_lib_control_read(pid, &is_participant, control, NULL) != 0)
		return true;
	return is_participant && stasis_lib_control_is_armed(control);
}

static bool is_suspended(void *context, pid_t pid, uint64_t start_ticks)
{
	struct judge *judge = context;
	CLEANUP(target) struct stasis_target target = STASIS_TARGET_EMPTY;
	CUprocessState state;

	if (!driver_start(judge) || stasis_target_open(&judge->driver, pid, &target, NULL) != 0 ||
	    target.process.start_ticks != start_ticks ||
	    stasis_target_state(&target, &state, NULL) != 0)
		return true;
	return state != CU_PROCESS_STATE_RUNNING || is_armed(pid);
}

static void partials_report(const struct stasis_lib_sink *sink,
			    const struct stasis_image_partial *partials, size_t count)
{
	uint64_t removed_bytes = 0;
	size_t removed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct stasis_image_partial *partial = &partials[i];

		stasis_lib_event_of(sink, "partial", i, "name", "%s", partial->name);
		stasis_lib_event_of(sink, "partial", i, "state", "%s",
				    stasis_image_partial_state_name(partial->state));
		stasis_lib_event_of(sink, "partial", i, "bytes", "%" PRIu64, partial->bytes);
		if (partial->pid)
			stasis_lib_event_of(sink, "partial", i, "pid", "%d", (int)partial->pid);
		stasis_lib_event_of(sink, "partial", i, "removed", "%s",
				    partial->was_removed ? "yes" : "no");
		if (partial->state == STASIS_IMAGE_PARTIAL_SUSPENDED)
			stasis_lib_event(
				sink, "warning",
				"'%s' is kept: it is the only copy of the device memory of "
				"process %d, which is suspended",
				partial->name, (int)partial->pid);
		if (partial->was_removed) {
			removed++;
			removed_bytes += partial->bytes;
		}
	}
	stasis_lib_event(sink, "partials", "%zu", count);
	stasis_lib_event(sink, "removed", "%zu", removed);
	stasis_lib_event(sink, "removed_bytes", "%" PRIu64, removed_bytes);
}

/* A reserve is no garbage; that it is there is said. */
static void reserve_report(const struct stasis_lib_sink *sink, const char *path)
{
	struct stasis_image_reserve_info info;

	if (stasis_image_reserve_look(path, &info, NULL) != 0 ||
	    info.state == STASIS_IMAGE_RESERVE_NONE)
		return;
	stasis_lib_event(sink, "reserve", "%s", stasis_image_reserve_state_name(info.state));
	stasis_lib_event(sink, "reserve_bytes", "%" PRIu64, info.file_count * info.file_bytes);
	if (*info.why)
		stasis_lib_event(sink, "warning", "the reserve in '%.200s' is of no use: %s", path,
				 info.why);
}

enum stasis_status stasis_library_collect(struct stasis_library *library,
					  const struct stasis_image_options *options)
{
	CLEANUP(free) struct stasis_image_partial *partials = NULL;
	CLEANUP(free) struct judge *judge = calloc(1, sizeof(*judge));
	struct stasis_error *err = stasis_lib_begin(library);
	struct stasis_image_options ours = STASIS_IMAGE_OPTIONS_INIT;
	struct stasis_image_gc_options gc = {
		.is_still_suspended = is_suspended,
		.context = judge,
	};
	size_t count = 0;
	int result;

	if (!judge)
		(void)stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "gc");
	if (!judge || stasis_lib_options_copy("gc", options, &ours, sizeof(ours), err) != 0)
		return stasis_lib_end(library, -1);
	if (!ours.path || !*ours.path) {
		(void)stasis_fail(err, STASIS_USAGE, "gc: the directory is missing");
		return stasis_lib_end(library, -1);
	}
	result = stasis_image_gc(ours.path, &gc, &partials, &count, err);
	partials_report(&library->sink, partials, count);
	reserve_report(&library->sink, ours.path);
	return stasis_lib_end(library, result);
}
