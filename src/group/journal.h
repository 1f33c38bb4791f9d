#ifndef STASIS_GROUP_JOURNAL_H
#define STASIS_GROUP_JOURNAL_H

/*
 * What must be known to go on after a coordinator that died: a small file in the runtime folder, written anew,
 * durably, before each phase that changes something, and removed when nothing is left to be done. One thread
 * at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "group/watch.h"

#define STASIS_JOURNAL_PATH_BYTES 4096

struct stasis_journal_process {
	pid_t pid;
	uint64_t start_ticks;
};

struct stasis_journal {
	char path[STASIS_JOURNAL_PATH_BYTES]; /* of the file; "": there is none */
	struct stasis_id capture;
	char image[STASIS_JOURNAL_PATH_BYTES];   /* where it is, or would be published */
	char partial[STASIS_JOURNAL_PATH_BYTES]; /* ""; or where a capture is making it */
	char phase[32];                          /* the last that began */
	struct stasis_journal_process coordinator;
	struct stasis_journal_process *processes;
	size_t process_count;
};

#define STASIS_JOURNAL_EMPTY                                                                       \
	{                                                                                          \
		.path = ""                                                                         \
	}

/* The path that the journal of a capture has; the folder is that of the peers' sockets (wire/peer.h). */
NODISCARD int stasis_journal_path(const struct stasis_id *capture,
				  char ret_path[STASIS_JOURNAL_PATH_BYTES],
				  struct stasis_error *err);

/* Writes it with a new phase; this process becomes its coordinator. Makes the folder where it is missing. */
NODISCARD int stasis_journal_write(struct stasis_journal *journal, enum stasis_group_phase phase,
				   struct stasis_error *err);

/* Not there: success. */
NODISCARD int stasis_journal_remove(struct stasis_journal *journal, struct stasis_error *err);

/* STASIS_REFUSED: it is damaged, or not ours alone. *ret_is_there: false, and nothing else, where there is none. */
NODISCARD int stasis_journal_read(const char *path, bool *ret_is_there,
				  struct stasis_journal *ret_journal, struct stasis_error *err);
void stasis_journal_free(struct stasis_journal *journal);

static inline void cleanup_journal(struct stasis_journal *journal)
{
	stasis_journal_free(journal);
}

/* The paths of all journals in the folder; the caller frees each and the array. No folder: none. */
NODISCARD int stasis_journal_list(char ***ret_paths, size_t *ret_count, struct stasis_error *err);
void stasis_journal_list_free(char **paths, size_t count);

/* Whether the coordinator that wrote it lives. */
bool stasis_journal_is_busy(const struct stasis_journal *journal);

#endif
