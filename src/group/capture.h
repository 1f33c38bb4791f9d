#ifndef STASIS_GROUP_CAPTURE_H
#define STASIS_GROUP_CAPTURE_H

/*
 * A running group becomes a suspended one and an image; or, whatever fails on the way, a running one again.
 *
 *     INSPECT → GATE → INSPECT → SAVE_ALLOCATIONS → ARM → PREPARE_MULTICAST → PREPARE_UNICAST
 *             → native lock (all) → native checkpoint (each) → published, committed
 *
 * Before ARM every byte is in the image and nothing has been taken apart. From PREPARE_UNICAST to the commit the
 * shared memory lives on behind descriptors that are kept here, and what native freed is held by allocations of
 * ours, so that undoing needs no memory that anybody could have taken and reads nothing back.
 */

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "group/group.h"
#include "group/hold.h"
#include "group/journal.h"
#include "group/layout.h"
#include "image/image.h"
#include "transfer/transfer.h"

struct stasis_capture_options {
	const char *image_path; /* absolute */
	struct stasis_image_origin origin;
	uint64_t gate_ns; /* for all tries of closing the gates together */
	uint64_t chunk_bytes;
	struct stasis_transfer_options transfer; /* driver is filled in */
	uint64_t host_bytes; /* of host memory that may be used; what native stores lies there */
	bool is_in_memory;   /* the image lies in host memory, too */
	int keeper_fd;       /* a socket in which duplicates of the descriptors wait; -1: none */
	/* Asked when all gates are shut, whether these are still all processes that are meant; NULL: they are. */
	int (*census)(void *data, struct stasis_error *err);
	void *census_data;
};

/* How far it has come: what undoing must undo. */
enum stasis_capture_stage {
	STASIS_CAPTURE_LOOKED,
	STASIS_CAPTURE_GATED,
	STASIS_CAPTURE_ARMED,
	STASIS_CAPTURE_MULTICAST, /* PREPARE_MULTICAST was asked for */
	STASIS_CAPTURE_UNICAST,
	STASIS_CAPTURE_NATIVE,
	STASIS_CAPTURE_PUBLISHED,
};

struct stasis_capture {
	struct stasis_group *group;
	const struct stasis_capture_options *options;
	enum stasis_capture_stage stage;
	struct stasis_image_writer *writer;
	struct stasis_contexts contexts;
	struct stasis_transfer *transfer;
	struct stasis_image_reserve_info reserve;
	struct stasis_layout layout;
	struct stasis_kept kept;
	struct stasis_hold hold;
	struct stasis_journal journal;
};

/*
 * On success the processes are suspended and the image is published. On failure err->status says what became of them;
 * STASIS_REFUSED: all run as before, and nothing of the image is left.
 */
NODISCARD int stasis_group_capture(struct stasis_group *group,
				   const struct stasis_capture_options *options,
				   struct stasis_error *err);

/* Brings the group back from wherever the capture has come to; adds to `err`, which holds the cause. */
void stasis_capture_undo(struct stasis_capture *capture, struct stasis_error *err);

/* Before anything is touched: what must be there, is there. */
NODISCARD int stasis_capture_preflight(struct stasis_capture *capture, struct stasis_error *err);

/*
 * Closes the gates of all participants, or of none: tries again with twice the time as long as `total_ns` allow.
 */
NODISCARD int stasis_gates_close(struct stasis_group *group, uint64_t total_ns,
				 struct stasis_error *err);

/* Of the memory that is ours to save. */
uint64_t stasis_capture_content_bytes(const struct stasis_topology *topology);

/* How long a participant may take to give up or take back all of it. */
uint64_t stasis_capture_phase_ns(const struct stasis_layout *layout);

/* Gives extents of host memory a device through which their bytes are moved. */
void stasis_capture_hosts_place(struct stasis_layout *layout,
				const struct stasis_contexts *contexts);

/* The owners' descriptors of all objects of the layout, by SAVE_ALLOCATIONS or EXPORT_ALLOCATIONS. */
NODISCARD int stasis_capture_exports(struct stasis_group *group, enum stasis_wire_phase phase,
				     const struct stasis_layout *layout,
				     struct stasis_kept *ret_kept, struct stasis_error *err);

#endif
