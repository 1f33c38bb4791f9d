#ifndef STASIS_CHECKPOINT_CHECKPOINT_H
#define STASIS_CHECKPOINT_CHECKPOINT_H

/*
 * One CUDA process through lock, checkpoint, restore and unlock, with the driver's own store or with ours
 * (CustomStorage). This module makes the driver calls and knows what became of the target; it copies no
 * bytes: the transfer engine does that, on the views given here. One thread uses a target and its
 * operation at a time; the driver must have been started.
 *
 *     native:  RUNNING -lock-> LOCKED -checkpoint-> CHECKPOINTED -restore-> LOCKED -unlock-> RUNNING
 *
 *     custom:  LOCKED -begin-> (bytes are copied out of the views) -complete-> CHECKPOINTED
 *              CHECKPOINTED -begin-> (bytes are copied into the views) -complete-> LOCKED
 *
 * Every failure reads the target's state back where that can tell what became of it; err->status says so.
 * No call whose outcome is unknown is ever repeated.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "driver/device.h"
#include "driver/driver.h"
#include "driver/report.h"

/* ---- the target ---- */

struct stasis_target {
	const struct stasis_driver *driver; /* borrowed */
	struct stasis_process process; /* held by pidfd; checked again before each driver call */
};

#define STASIS_TARGET_EMPTY                                                                        \
	{                                                                                          \
		.process = STASIS_PROCESS_EMPTY                                                    \
	}

/*
 * Refuses, each with its own line: what stasis_process_open refuses; a process without CUDA state; one that
 * we have no right to trace (with what to do); a driver without the checkpoint calls.
 */
NODISCARD int stasis_target_open(const struct stasis_driver *driver, pid_t pid,
				 struct stasis_target *ret_target, struct stasis_error *err);
void stasis_target_close(struct stasis_target *target);

static inline void cleanup_target(struct stasis_target *target)
{
	stasis_target_close(target);
}

/* The driver's answer now. Failures are STASIS_LOST where the process has ended, else STASIS_REFUSED. */
NODISCARD int stasis_target_state(const struct stasis_target *target, CUprocessState *ret_state,
				  struct stasis_error *err);

/* "RUNNING", "LOCKED", …; "unknown" for a value we do not know. */
const char *stasis_target_state_name(CUprocessState state);

/* RUNNING to LOCKED. `timeout_ms` 0 waits without limit. A target found in another state is left alone. */
NODISCARD int stasis_target_lock(const struct stasis_target *target, unsigned int timeout_ms,
				 struct stasis_error *err);

/* LOCKED to RUNNING. */
NODISCARD int stasis_target_unlock(const struct stasis_target *target, struct stasis_error *err);

/* ---- other GPUs ---- */

struct stasis_gpu_pair {
	struct stasis_id old_uuid;
	struct stasis_id new_uuid;
};

/* Where the target's GPUs go at a restore; count 0: each stays where it was. */
struct stasis_remap {
	const struct stasis_gpu_pair *pairs; /* borrowed */
	unsigned int count;
};

/*
 * Checks a remap before anything is touched: every GPU that the process saw (`seen`, from the image) is
 * named, none twice, none else; every new one is visible here, of the same name and capability, with as
 * much memory. Failures are STASIS_SUSPENDED: the target sleeps on.
 */
NODISCARD int stasis_remap_check(const struct stasis_driver *driver,
				 const struct stasis_remap *remap, const struct stasis_gpu *seen,
				 unsigned int seen_count, struct stasis_error *err);

/* The GPU on which the bytes of `old_uuid` go: itself where no pair names it. */
const struct stasis_id *stasis_remap_new(const struct stasis_remap *remap,
					 const struct stasis_id *old_uuid);

/* ---- the driver's own store ---- */

/* LOCKED to CHECKPOINTED: the bytes go into the target's own host memory. */
NODISCARD int stasis_target_checkpoint(const struct stasis_target *target,
				       struct stasis_error *err);

/*
 * CHECKPOINTED to LOCKED. `remap` may be NULL. A target that is still CHECKPOINTED after the driver failed
 * is lost, not retryable: the driver reports so for processes that it cannot bring back.
 */
NODISCARD int stasis_target_restore(const struct stasis_target *target,
				    const struct stasis_remap *remap, struct stasis_error *err);

/* ---- contexts of ours ---- */

/* What a context of ours takes of a GPU's memory, measured; the default for the checks below. */
#define STASIS_CONTEXT_BYTES (UINT64_C(512) << 20)

struct stasis_context {
	struct stasis_device device;
	CUcontext context;
};

/* Primary contexts, each retained once. Empty when zeroed. */
struct stasis_contexts {
	const struct stasis_driver *driver;
	unsigned int count;
	struct stasis_context items[STASIS_DEVICES_MAX];
};

/*
 * GPUs by UUID; count 0: every GPU that this process sees. The views of an operation live in primary
 * contexts of ours, which must be there before it begins. At a restore the image says on which GPUs there
 * is data: exactly those are needed. At a checkpoint nobody can say so beforehand (a process opens every
 * GPU it sees, whether or not it keeps anything there): all are retained, and those which turn out to hold
 * nothing are let go as soon as the operation has begun. A caller that knows better names them.
 */
struct stasis_gpu_set {
	const struct stasis_id *uuids; /* borrowed */
	unsigned int count;
};

/* All or none. Failures are STASIS_REFUSED: want of memory and exclusive compute mode are named. */
NODISCARD int stasis_contexts_retain(const struct stasis_driver *driver,
				     const struct stasis_gpu_set *gpus,
				     struct stasis_contexts *ret_contexts,
				     struct stasis_error *err);
void stasis_contexts_release(struct stasis_contexts *contexts);

static inline void cleanup_contexts(struct stasis_contexts *contexts)
{
	stasis_contexts_release(contexts);
}

/* What an operation needs of one GPU, and what is there. */
struct stasis_gpu_room {
	struct stasis_id uuid;
	uint64_t need_bytes; /* extent bytes to be restored there; 0 for a checkpoint */
	uint64_t free_bytes;
	bool has_context; /* free_bytes was read with a context of ours in place */
};

/*
 * Reads free_bytes and has_context for rooms whose uuid and need_bytes are set. Makes a context for the
 * moment where there is none; where there is no memory for one, free_bytes is 0 and has_context false.
 */
NODISCARD int stasis_gpu_rooms_read(const struct stasis_driver *driver,
				    struct stasis_gpu_room *rooms, unsigned int count,
				    struct stasis_error *err);

/* STASIS_REFUSED unless each GPU has need_bytes, and context_bytes more where no context was counted. */
NODISCARD int stasis_gpu_rooms_check(const struct stasis_gpu_room *rooms, unsigned int count,
				     uint64_t context_bytes, struct stasis_error *err);

/* ---- CustomStorage ---- */

enum stasis_operation_direction {
	STASIS_OPERATION_CHECKPOINT = 1, /* bytes leave the views */
	STASIS_OPERATION_RESTORE = 2,    /* bytes enter the views */
};

enum stasis_operation_state {
	STASIS_OPERATION_IDLE,      /* nothing begun; or moved away, or released */
	STASIS_OPERATION_BEGUN,     /* views are mapped; complete is due */
	STASIS_OPERATION_COMPLETED, /* the target has the state that the direction leads to */
	STASIS_OPERATION_FATAL, /* failed between begin and complete: the target's fate is unknown */
};

/* The target's memory on one GPU, mapped here. Its address has nothing to do with the target's own. */
struct stasis_view {
	struct stasis_device device;
	CUdeviceptr pointer;
	uint64_t bytes;
	CUstream stream;   /* the driver's; synchronised by complete */
	CUcontext context; /* the primary context that the view lives in */
};

/*
 * An operation on one target. Zeroed: idle. It must not be copied, only moved. An operation that is begun
 * or fatal must not be dropped: stasis_operation_close() asserts that somebody has seen it (completed,
 * acknowledged, moved or released).
 */
struct stasis_operation {
	enum stasis_operation_state state;
	enum stasis_operation_direction direction;
	const struct stasis_target *target;  /* borrowed; outlives the operation */
	CUcheckpointCustomStorageInfo *info; /* the driver's */
	CUcheckpointOperationHandle handle;
	struct stasis_contexts contexts;
	unsigned int view_count;
	struct stasis_view views[STASIS_DEVICES_MAX];
	struct stasis_error verdict; /* on the driver's description; STASIS_OK: it is sound */
	struct stasis_error fatal;   /* why it is fatal */
	bool is_fatal_seen;
};

#define STASIS_OPERATION_EMPTY                                                                     \
	{                                                                                          \
		.state = STASIS_OPERATION_IDLE                                                     \
	}

struct stasis_operation_options {
	enum stasis_operation_direction direction;
	struct stasis_gpu_set gpus; /* GPUs here that hold, or will hold, the target's data */
	struct stasis_remap remap;  /* restore only */
};

/*
 * Begins on a LOCKED target (checkpoint) or a CHECKPOINTED one (restore). -1 with the operation idle:
 * nothing is begun, and err->status says how the target is: a checkpoint that failed leaves it running
 * (it is unlocked where it was found still LOCKED). -1 with the operation fatal: the driver has begun, but
 * what it handed out cannot be used.
 */
NODISCARD int stasis_operation_begin(struct stasis_operation *operation,
				     const struct stasis_target *target,
				     const struct stasis_operation_options *options,
				     struct stasis_error *err);

/*
 * Takes over an operation that other code of this process has begun, with the description that the driver
 * gave it. It is judged as in begin; a bad one makes the operation fatal, and complete refuses it. -1 with
 * the operation idle: nothing was taken over.
 */
NODISCARD int stasis_operation_adopt(struct stasis_operation *operation,
				     const struct stasis_target *target,
				     enum stasis_operation_direction direction,
				     CUcheckpointCustomStorageInfo *info, struct stasis_error *err);

/* What is expected of a view: the new GPU's UUID, and the extent's exact size. */
struct stasis_view_expected {
	struct stasis_id uuid;
	uint64_t bytes;
};

/*
 * Before a byte is copied in: the views are exactly those expected, by UUID and size. Otherwise the
 * operation is fatal, since there is nothing to put into a view and no way back.
 */
NODISCARD int stasis_operation_match(struct stasis_operation *operation,
				     const struct stasis_view_expected *expected,
				     unsigned int expected_count, struct stasis_error *err);

/* NULL: no view on that GPU. */
const struct stasis_view *stasis_operation_view(const struct stasis_operation *operation,
						const struct stasis_id *uuid);

/*
 * Ends a begun operation, once, after all copies are done or enqueued on the views' streams; blocks until
 * the driver is done. Confirms the target's new state and lets go of the contexts. A failure makes the
 * operation fatal; a second call is refused as STASIS_INTERNAL and changes nothing.
 */
NODISCARD int stasis_operation_complete(struct stasis_operation *operation,
					struct stasis_error *err);

/* Says that a device copy failed, or that the bytes to be copied in turned out bad: fatal from now on. */
void stasis_operation_mark_fatal(struct stasis_operation *operation,
				 const struct stasis_error *cause);

/* True: fatal; the cause is in *ret_cause (may be NULL). The caller has seen it, and must report it. */
bool stasis_operation_acknowledge_fatal(struct stasis_operation *operation,
					struct stasis_error *ret_cause);

/* `ret_to`, idle until now, takes everything over; `from` is idle. */
void stasis_operation_move(struct stasis_operation *from, struct stasis_operation *ret_to);

/*
 * Gives a begun operation to other code of this process, for it to complete: returns the driver's
 * description. The contexts stay retained for the life of the process, since the views live in them.
 */
CUcheckpointCustomStorageInfo *stasis_operation_release(struct stasis_operation *operation);

/* Drops what is idle, completed, or fatal and acknowledged; makes it idle. */
void stasis_operation_close(struct stasis_operation *operation);

static inline void cleanup_operation(struct stasis_operation *operation)
{
	stasis_operation_close(operation);
}

#endif
