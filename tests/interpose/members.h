#ifndef TESTS_INTERPOSE_MEMBERS_H
#define TESTS_INTERPOSE_MEMBERS_H

/*
 * Participants that are captured and rebuilt together by the coordinator in small of coordinator.h. What fails here
 * ends the test.
 */

#include <stdbool.h>

#include "coordinator.h"

struct t_member {
	struct t_child child;
	struct t_session session;
	struct stasis_id participant; /* once a session was open */
	/* What it handed out last, with the descriptors. */
	struct stasis_wire_exports exports;
	struct stasis_wire_descriptors descriptors;
};

/* A session with each, of one operation, and the table of all of them; NULL for no capture. */
void t_members_open(struct t_member *members, uint32_t count, const struct stasis_id *of_capture);
void t_members_close(struct t_member *members, uint32_t count);

/* Does a phase that has no items; GATE is both of its steps. */
void t_member_do(struct t_member *member, enum stasis_wire_phase phase);

/* The phases `from` to `to`, both included, each on all before the next. None of them has items. */
void t_members_do(struct t_member *members, uint32_t count, enum stasis_wire_phase from,
		  enum stasis_wire_phase to);

/* SAVE_ALLOCATIONS or EXPORT_ALLOCATIONS into `exports` and `descriptors`, whose former ones are closed. */
void t_member_take(struct t_member *member, enum stasis_wire_phase phase);

/* Keeps, of what it handed out, only what it created itself. */
void t_member_keep_created(struct t_member *member);

/*
 * LOAD_ALLOCATIONS, the last page: of `exports`, to be attached to `descriptors`, or to be created where those are
 * none. -1: refused; see `error` of the session.
 */
int t_member_load(struct t_member *member, const struct stasis_wire_exports *exports,
		  const struct stasis_wire_descriptors *descriptors);

#endif
