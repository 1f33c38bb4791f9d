#ifndef STASIS_IMAGE_WRITER_H
#define STASIS_IMAGE_WRITER_H

/*
 * The inside of the writer, shared by the files that make it up. Internal to the image module.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "image/image.h"
#include "image/names.h"
#include "image/owner.h"

/* The files of an extent; `public` is what the caller gets. */
struct stasis_image_slot {
	struct stasis_image_output public;
	struct stasis_image_names names;
	uint32_t reserve_numbers[STASIS_STRIPES_MAX]; /* from 1; 0: not a file of the reserve */
};

/* A file of a reserve that was taken over. */
struct stasis_image_reserve_file {
	uint32_t number; /* its name in the reserve */
	int fd;
	void *map; /* of the whole file, where that is in memory */
	uint64_t map_bytes;
};

struct stasis_image_takeover {
	int dir_fd; /* -1: nothing was taken over */
	struct stasis_image_reserve_file *files;
	uint32_t count;
	uint32_t used; /* have become stripes, or could not */
	uint32_t returned;
	uint64_t file_bytes;
};

struct stasis_image_writer {
	char *path; /* the final place, for messages */
	char *partial_path;
	char name[NAME_MAX + 1]; /* the two names in the parent directory */
	char partial_name[NAME_MAX + 1];
	int parent_fd;
	int dir_fd; /* -1: the partial was not made, or is gone */
	int gpu_fd; /* -1: no extent yet */
	struct stasis_image_owner owner;
	struct stasis_image_manifest manifest;
	struct stasis_image_takeover takeover;
	struct stasis_image_slot **slots; /* one for each extent of the manifest */
	bool is_failed;                   /* sealing failed: never to be published */
	bool is_sealed;
	bool is_staged;
	bool is_published;
	bool is_kept;
};

/* Makes room for one more item behind `count`; NULL: no memory, and *items is as before. */
NODISCARD void *stasis_image_list_grow(void *items_pointer, size_t count, size_t item_bytes);

void stasis_image_slot_free(struct stasis_image_slot *slot);

/* Refuses, each with its own line, a destination that cannot take an image; fills names and parent. */
NODISCARD int stasis_image_destination_check(const char *path, struct stasis_image_writer *writer,
					     struct stasis_error *err);

#endif
