#ifndef STASIS_TESTS_FAKE_DRIVER_H
#define STASIS_TESTS_FAKE_DRIVER_H

/*
 * A table of driver entries that are played by this program: a few GPUs, contexts that are counted, and
 * one target whose state is a variable. Rules make a call fail, or change the state behind it. Device
 * handles are neither ordinals nor in their order, so that nothing can take one for the other.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/id.h"
#include "driver/device.h"
#include "driver/driver.h"

#define FAKE_GPUS_MAX 4
#define FAKE_RULES_MAX 8
#define FAKE_KEEP (-1) /* a rule that leaves the target's state as it is */

struct fake_gpu {
	CUuuid uuid;
	const char *name;
	int capability_major;
	int capability_minor;
	int compute_mode;
	size_t total_bytes;
	size_t free_bytes;
	bool is_mig;
	int retained;       /* primary context: retained less released */
	int retained_most;  /* the most that it ever was */
	int retained_begin; /* when the operation began */
	int stream_device; /* what cuStreamGetDevice says of this GPU's stream: an ordinal; -1: itself */
	bool has_no_context;
	char context; /* its address is the context */
	char stream;  /* its address is the driver's stream */
};

struct fake_rule {
	const char *call;
	int passage; /* the how-manieth call; 0: every one */
	CUresult result;
	int state;  /* of the target from then on; FAKE_KEEP */
	bool works; /* the call does its work all the same */
};

struct fake {
	int gpu_count;
	int vanish_passage; /* from this call of cuDeviceGetCount on, the last GPU is not there */
	struct fake_gpu gpus[FAKE_GPUS_MAX];
	CUprocessState state;
	pid_t pid;              /* whom the calls must name */
	const char *kills_call; /* the target dies in each call of this name */
	bool kills;             /* a checkpoint or restore kills the target */
	int rule_count;
	struct fake_rule rules[FAKE_RULES_MAX];
	CUcheckpointCustomStorageInfo *info; /* what a begin hands out */
	unsigned int lock_timeout_ms;
	bool has_dirty_args; /* reserved bytes that were not zero */
	int pairs_count;
	CUcheckpointGpuPair pairs[FAKE_GPUS_MAX];
	CUcheckpointOperationHandle completed;
	int pushed;       /* contexts pushed less popped */
	int current;      /* the GPU whose context is on top */
	char calls[4096]; /* names of the calls that reach a target, each followed by a space */
};

extern struct fake fake;

/* Puts everything back to `gpu_count` GPUs alike and a RUNNING target; fills the table for CUDA 13.4. */
void fake_reset(int gpu_count, struct stasis_driver *ret_driver);

void fake_rule(const char *call, int passage, CUresult result, int state);
void fake_rule_works(const char *call, int passage, CUresult result, int state);

/* How often a call was made. */
int fake_count(const char *call);

/* The UUID of a GPU by its ordinal. */
struct stasis_id fake_uuid(int ordinal);

/* A child that waits, as the target; its death, leaving a zombie; and its end for good. */
pid_t fake_target_start(void);
void fake_target_kill(void);
void fake_target_end(pid_t pid);

#endif
