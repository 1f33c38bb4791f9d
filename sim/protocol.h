#ifndef SIM_PROTOCOL_H
#define SIM_PROTOCOL_H

/*
 * What passes between a caller of the checkpoint API and the endpoint of its target: one request, one
 * reply, over a SOCK_SEQPACKET connection; both sides are this library. A CustomStorage operation keeps
 * its connection from begin to complete:
 *
 *     caller                                  target
 *     BEGIN_CHECKPOINT or BEGIN_RESTORE  ->
 *                                        <-   result, counts; the table of pieces as a descriptor
 *     FILES(first)                       ->
 *                                        <-   up to SIM_FILES_MAX descriptors; repeated for all
 *     BEGUN                              ->
 *                                        <-   result: from here on the caller's death is fatal
 *     COMPLETE                           ->
 *                                        <-   result
 *
 * A connection that ends before BEGUN leaves the target as it was.
 */

#include <stdint.h>

#include "driver/abi.h"

#include "config.h"

#define SIM_FILES_MAX 128
#define SIM_NO_OPERATION 0

enum sim_request_kind {
	SIM_REQUEST_STATE, /* of sim-state: never an error */
	SIM_REQUEST_GET_STATE,
	SIM_REQUEST_THREAD,
	SIM_REQUEST_LOCK,
	SIM_REQUEST_CHECKPOINT,
	SIM_REQUEST_RESTORE,
	SIM_REQUEST_UNLOCK,
	SIM_REQUEST_BEGIN_CHECKPOINT,
	SIM_REQUEST_BEGIN_RESTORE,
	SIM_REQUEST_FILES,
	SIM_REQUEST_BEGUN,
	SIM_REQUEST_COMPLETE,
};

struct sim_request {
	uint32_t kind;
	uint32_t timeout_ms; /* LOCK; 0: none */
	uint32_t first_file; /* FILES */
	uint32_t pair_count; /* RESTORE, BEGIN_RESTORE */
	CUcheckpointGpuPair pairs[SIM_DEVICES_MAX];
};

struct sim_reply {
	int32_t result; /* CUresult */
	int32_t state;  /* CUprocessState */
	int32_t thread_id;
	uint32_t is_lost;      /* a restore failed */
	uint32_t is_operating; /* between begin and complete */
	uint32_t piece_count;
	uint32_t file_count; /* in all; of FILES: in this reply */
	uint32_t reserved;
};

/* A row of the table of pieces: they follow each other in the extent of their GPU without a gap. */
struct sim_piece {
	uint32_t device; /* of the machine; pieces of one stand together */
	uint32_t file;   /* index of its descriptor */
	uint64_t offset; /* in the file */
	uint64_t bytes;
};

_Static_assert(sizeof(struct sim_request) == 16 + 32 * SIM_DEVICES_MAX, "no padding");
_Static_assert(sizeof(struct sim_reply) == 32, "no padding");
_Static_assert(sizeof(struct sim_piece) == 24, "no padding");

#endif
