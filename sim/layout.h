#ifndef SIM_LAYOUT_H
#define SIM_LAYOUT_H

/*
 * Where everything of a process stands in the extents of a CustomStorage operation. An extent is all
 * that the process has on one GPU, as a row of pieces in an order of chance, which only the process
 * knows: pieces of its memory objects, and of a blob that stands for the driver's own state:
 *
 *     | object 3, 2nd part | blob, 4th part | object 1 | object 3, 1st part | blob, 1st part | ...
 *
 * The order is drawn at the checkpoint and is the same at the restore. The blob is a row of numbers that
 * follows from a seed; a restore that brings back another one is noticed. Core lock held.
 */

#include <stdbool.h>
#include <stddef.h>

#include "compiler.h"
#include "protocol.h"

#define SIM_BLOB_BYTES (8ULL << 20)

struct sim_layout;

/* Of all device memory as it is; NULL: no host memory. */
struct sim_layout *sim_layout_new(void);
void sim_layout_free(struct sim_layout *layout);

/*
 * The files as they are now and a new file for each blob, written if 'with_blobs'. OUT_OF_MEMORY where
 * the host has none left.
 */
NODISCARD CUresult sim_layout_open(struct sim_layout *layout, bool with_blobs);
/* Drops the blobs' files. */
void sim_layout_close(struct sim_layout *layout);

/* While open: descriptors that stay the layout's. */
size_t sim_layout_file_count(const struct sim_layout *layout);
void sim_layout_files(const struct sim_layout *layout, size_t first, size_t count, int *ret_fds);

/*
 * A file that holds the table of pieces, GPU by GPU; in which order these come depends on
 * 'is_restore'. The caller closes it; -1 where the host has no memory.
 */
NODISCARD int sim_layout_table(const struct sim_layout *layout, bool is_restore,
			       size_t *ret_piece_count);

/* While open: whether every blob is what it was. */
bool sim_layout_is_whole(const struct sim_layout *layout);

#endif
