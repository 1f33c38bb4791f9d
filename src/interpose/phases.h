#ifndef STASIS_INTERPOSE_PHASES_H
#define STASIS_INTERPOSE_PHASES_H

/*
 * What the endpoint calls in the other parts when the coordinator asks for a phase, and when a peer asks for a
 * descriptor. The endpoint sees to order, repetition and descriptors (lifecycle.h, serve.c):
 *
 *   - The phases run one at a time on the control thread; stasis_phase_fetch() runs on the peer thread at the
 *     same time. Neither goes through wrappers or the gate.
 *   - From GATE step 2 to OPEN no call of the application is in the driver. INSPECT alone may run beside the
 *     application.
 *   - A phase that failed may have done a part. What undoes it is called then, and must cope with that:
 *     it goes by what the records say is up or down. Nothing to do is success.
 *   - *ret_done counts what the phase dealt with: bytes of memory and objects.
 *   - Descriptors that come in are taken by the phase function, whatever it returns; it leaves -1 in the place
 *     of each one that it keeps, and the endpoint closes the rest. Those that go out in a page belong
 *     to the endpoint, which closes them after it has sent them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/message.h"
#include "wire/packet.h"

/* Allocations with their descriptors, item by item; at most STASIS_WIRE_DESCRIPTORS_MAX. */
struct stasis_phase_page {
	struct stasis_wire_exports exports; /* `first` is the number of the first item */
	struct stasis_wire_descriptors descriptors;
	bool has_more;
};

/*
 * Gate. Step 2 is asked for after step 1 and may come again after a try that failed; a failure leaves
 * the gate as step 1 left it. The limit is for the whole call.
 */
NODISCARD int stasis_phase_gate(enum stasis_wire_gate_step step, uint64_t limit_ns,
				struct stasis_wire_done *ret_done, struct stasis_error *err);
/* Opens the gate, whatever its step; cannot fail half. Also called where a session ends before ARM. */
NODISCARD int stasis_phase_open(struct stasis_wire_done *ret_done, struct stasis_error *err);

/* Allocations that this participant can hand out the content of: created and held here, or imported. */
NODISCARD int stasis_phase_save_page(uint64_t first, struct stasis_phase_page *ret_page,
				     struct stasis_error *err);

NODISCARD int stasis_phase_prepare_multicast(struct stasis_wire_done *ret_done,
					     struct stasis_error *err);
NODISCARD int stasis_phase_prepare_unicast(struct stasis_wire_done *ret_done,
					   struct stasis_error *err);

/*
 * One call a page. With descriptors (as many as items) each allocation is attached to what its descriptor
 * holds, without any it is created; one that is up stays as it is. Both also for imports. `is_last`: no page follows;
 * it fails if something that was created here is still down then.
 */
NODISCARD int stasis_phase_load_allocations(const struct stasis_wire_exports *exports,
					    struct stasis_wire_descriptors *descriptors,
					    bool is_last, struct stasis_wire_done *ret_done,
					    struct stasis_error *err);
NODISCARD int stasis_phase_export_page(uint64_t first, struct stasis_phase_page *ret_page,
				       struct stasis_error *err);
/* Asks the creators for what is still down; fails unless everything of ours is up in the end. */
NODISCARD int stasis_phase_restore_unicast(struct stasis_wire_done *ret_done,
					   struct stasis_error *err);

NODISCARD int stasis_phase_restore_multicast_creators(struct stasis_wire_done *ret_done,
						      struct stasis_error *err);
NODISCARD int stasis_phase_restore_multicast_importers(struct stasis_wire_done *ret_done,
						       struct stasis_error *err);
NODISCARD int stasis_phase_restore_multicast_devices(struct stasis_wire_done *ret_done,
						     struct stasis_error *err);
NODISCARD int stasis_phase_restore_multicast_bindings(struct stasis_wire_done *ret_done,
						      struct stasis_error *err);

/*
 * Up to `max` records from number `first` on, in an order that stays the same while the generation does; all
 * of them at one instant. `first` may lie beyond the end. Makes no driver call.
 */
struct stasis_phase_records {
	uint64_t generation; /* grows with every change */
	uint64_t total;
	uint32_t count;
};
void stasis_phase_records(uint64_t first, uint32_t max, struct stasis_wire_record *ret_records,
			  struct stasis_phase_records *ret_info);

/* A descriptor of the driver's for an object created here, for a peer; owned by the caller. Peer thread. */
NODISCARD int stasis_phase_fetch(const struct stasis_id *object, int *ret_fd, uint64_t *ret_bytes,
				 struct stasis_error *err);

#endif
