#ifndef STASIS_LIB_HANDS_H
#define STASIS_LIB_HANDS_H

/*
 * What a process of ours acts on a target with: driver, target, transfer engine, and the channel to its
 * supervisor; and where a suspended target's bytes can be taken from. The way back to LOCKED is the same
 * whether a round trip goes well, undoes, or is rescued. One thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "driver/driver.h"
#include "image/image.h"
#include "lib/channel.h"
#include "transfer/transfer.h"

struct stasis_lib_hands {
	struct stasis_lib_channel *channel;
	struct stasis_driver driver;
	struct stasis_target target;
	struct stasis_transfer *transfer;
	atomic_bool is_cancelled;     /* set while a transfer runs */
	const char *progress_label;   /* of the transfer that runs */
	uint64_t rss_anon_peak_bytes; /* of this process, sampled while bytes move */
	uint64_t pinned_peak_bytes;
};

#define STASIS_LIB_HANDS_INIT(its_channel)                                                         \
	{                                                                                          \
		.channel = (its_channel), .target = STASIS_TARGET_EMPTY                            \
	}

void stasis_lib_hands_fini(struct stasis_lib_hands *hands);

/*
 * How transfers of ours are watched: progress to the supervisor, whose wish for an end cancels them if
 * `can_cancel`. Filled anew for each transfer.
 */
struct stasis_transfer_watch stasis_lib_hands_watch(struct stasis_lib_hands *hands,
						    const char *label, bool can_cancel);

/* Keeps the peaks of memory from what a transfer did. */
void stasis_lib_hands_measure(struct stasis_lib_hands *hands,
			      const struct stasis_transfer_result *result);

/* Unlocks the target; one that runs although the driver reported a failure is what was asked for. */
NODISCARD int stasis_lib_hands_unlock(struct stasis_lib_hands *hands, struct stasis_error *err);

/* Reads the target's state, reports it, and fails unless it is `expected`. */
NODISCARD int stasis_lib_hands_confirm(struct stasis_lib_hands *hands, CUprocessState expected,
				       struct stasis_error *err);

typedef char stasis_lib_stripe_names[STASIS_STRIPES_MAX][STASIS_IMAGE_STEM_BYTES + 8];

/* Bytes of an image, extent by extent, ready to be loaded. One block of memory: the caller frees it. */
struct stasis_lib_source {
	size_t count;
	struct stasis_transfer_extent *extents;
	struct stasis_id *gpu_uuids;
	stasis_lib_stripe_names *stripe_names;
};

/* Empty, with room for so many extents; NULL: no memory. */
NODISCARD struct stasis_lib_source *stasis_lib_source_new(size_t extent_count);

/* Borrows from the image, which must outlive the source. The caller frees it. */
NODISCARD int stasis_lib_source_of_image(const struct stasis_image *image,
					 struct stasis_lib_source **ret_source,
					 struct stasis_error *err);

/* Compares every byte with its digest. STASIS_BAD_IMAGE, and where: *ret_result. */
NODISCARD int stasis_lib_source_verify(struct stasis_lib_hands *hands,
				       const struct stasis_lib_source *source,
				       struct stasis_transfer_result *ret_result,
				       struct stasis_error *err);

/*
 * Puts damaged bytes right again while the views are open, so that the program is not lost to a damage that
 * was found while loading. NULL: there is nobody who could.
 */
struct stasis_lib_mender {
	int (*mend)(void *argument, const struct stasis_transfer_result *damage,
		    struct stasis_error *err);
	void *argument;
};

/*
 * CHECKPOINTED to LOCKED with the bytes of `source`: begin, compare views with extents, load, complete. A
 * load that fails on the file side is tried once more, since the driver has no way back.
 */
NODISCARD int stasis_lib_hands_restore(struct stasis_lib_hands *hands,
				       struct stasis_lib_source *source, bool is_verified,
				       const struct stasis_lib_mender *mender,
				       struct stasis_error *err);

#endif
