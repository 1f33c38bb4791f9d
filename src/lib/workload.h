#ifndef STASIS_LIB_WORKLOAD_H
#define STASIS_LIB_WORKLOAD_H

/*
 * The round trip's program as its leader sees it: started before the leader touches CUDA, spoken with by
 * two pipes of lines (src/workload/main.c has the words). Waiting for an answer ends when the program does,
 * or when the supervisor wants an end; how long it may take at all is the watchdog's business.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "lib/channel.h"

struct stasis_lib_workload_plan {
	const char *program;
	const char *libcuda;
	uint64_t bytes;
	uint64_t seed;
	uint32_t device;
	pid_t tracer; /* whose descendants may act on it */
};

struct stasis_lib_workload {
	pid_t pid;      /* 0: not started */
	int command_fd; /* -1: empty */
	int answer_fd;  /* -1: empty */
	char buffer[2048];
	size_t buffered;
};

#define STASIS_LIB_WORKLOAD_EMPTY                                                                  \
	{                                                                                          \
		.command_fd = -1, .answer_fd = -1                                                  \
	}

/* What the program said about its memory. */
struct stasis_lib_comparison {
	bool is_right;
	uint64_t offset; /* of the first wrong byte, where it is not */
	char text[128];  /* "expected 0x12, found 0x34" */
};

NODISCARD int stasis_lib_workload_start(const struct stasis_lib_workload_plan *plan,
					struct stasis_lib_workload *workload,
					struct stasis_error *err);

/* Waits for "ready". */
NODISCARD int stasis_lib_workload_ready(struct stasis_lib_workload *workload,
					struct stasis_lib_channel *channel, uint64_t *ret_pointer,
					uint64_t *ret_bytes, struct stasis_error *err);

NODISCARD int stasis_lib_workload_compare(struct stasis_lib_workload *workload,
					  struct stasis_lib_channel *channel,
					  struct stasis_lib_comparison *ret_comparison,
					  struct stasis_error *err);
NODISCARD int stasis_lib_workload_operate(struct stasis_lib_workload *workload,
					  struct stasis_lib_channel *channel,
					  struct stasis_error *err);

/* Tells it to quit, and waits for its end; an exit status other than `exit_status` is a failure. */
NODISCARD int stasis_lib_workload_finish(struct stasis_lib_workload *workload, int exit_status,
					 struct stasis_error *err);

/* Closes the pipes. The program then compares by itself and exits; the supervisor reaps it. */
void stasis_lib_workload_release(struct stasis_lib_workload *workload);

#endif
