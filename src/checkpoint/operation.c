/*
 * The CustomStorage operation: idle, begun, completed, or fatal. See checkpoint.h.
 */

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/internal.h"

static const char *direction_name(enum stasis_operation_direction direction)
{
	return direction == STASIS_OPERATION_RESTORE ? "restore" : "checkpoint";
}

static CUprocessState state_before(enum stasis_operation_direction direction)
{
	return direction == STASIS_OPERATION_RESTORE ? CU_PROCESS_STATE_CHECKPOINTED
						     : CU_PROCESS_STATE_LOCKED;
}

static CUprocessState state_after(enum stasis_operation_direction direction)
{
	return direction == STASIS_OPERATION_RESTORE ? CU_PROCESS_STATE_LOCKED
						     : CU_PROCESS_STATE_CHECKPOINTED;
}

/* Takes over `cause` as the reason, and hands it to the caller as well. Returns -1. */
static int fatal_enter(struct stasis_operation *operation, const struct stasis_error *cause,
		       struct stasis_error *err)
{
	operation->state = STASIS_OPERATION_FATAL;
	operation->fatal = *cause;
	stasis_error_worsen(&operation->fatal, STASIS_LOST);
	stasis_error_take(err, &operation->fatal);
	return -1;
}

/* Judges what the driver handed out; the verdict stays with the operation. */
static int begun_enter(struct stasis_operation *operation, const struct stasis_target *target,
		       enum stasis_operation_direction direction,
		       CUcheckpointCustomStorageInfo *info, struct stasis_error *err)
{
	struct stasis_error *verdict = &operation->verdict;

	operation->state = STASIS_OPERATION_BEGUN;
	operation->target = target;
	operation->direction = direction;
	operation->info = info;
	operation->contexts.driver = target->driver;
	if (stasis_shape_read(target->driver, info, operation->views, &operation->view_count,
			      verdict) == 0 &&
	    stasis_contexts_narrow(&operation->contexts, operation->views, operation->view_count,
				   verdict) == 0) {
		operation->handle = info->handle;
		return 0;
	}
	operation->view_count = 0;
	stasis_error_worsen(verdict, STASIS_LOST);
	stasis_error_context(verdict,
			     "the driver's description of the memory of process %d cannot be used",
			     (int)target->process.pid);
	stasis_error_append(verdict,
			    "; the %s has begun, cannot be completed, and the process is "
			    "lost",
			    direction_name(direction));
	return fatal_enter(operation, verdict, err);
}

/* What must be there before the driver is asked; the state has been checked. */
static int begin_prepare(const struct stasis_target *target,
			 const struct stasis_operation_options *options,
			 struct stasis_contexts *ret_contexts, struct stasis_error *err)
{
	char why[STASIS_DRIVER_WHY_BYTES];

	if (!stasis_driver_has_custom_storage(target->driver))
		return stasis_fail(err, STASIS_REFUSED, "no CustomStorage: %s",
				   stasis_driver_why_no_custom_storage(target->driver, why));
	if (stasis_contexts_retain(target->driver, &options->gpus, ret_contexts, err) != 0)
		return -1;
	return stasis_target_check(target, err);
}

static int begin_checkpoint(struct stasis_operation *operation, const struct stasis_target *target,
			    const struct stasis_operation_options *options,
			    struct stasis_error *err)
{
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointCheckpointArgs args = {.customStorageInfo_out = &info};
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (begin_prepare(target, options, &operation->contexts, &cause) != 0)
		return stasis_target_settle_paused(target, &cause, err);
	result = target->driver->cuCheckpointProcessCheckpoint(target->process.pid, &args);
	if (result == CUDA_SUCCESS)
		return begun_enter(operation, target, options->direction, info, err);
	(void)stasis_target_fail(target, result, "begin the checkpoint of", &cause);
	return stasis_target_settle_paused(target, &cause, err);
}

static int begin_restore(struct stasis_operation *operation, const struct stasis_target *target,
			 const struct stasis_operation_options *options, struct stasis_error *err)
{
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointGpuPair pairs[STASIS_DEVICES_MAX];
	CUcheckpointRestoreArgs args = {.customStorageInfo_out = &info};
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (stasis_remap_encode(target->driver, &options->remap, pairs, &args, &cause) != 0 ||
	    begin_prepare(target, options, &operation->contexts, &cause) != 0)
		return stasis_target_settle_unlock(target, &cause, err);
	result = target->driver->cuCheckpointProcessRestore(target->process.pid, &args);
	if (result == CUDA_SUCCESS)
		return begun_enter(operation, target, options->direction, info, err);
	(void)stasis_target_fail(target, result, "begin the restore of", &cause);
	return stasis_target_settle_lost(target, &cause, err);
}

int stasis_operation_begin(struct stasis_operation *operation, const struct stasis_target *target,
			   const struct stasis_operation_options *options, struct stasis_error *err)
{
	struct stasis_operation begun = STASIS_OPERATION_EMPTY;
	int rc;

	if (operation->state != STASIS_OPERATION_IDLE)
		return stasis_fail(err, STASIS_INTERNAL, "begin a %s: the operation is in use",
				   direction_name(options->direction));
	if (stasis_target_expect(target, state_before(options->direction),
				 direction_name(options->direction), err) != 0)
		return -1;
	if (options->direction == STASIS_OPERATION_RESTORE)
		rc = begin_restore(&begun, target, options, err);
	else
		rc = begin_checkpoint(&begun, target, options, err);
	if (begun.state == STASIS_OPERATION_IDLE)
		stasis_contexts_release(&begun.contexts);
	else
		stasis_operation_move(&begun, operation);
	return rc;
}

int stasis_operation_adopt(struct stasis_operation *operation, const struct stasis_target *target,
			   enum stasis_operation_direction direction,
			   CUcheckpointCustomStorageInfo *info, struct stasis_error *err)
{
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	if (operation->state != STASIS_OPERATION_IDLE)
		return stasis_fail(err, STASIS_INTERNAL, "adopt a %s: the operation is in use",
				   direction_name(direction));
	if (!stasis_driver_has_custom_storage(target->driver))
		return stasis_fail(err, STASIS_INTERNAL,
				   "adopt a %s: this driver has no CustomStorage, so none can have "
				   "begun",
				   direction_name(direction));
	if (stasis_target_state(target, &state, &cause) != 0) {
		stasis_error_worsen(&cause, STASIS_LOST);
		stasis_error_take(err, &cause);
		return -1;
	}
	if (state == CU_PROCESS_STATE_RUNNING)
		return stasis_fail(err, STASIS_REFUSED,
				   "adopt a %s: process %d is RUNNING, so none has begun",
				   direction_name(direction), (int)target->process.pid);
	return begun_enter(operation, target, direction, info, err);
}

const struct stasis_view *stasis_operation_view(const struct stasis_operation *operation,
						const struct stasis_id *uuid)
{
	for (unsigned int i = 0; i < operation->view_count; i++) {
		if (stasis_id_equal(&operation->views[i].device.uuid, uuid))
			return &operation->views[i];
	}
	return NULL;
}

static int views_match(const struct stasis_operation *operation,
		       const struct stasis_view_expected *expected, unsigned int expected_count,
		       struct stasis_error *err)
{
	char text[STASIS_UUID_TEXT_BYTES];

	if (operation->view_count != expected_count)
		return stasis_fail(err, STASIS_LOST,
				   "the driver asks for the bytes of %u GPUs, the image has %u",
				   operation->view_count, expected_count);
	for (unsigned int i = 0; i < expected_count; i++) {
		const struct stasis_view *view =
			stasis_operation_view(operation, &expected[i].uuid);

		(void)stasis_uuid_format(&expected[i].uuid, text);
		if (!view)
			return stasis_fail(err, STASIS_LOST,
					   "the image has bytes for %s, the driver asks for none",
					   text);
		if (view->bytes != expected[i].bytes)
			return stasis_fail(err, STASIS_LOST,
					   "the driver asks for %llu bytes on %s, the image has "
					   "%llu",
					   (unsigned long long)view->bytes, text,
					   (unsigned long long)expected[i].bytes);
	}
	return 0;
}

int stasis_operation_match(struct stasis_operation *operation,
			   const struct stasis_view_expected *expected, unsigned int expected_count,
			   struct stasis_error *err)
{
	struct stasis_error cause = STASIS_ERROR_INIT;

	if (operation->state != STASIS_OPERATION_BEGUN)
		return stasis_fail(err, STASIS_INTERNAL, "match views: no operation has begun");
	if (views_match(operation, expected, expected_count, &cause) == 0)
		return 0;
	stasis_error_append(&cause,
			    "; nothing was copied; the %s cannot go on, and process %d is "
			    "lost",
			    direction_name(operation->direction),
			    (int)operation->target->process.pid);
	return fatal_enter(operation, &cause, err);
}

/* Refuses what is not due: each state says why. */
static int complete_refuse(const struct stasis_operation *operation, struct stasis_error *err)
{
	switch (operation->state) {
	case STASIS_OPERATION_BEGUN:
		return 0;
	case STASIS_OPERATION_IDLE:
		return stasis_fail(err, STASIS_INTERNAL, "complete: no operation has begun");
	case STASIS_OPERATION_COMPLETED:
		return stasis_fail(err, STASIS_INTERNAL, "complete: it is completed already");
	case STASIS_OPERATION_FATAL:
		break;
	}
	return stasis_fail(err, STASIS_LOST, "complete: refused, since %s", operation->fatal.text);
}

static int completed_enter(struct stasis_operation *operation)
{
	operation->state = STASIS_OPERATION_COMPLETED;
	stasis_contexts_release(&operation->contexts);
	return 0;
}

int stasis_operation_complete(struct stasis_operation *operation, struct stasis_error *err)
{
	const struct stasis_target *target = operation->target;
	CUcheckpointOperationHandle handle = operation->handle;
	struct stasis_error cause = STASIS_ERROR_INIT;
	CUresult result;

	if (complete_refuse(operation, err) != 0)
		return -1;
	if (stasis_target_check(target, &cause) != 0)
		return fatal_enter(operation, &cause, err);
	/* The handle is used up, whatever the answer. */
	operation->handle = NULL;
	operation->info = NULL;
	result = target->driver->cuCheckpointOperationComplete(handle);
	if (result != CUDA_SUCCESS)
		(void)stasis_target_fail(target, result, "complete the operation on", &cause);
	else if (stasis_target_confirm(target, state_after(operation->direction),
				       "complete the operation on", &cause) == 0)
		return completed_enter(operation);
	(void)stasis_target_settle_lost(target, &cause, NULL);
	return fatal_enter(operation, &cause, err);
}

void stasis_operation_mark_fatal(struct stasis_operation *operation,
				 const struct stasis_error *cause)
{
	struct stasis_error unnamed = STASIS_ERROR_INIT;

	assert(operation->state == STASIS_OPERATION_BEGUN ||
	       operation->state == STASIS_OPERATION_FATAL);
	if (operation->state != STASIS_OPERATION_BEGUN)
		return;
	(void)stasis_fail(&unnamed, STASIS_LOST, "copying the memory of process %d failed",
			  (int)operation->target->process.pid);
	(void)fatal_enter(operation, stasis_error_is_set(cause) ? cause : &unnamed, NULL);
}

bool stasis_operation_acknowledge_fatal(struct stasis_operation *operation,
					struct stasis_error *ret_cause)
{
	if (operation->state != STASIS_OPERATION_FATAL)
		return false;
	operation->is_fatal_seen = true;
	if (ret_cause)
		*ret_cause = operation->fatal;
	return true;
}

void stasis_operation_move(struct stasis_operation *from, struct stasis_operation *ret_to)
{
	assert(ret_to->state == STASIS_OPERATION_IDLE);
	*ret_to = *from;
	memset(from, 0, sizeof(*from));
}

CUcheckpointCustomStorageInfo *stasis_operation_release(struct stasis_operation *operation)
{
	CUcheckpointCustomStorageInfo *info = operation->info;

	assert(operation->state == STASIS_OPERATION_BEGUN);
	if (operation->state != STASIS_OPERATION_BEGUN)
		return NULL;
	memset(operation, 0, sizeof(*operation));
	return info;
}

void stasis_operation_close(struct stasis_operation *operation)
{
	bool is_dropped = operation->state == STASIS_OPERATION_BEGUN ||
			  (operation->state == STASIS_OPERATION_FATAL && !operation->is_fatal_seen);

	if (is_dropped)
		stasis_log_error(
			"checkpoint: process %d: its operation was dropped %s; its fate is "
			"unknown%s%s",
			(int)operation->target->process.pid,
			operation->state == STASIS_OPERATION_FATAL ? "after it failed"
								   : "uncompleted",
			operation->state == STASIS_OPERATION_FATAL ? ": " : "",
			operation->fatal.text);
	assert(!is_dropped);
	memset(operation, 0, sizeof(*operation));
}
