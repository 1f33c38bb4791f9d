#ifndef STASIS_LIB_CHANNEL_H
#define STASIS_LIB_CHANNEL_H

/*
 * The line between the supervisor and a process that it forked to make CUDA calls: one socketpair of
 * records. The child sends events, the phase that begins, what became known of the target, and its final
 * error; the supervisor sends nothing but the wish that the child give up. Both ends are forks of one
 * program, so a record is a plain structure. Each end is used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "lib/calls.h"
#include "lib/library.h"
#include "lib/phase.h"

enum stasis_lib_record_kind {
	STASIS_LIB_RECORD_EVENT = 1, /* key and text */
	STASIS_LIB_RECORD_PHASE,     /* number: enum stasis_lib_phase */
	STASIS_LIB_RECORD_WORKLOAD,  /* number: the workload's pid */
	STASIS_LIB_RECORD_FACT,      /* number: enum stasis_lib_fact; text: a path */
	STASIS_LIB_RECORD_END,       /* err; nothing follows */
};

/* What the supervisor must know to bring a target back after the worker was lost. */
enum stasis_lib_fact {
	STASIS_LIB_FACT_NATIVE = 1, /* the store is the driver's */
	STASIS_LIB_FACT_LIBCUDA,    /* text: the driver's path */
	STASIS_LIB_FACT_PARTIAL,    /* text: where the image is being made */
	STASIS_LIB_FACT_DURABLE,    /* the partial holds everything */
	STASIS_LIB_FACT_PUBLISHED,  /* the image has its name */
	STASIS_LIB_FACT_REMOVED,    /* the partial is gone again */
	STASIS_LIB_FACT_KEEP,       /* the target is suspended and intact: do not end it */
	STASIS_LIB_FACT_OUTGROWN,   /* a tree has more processes than were taken: again, with all */
	STASIS_LIB_FACT_SUSPENDED,  /* recovery has left the group as it is, suspended */
};

struct stasis_lib_record {
	uint32_t kind;
	int32_t number;
	char key[64];
	union {
		char text[STASIS_ERROR_TEXT_BYTES];
		struct stasis_error err;
	};
};

struct stasis_lib_channel {
	int fd;                          /* -1: empty */
	stasis_lib_call_word *call_word; /* for stasis_lib_calls_note(); may be NULL */
	bool is_peer_gone;               /* the supervisor has ended */
	bool is_giving_up;               /* the supervisor wants an end */
	bool is_past_cancel;             /* we are undoing already: do not look any more */
	struct stasis_lib_sink sink;     /* sends events through this channel */
};

#define STASIS_LIB_CHANNEL_EMPTY                                                                   \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Child's side. Takes the descriptor; the channel must stay where it is. */
void stasis_lib_channel_init(struct stasis_lib_channel *channel, int fd,
			     stasis_lib_call_word *call_word);

/* A supervisor that is gone is noticed by stasis_lib_channel_is_cancelled(), not here. */
void stasis_lib_channel_send(struct stasis_lib_channel *channel,
			     const struct stasis_lib_record *record);
void stasis_lib_channel_fact(struct stasis_lib_channel *channel, enum stasis_lib_fact fact,
			     const char *text);
void stasis_lib_channel_workload(struct stasis_lib_channel *channel, pid_t pid);
void stasis_lib_channel_end(struct stasis_lib_channel *channel, const struct stasis_error *err);

/* Events of progress are dropped rather than waited for. */
void stasis_lib_channel_progress(struct stasis_lib_channel *channel, const char *label,
				 uint64_t done_bytes, uint64_t total_bytes);

/* True from the moment that the supervisor wants an end, or has ended. */
bool stasis_lib_channel_is_cancelled(struct stasis_lib_channel *channel);

/*
 * Reports that a phase begins, and passes its fault point. Fails where that says so or the supervisor wants
 * an end: so no phase begins after that.
 */
NODISCARD int stasis_lib_phase_begin(struct stasis_lib_channel *channel,
				     enum stasis_lib_phase phase, struct stasis_error *err);

/* As above where there is no way but forward: reports, and goes on whatever the supervisor wants. */
void stasis_lib_phase_enter(struct stasis_lib_channel *channel, enum stasis_lib_phase phase);

/* Supervisor's side: the next record. *ret_is_end: the child closed its end. */
NODISCARD int stasis_lib_channel_receive(int fd, struct stasis_lib_record *ret_record,
					 bool *ret_is_end, struct stasis_error *err);

/* Supervisor's side: asks the child to give up. */
void stasis_lib_channel_cancel(int fd);

#endif
