#ifndef STASIS_GROUP_TOPOLOGY_H
#define STASIS_GROUP_TOPOLOGY_H

/*
 * What the participants of a group say of their memory, put together: who holds which object, who made it, and who
 * hands out its content. Built from the records of all, in any order, and checked whole, so that what
 * cannot be captured or rebuilt is refused by name before anything is touched. Pure: no process is asked and
 * no driver is called. One thread at a time.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "wire/message.h"
#include "wire/record.h"

struct stasis_member {
	struct stasis_id participant;
	pid_t pid;                            /* as the coordinator sees it */
	uint64_t start_ticks;                 /* of the process; with its pid: which one it is */
	char name[STASIS_PROCESS_NAME_BYTES]; /* for messages; may be empty */
	char build[STASIS_WIRE_BUILD_TEXT_BYTES];
	struct stasis_wire_record *records; /* sorted; see stasis_topology_check() */
	uint32_t record_count;
};

/* A participant's record of an object; NULL for a participant that has none. */
struct stasis_holder {
	const struct stasis_member *member;
	const struct stasis_wire_record *record; /* of type ALLOCATION or MULTICAST */
};

struct stasis_group_object {
	struct stasis_id id;
	struct stasis_id creator;
	const struct stasis_holder *holders; /* in the order of participants; at least one */
	uint32_t holder_count;
	/*
	 * Who hands out the content and makes the object anew: its creator while that holds it, else the holder with
	 * the lowest participant. Index in `holders`.
	 */
	uint32_t owner_index;
	bool is_multicast;
	bool is_ours; /* saved and rebuilt by us, not by the driver */
	uint64_t bytes;
};

/* Empty when zeroed. */
struct stasis_topology {
	struct stasis_member *members; /* in the order of participants once put together */
	uint32_t member_count;
	struct stasis_group_object *objects; /* in the order of ids */
	uint32_t object_count;
	struct stasis_holder *holders; /* NULL until it is put together */
};

/*
 * Adds a participant with a copy of its records. Refused: the same participant or process twice, more than
 * STASIS_WIRE_PEERS_MAX of them.
 */
NODISCARD int stasis_topology_add(struct stasis_topology *topology,
				  const struct stasis_member *member, struct stasis_error *err);

/*
 * Puts everything together, after the last member was added, and judges nothing: for who wants to tell what there is
 * even where it cannot be captured. Done once; a second time does nothing. Fails where no member was added.
 */
NODISCARD int stasis_topology_assemble(struct stasis_topology *topology, struct stasis_error *err);

/*
 * Puts everything together, unless it is already, and refuses, naming process and object, what cannot be captured: see
 * docs/design.md. Failures are STASIS_REFUSED.
 */
NODISCARD int stasis_topology_check(struct stasis_topology *topology, struct stasis_error *err);

/*
 * Whether the same participants hold the same memory in the same way: the first difference is named. What a rebuild
 * may change is not looked at: which objects are attached again. Both are checked ones.
 */
NODISCARD int stasis_topology_compare(const struct stasis_topology *captured,
				      const struct stasis_topology *present,
				      struct stasis_error *err);

void stasis_topology_free(struct stasis_topology *topology);

static inline void cleanup_topology(struct stasis_topology *topology)
{
	stasis_topology_free(topology);
}

/* What the contents that are ours take up: to be saved, and there again when they are rebuilt. */
struct stasis_device_need {
	struct stasis_id device; /* its UUID */
	uint64_t bytes;
	uint32_t object_count;
};

/* Empty when zeroed. */
struct stasis_needs {
	struct stasis_device_need
		*devices; /* in the order of UUIDs; those that need nothing are left out */
	uint32_t device_count;
	uint64_t host_bytes;
	uint32_t host_object_count;
	uint64_t bytes; /* of all devices and the host */
};

/*
 * Adds up the contents of the objects that are ours, each once, where its owner has it. Multicast objects have none of
 * their own. Of one that is put together; refused where the sum exceeds 64 bits.
 */
NODISCARD int stasis_topology_needs(const struct stasis_topology *topology,
				    struct stasis_needs *ret_needs, struct stasis_error *err);
void stasis_needs_free(struct stasis_needs *needs);

static inline void cleanup_needs(struct stasis_needs *needs)
{
	stasis_needs_free(needs);
}

/* NULL: nobody holds it. */
const struct stasis_group_object *stasis_topology_find(const struct stasis_topology *topology,
						       const struct stasis_id *id);

#endif
