#ifndef STASIS_IMAGE_OWNER_H
#define STASIS_IMAGE_OWNER_H

/*
 * The owner record of a partial directory, owner.json: who is making the capture and which processes may be
 * suspended with their only bytes in it. Internal to the image module.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "image/manifest.h"

#define STASIS_IMAGE_OWNER_NAME "owner.json"
#define STASIS_IMAGE_OWNER_BYTES_MAX (1 << 20)
#define STASIS_IMAGE_PARTIAL_MARK ".partial-"
#define STASIS_IMAGE_PARTIAL_DIGITS 16

struct stasis_image_owner_process {
	int32_t pid;
	uint64_t start_ticks;
};

struct stasis_image_owner {
	char boot_id[STASIS_IMAGE_TEXT_BYTES];       /* /proc/sys/kernel/random/boot_id */
	char pid_namespace[STASIS_IMAGE_TEXT_BYTES]; /* "pid:[4026531836]" */
	struct stasis_image_owner_process capturer;
	struct stasis_image_owner_process *processes;
	size_t process_count;
};

void stasis_image_owner_fini(struct stasis_image_owner *owner);

static inline void cleanup_image_owner(struct stasis_image_owner *owner)
{
	stasis_image_owner_fini(owner);
}

/* Boot, pid namespace and this process as the capturer; no processes. */
NODISCARD int stasis_image_owner_init(struct stasis_image_owner *ret_owner,
				      struct stasis_error *err);

/* Writes the record, durably, with the processes of `manifest`; passes "image_owner_write". */
NODISCARD int stasis_image_owner_write(int dir_fd, const struct stasis_image_owner *owner,
				       const struct stasis_image_manifest *manifest,
				       struct stasis_error *err);

/* The caller passes *ret_owner to stasis_image_owner_fini. */
NODISCARD int stasis_image_owner_decode(const char *text, size_t bytes,
					struct stasis_image_owner *ret_owner,
					struct stasis_error *err);

/* Whether a directory of this name is a partial. */
bool stasis_image_partial_name_is(const char *name);

/* Whether this very process still lives (no zombie); true where that cannot be known. */
bool stasis_image_owner_process_lives(const struct stasis_image_owner_process *process);

#endif
