#ifndef STASIS_GROUP_PARTICIPANT_H
#define STASIS_GROUP_PARTICIPANT_H

/*
 * The coordinator's end of one participant: the process, held by its pidfd, and a session with the interposer in it.
 * One thread at a time uses one.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "wire/call.h"
#include "wire/message.h"

struct stasis_participant {
	struct stasis_process process;
	int socket_fd; /* -1: no session */
	struct stasis_id operation;
	uint32_t sequence; /* of the last request */
	struct stasis_wire_session_reply greeting;
};

#define STASIS_PARTICIPANT_EMPTY                                                                   \
	{                                                                                          \
		.process = STASIS_PROCESS_EMPTY, .socket_fd = -1                                   \
	}

/*
 * Opens a session for `operation`; `capture` is what a suspended participant is to accept, NULL for a running one.
 * *ret_is_participant is false, and *ret_participant holds the process alone, where the interposer is not in it.
 * Refused: a process that is not there or may not be traced; one that another coordinator speaks to.
 */
NODISCARD int stasis_participant_open(pid_t pid, const struct stasis_id *operation,
				      const struct stasis_id *capture, uint64_t deadline_ns,
				      bool *ret_is_participant,
				      struct stasis_participant *ret_participant,
				      struct stasis_error *err);
/*
 * As an observer, who may only inspect, and is let in whatever another coordinator does there. `operation` is any id
 * but zero.
 */
NODISCARD int stasis_participant_observe(pid_t pid, const struct stasis_id *operation,
					 uint64_t deadline_ns, bool *ret_is_participant,
					 struct stasis_participant *ret_participant,
					 struct stasis_error *err);
void stasis_participant_close(struct stasis_participant *participant);

static inline void cleanup_participant(struct stasis_participant *participant)
{
	stasis_participant_close(participant);
}

/*
 * All its records, of one moment; the caller frees them. A state that keeps changing under the question is asked for
 * anew some times, then refused.
 */
NODISCARD int stasis_participant_inspect(struct stasis_participant *participant,
					 uint64_t deadline_ns,
					 struct stasis_wire_record **ret_records,
					 uint32_t *ret_count, struct stasis_error *err);

#endif
