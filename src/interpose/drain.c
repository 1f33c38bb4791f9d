/*
 * The phases that shut the gate and open it, and the drain in between: the program's work is waited for by asking,
 * never by a call that blocks in the driver, so that a drain can be given up. In order: no capture may be open,
 * since an event recorded in its context would invalidate it; no call may be in the driver, since a query
 * waits for a call that waits for room in a full queue; then an event behind all work of each context,
 * its non-blocking streams and its green contexts included, is recorded and asked for. All measured on driver 580.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "driver/cuda_error.h"
#include "interpose/busy.h"
#include "interpose/calls.h"
#include "interpose/control.h"
#include "interpose/gate.h"
#include "interpose/lives.h"
#include "interpose/phases.h"
#include "interpose/streams.h"

#define PAUSE_FIRST_NS 20000
#define PAUSE_LAST_NS 1000000
#define LOOK_FIRST_NS (10 * STASIS_NS_PER_MS) /* after which open captures are looked at */
#define LOOK_LIMIT_NS (10 * STASIS_NS_PER_MS) /* for which calls are held for that */

struct drained_context {
	CUcontext context;
	CUevent event;
	int device; /* -1: not a primary one */
};

/* One thread drains. */
struct drain {
	const struct stasis_calls *calls;
	struct drained_context *contexts;
	uint32_t count;
	uint32_t room;
};

static void pause_for(struct timespec *pause)
{
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, pause, NULL);
	if (pause->tv_nsec < PAUSE_LAST_NS)
		pause->tv_nsec *= 2;
}

static bool is_over(uint64_t deadline_ns)
{
	return stasis_clock_now_ns() >= deadline_ns || stasis_control_is_abandoned();
}

static uint64_t time_left(uint64_t deadline_ns)
{
	uint64_t now_ns = stasis_clock_now_ns();

	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

/* Lets all go on but what begins a capture; nothing is in flight, if it was CLOSED. */
static void gate_hold_captures(void)
{
	struct stasis_gate_busy busy;

	if (stasis_gate_level() == STASIS_GATE_CLOSED &&
	    stasis_gate_close(STASIS_GATE_CAPTURES_HELD, 0, &busy) != 0)
		stasis_gate_open();
}

/* ---- captures ---- */

/* False: the driver says that its stream is not being captured. */
static bool capture_is_open(const struct stasis_calls *calls,
			    const struct stasis_stream_record *record,
			    CUstreamCaptureStatus *ret_status)
{
	CUresult result;

	*ret_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	/* A thread's own default stream is another one for us; its end, and its thread's, are seen. */
	if (record->key.tid != 0 || calls->cuCtxSetCurrent(record->context) != CUDA_SUCCESS)
		return true;
	result = calls->cuStreamIsCapturing(record->key.stream, ret_status);
	if (result == CUDA_SUCCESS)
		return *ret_status != CU_STREAM_CAPTURE_STATUS_NONE;
	*ret_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/*
 * Removes what is recorded as open and is not, since it was ended past us: with its context, or by a call that we did
 * not see. The gate is shut: no stream that is asked can end meanwhile. -1: one is open, and *err names it.
 */
static int captures_check(const struct stasis_calls *calls, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_stream_record *records = NULL;
	uint32_t count = 0;
	int result = 0;

	if (!stasis_lives_prune(calls) || !stasis_streams_copy(STASIS_CAPTURES, &records, &count))
		return stasis_fail(err, STASIS_REFUSED,
				   "close the gate: no memory to look through open captures");
	for (uint32_t i = 0; i < count; i++) {
		CUstreamCaptureStatus status;

		if (!capture_is_open(calls, &records[i], &status))
			stasis_streams_remove(STASIS_CAPTURES, &records[i].key);
		else if (result == 0)
			result = stasis_busy_capture(&records[i], status, err);
	}
	if (count > 0)
		(void)calls->cuCtxSetCurrent(NULL);
	return result;
}

/* As it is recorded: the driver cannot be asked, since calls are in it. */
static int captures_refuse(struct stasis_error *err)
{
	CLEANUP(free) struct stasis_stream_record *records = NULL;
	uint32_t count = 0;

	if (!stasis_streams_copy(STASIS_CAPTURES, &records, &count))
		return stasis_fail(err, STASIS_REFUSED,
				   "close the gate: no memory to look through open captures");
	if (count == 0)
		return 0;
	return stasis_busy_capture(&records[0], CU_STREAM_CAPTURE_STATUS_ACTIVE, err);
}

/* Shuts the gate for as long as it takes to ask the driver; calls in it are not waited for much longer. */
static int captures_look(struct stasis_error *err)
{
	const struct stasis_calls *calls = stasis_calls_get();
	struct stasis_gate_busy busy;
	int result;

	if (!calls || stasis_gate_close(STASIS_GATE_CLOSED, LOOK_LIMIT_NS, &busy) != 0)
		return captures_refuse(err);
	result = captures_check(calls, err);
	gate_hold_captures();
	return result;
}

/* New captures are held; waits for those that are open to be ended by the program, which runs on. */
static int captures_wait(uint64_t deadline_ns, struct stasis_error *err)
{
	struct timespec pause = {.tv_nsec = PAUSE_FIRST_NS};
	uint64_t interval_ns = LOOK_FIRST_NS;
	uint64_t look_ns = stasis_clock_now_ns() + interval_ns;
	struct stasis_gate_busy busy;
	int code = stasis_gate_close(STASIS_GATE_CAPTURES_HELD, time_left(deadline_ns), &busy);

	if (code != 0)
		return stasis_busy_gate(code, &busy, err);
	while (stasis_streams_count(STASIS_CAPTURES) > 0) {
		if (is_over(deadline_ns))
			return captures_look(err);
		if (stasis_clock_now_ns() >= look_ns) {
			struct stasis_error ignored = STASIS_ERROR_INIT;

			(void)captures_look(&ignored);
			/* So that the program has most of the time, also where it cannot be shut out. */
			interval_ns *= 2;
			look_ns = stasis_clock_now_ns() + interval_ns;
		}
		pause_for(&pause);
	}
	return 0;
}

/* ---- contexts ---- */

static int context_add(struct drain *drain, CUcontext context, int device, struct stasis_error *err)
{
	if (drain->count == drain->room) {
		uint32_t room = drain->room * 2 + 16;
		struct drained_context *contexts =
			realloc(drain->contexts, room * sizeof(*contexts));

		if (!contexts)
			return stasis_fail(err, STASIS_REFUSED,
					   "drain: no memory for %u CUDA contexts, whose work is "
					   "to be waited for",
					   room);
		drain->contexts = contexts;
		drain->room = room;
	}
	drain->contexts[drain->count++] =
		(struct drained_context){.context = context, .device = device};
	return 0;
}

/* Primary contexts that are there; none is made. Each is held until the drain ends. */
static int primaries_collect(struct drain *drain, struct stasis_error *err)
{
	int device_count = 0;
	CUresult result = drain->calls->cuDeviceGetCount(&device_count);

	for (int device = 0; result == CUDA_SUCCESS && device < device_count; device++) {
		CUcontext context = NULL;
		unsigned int flags;
		int is_active = 0;

		result = drain->calls->cuDevicePrimaryCtxGetState(device, &flags, &is_active);
		if (result != CUDA_SUCCESS || !is_active)
			continue;
		result = drain->calls->cuDevicePrimaryCtxRetain(&context, device);
		if (result == CUDA_SUCCESS && context_add(drain, context, device, err) != 0) {
			(void)drain->calls->cuDevicePrimaryCtxRelease_v2(device);
			return -1;
		}
	}
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "look for CUDA contexts");
	return 0;
}

static int created_collect(struct drain *drain, struct stasis_error *err)
{
	CLEANUP(free) struct stasis_stream_record *records = NULL;
	uint32_t count = 0;

	if (!stasis_streams_copy(STASIS_CONTEXTS, &records, &count))
		return stasis_fail(err, STASIS_REFUSED,
				   "drain: no memory to look through the program's CUDA contexts");
	for (uint32_t i = 0; i < count; i++) {
		if (context_add(drain, records[i].context, -1, err) != 0)
			return -1;
	}
	return 0;
}

static int context_record(const struct drain *drain, struct drained_context *item,
			  struct stasis_error *err)
{
	const struct stasis_calls *calls = drain->calls;
	CUresult result = calls->cuCtxSetCurrent(item->context);

	if (result == CUDA_SUCCESS)
		result = calls->cuEventCreate(&item->event, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS)
		result = calls->cuCtxRecordEvent(item->context, item->event);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"record an event behind the work of a CUDA context");
	return 0;
}

/* True in *ret_is_done: everything that its context was given has ended. */
static int context_ask(const struct drain *drain, const struct drained_context *item,
		       bool *ret_is_done, struct stasis_error *err)
{
	CUresult result = drain->calls->cuEventQuery(item->event);

	*ret_is_done = result == CUDA_SUCCESS;
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
		return 0;
	return stasis_fail_cuda(err, STASIS_REFUSED, result,
				"the work of a CUDA context has failed: it cannot be captured");
}

static int contexts_wait(struct drain *drain, uint64_t deadline_ns, struct stasis_error *err)
{
	struct timespec pause = {.tv_nsec = PAUSE_FIRST_NS};

	for (uint32_t i = 0; i < drain->count; i++) {
		if (context_record(drain, &drain->contexts[i], err) != 0)
			return -1;
	}
	for (uint32_t i = 0; i < drain->count;) {
		bool is_done = false;

		if (context_ask(drain, &drain->contexts[i], &is_done, err) != 0)
			return -1;
		if (is_done)
			i++;
		else if (is_over(deadline_ns))
			return stasis_busy_context(drain->calls, drain->contexts[i].context, err);
		else
			pause_for(&pause);
	}
	return 0;
}

static void contexts_leave(struct drain *drain)
{
	const struct stasis_calls *calls = drain->calls;

	for (uint32_t i = 0; i < drain->count; i++) {
		struct drained_context *item = &drain->contexts[i];

		if (item->event && calls->cuCtxSetCurrent(item->context) == CUDA_SUCCESS)
			(void)calls->cuEventDestroy_v2(item->event);
	}
	(void)calls->cuCtxSetCurrent(NULL);
	for (uint32_t i = 0; i < drain->count; i++) {
		if (drain->contexts[i].device >= 0)
			(void)calls->cuDevicePrimaryCtxRelease_v2(drain->contexts[i].device);
	}
}

static int work_drain(const struct stasis_calls *calls, uint64_t deadline_ns,
		      struct stasis_error *err)
{
	struct drain drain = {.calls = calls};
	int result;

	result = primaries_collect(&drain, err);
	if (result == 0)
		result = created_collect(&drain, err);
	if (result == 0)
		result = contexts_wait(&drain, deadline_ns, err);
	contexts_leave(&drain);
	free(drain.contexts);
	return result;
}

/* ---- the phases ---- */

static int everything_wait(uint64_t deadline_ns, struct stasis_error *err)
{
	const struct stasis_calls *calls = stasis_calls_get();
	struct stasis_gate_busy busy;
	int code;

	if (!calls || !calls->cuCtxRecordEvent)
		return stasis_fail(err, STASIS_REFUSED,
				   "the driver cannot record an event of a context; it must be of "
				   "CUDA 12.5 or newer");
	code = stasis_gate_close(STASIS_GATE_CLOSED, time_left(deadline_ns), &busy);
	if (code != 0)
		return stasis_busy_gate(code, &busy, err);
	if (captures_check(calls, err) != 0)
		return -1;
	return work_drain(calls, deadline_ns, err);
}

int stasis_phase_gate(enum stasis_wire_gate_step step, uint64_t limit_ns,
		      struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	uint64_t deadline_ns = stasis_clock_now_ns() + limit_ns;

	*ret_done = (struct stasis_wire_done){.bytes = 0};
	if (step == STASIS_WIRE_GATE_CAPTURES)
		return captures_wait(deadline_ns, err);
	if (everything_wait(deadline_ns, err) == 0)
		return 0;
	/* As step 1 left it. */
	gate_hold_captures();
	return -1;
}

int stasis_phase_open(struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	(void)err;
	*ret_done = (struct stasis_wire_done){.bytes = 0};
	stasis_gate_open();
	return 0;
}
