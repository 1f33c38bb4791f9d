/*
 * How a capture takes over a reserve: by a rename into its partial, before a target is paused; file by file as
 * stripes are made; and back with what is left. See reserve.h and image.h.
 */

#include "image/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "image/io.h"
#include "image/reserve.h"

static bool is_as_recorded(int fd, uint64_t bytes)
{
	struct stat info;

	return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
	       info.st_uid == geteuid() && (info.st_mode & 077) == 0 &&
	       (uint64_t)info.st_size == bytes && (uint64_t)info.st_blocks * 512 >= bytes;
}

/* A file that is not as the record says is not used; false: it is not. */
static bool file_open(int dir_fd, const char *name, uint64_t bytes, int *ret_fd)
{
	CLEANUP(fd) int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || !is_as_recorded(fd, bytes))
		return false;
	*ret_fd = fd_steal(&fd);
	return true;
}

/* Only what is in memory gains by a mapping. */
static bool is_in_memory(int fd)
{
	struct statfs info;

	return fstatfs(fd, &info) == 0 &&
	       (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

static void files_open(struct stasis_image_takeover *takeover,
		       const struct stasis_image_reserve_info *info)
{
	for (uint32_t i = 0; i < info->number_end; i++) {
		struct stasis_image_reserve_file *file = &takeover->files[takeover->count];
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", i);
		/* One that is missing went to an earlier capture. */
		if (!file_open(takeover->dir_fd, name, info->file_bytes, &file->fd))
			continue;
		file->number = i;
		takeover->count++;
		if (is_in_memory(file->fd) &&
		    stasis_file_map(file->fd, info->file_bytes, &file->map) == 0)
			file->map_bytes = info->file_bytes;
	}
}

static void ignore(struct stasis_image_reserve_info *info, const char *why)
{
	info->state = STASIS_IMAGE_RESERVE_DAMAGED;
	(void)snprintf(info->why, sizeof(info->why), "%s", why);
}

void stasis_image_writer_reserve_take(struct stasis_image_writer *writer,
				      struct stasis_image_reserve_info *ret_info)
{
	struct stasis_image_takeover *takeover = &writer->takeover;
	CLEANUP(fd) int fd = -1;
	int code = stasis_fault_point("image_reserve_take");

	stasis_image_reserve_judge(writer->parent_fd, ret_info, &fd);
	if (ret_info->state != STASIS_IMAGE_RESERVE_READY || takeover->dir_fd >= 0)
		return;
	takeover->files = calloc(ret_info->number_end, sizeof(*takeover->files));
	if (!takeover->files || code) {
		ignore(ret_info, "it could not be taken over");
		return;
	}
	if (renameat(writer->parent_fd, STASIS_IMAGE_RESERVE_NAME, writer->dir_fd,
		     STASIS_IMAGE_RESERVE_TAKEN_NAME) != 0) {
		/* Another capture was faster. */
		if (errno == ENOENT)
			ret_info->state = STASIS_IMAGE_RESERVE_NONE;
		else
			ignore(ret_info, "it could not be taken over");
		return;
	}
	takeover->dir_fd = fd_steal(&fd);
	takeover->file_bytes = ret_info->file_bytes;
	files_open(takeover, ret_info);
	ret_info->file_count = takeover->count;
	if (takeover->count == 0)
		ignore(ret_info, "none of its files is as its record says");
}

static void file_close(struct stasis_image_reserve_file *file)
{
	if (file->map)
		(void)munmap(file->map, (size_t)file->map_bytes);
	file->map = NULL;
	cleanup_fd(&file->fd);
}

bool stasis_image_takeover_next(struct stasis_image_writer *writer, const char *name,
				struct stasis_image_reserve_file *ret_file)
{
	struct stasis_image_takeover *takeover = &writer->takeover;

	while (takeover->used < takeover->count) {
		struct stasis_image_reserve_file *file = &takeover->files[takeover->used++];
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", file->number);
		if (stasis_fault_point("image_reserve_use") == 0 &&
		    renameat(takeover->dir_fd, number, writer->gpu_fd, name) == 0) {
			*ret_file = *file;
			*file = (struct stasis_image_reserve_file){.fd = -1};
			return true;
		}
		file_close(file);
	}
	return false;
}

/* Whether there is anything that another capture could use. */
static bool takeover_is_whole(const struct stasis_image_takeover *takeover)
{
	return takeover->used < takeover->count || takeover->returned > 0;
}

static void slot_return(struct stasis_image_writer *writer, const struct stasis_image_slot *slot)
{
	struct stasis_image_takeover *takeover = &writer->takeover;

	for (uint32_t s = 0; s < slot->public.stripe_count; s++) {
		char number[16];

		if (slot->reserve_numbers[s] == 0 ||
		    !is_as_recorded(slot->public.stripe_fds[s], takeover->file_bytes))
			continue;
		(void)snprintf(number, sizeof(number), "%u", slot->reserve_numbers[s] - 1);
		if (stasis_fault_point("image_reserve_return") == 0 &&
		    renameat(writer->gpu_fd, stasis_image_name_base(slot->names.stripes[s]),
			     takeover->dir_fd, number) == 0)
			takeover->returned++;
	}
}

void stasis_image_takeover_return(struct stasis_image_writer *writer)
{
	if (writer->takeover.dir_fd < 0)
		return;
	for (size_t i = 0; i < writer->manifest.extent_count; i++)
		slot_return(writer, writer->slots[i]);
}

void stasis_image_takeover_end(struct stasis_image_writer *writer)
{
	struct stasis_image_takeover *takeover = &writer->takeover;
	struct stasis_error why = STASIS_ERROR_INIT;
	bool is_back = false;

	if (takeover->dir_fd < 0)
		return;
	if (takeover_is_whole(takeover))
		is_back = stasis_dir_rename_exclusive(
				  writer->dir_fd, STASIS_IMAGE_RESERVE_TAKEN_NAME,
				  writer->parent_fd, STASIS_IMAGE_RESERVE_NAME, NULL) == 0;
	if (!is_back &&
	    stasis_tree_remove(writer->dir_fd, STASIS_IMAGE_RESERVE_TAKEN_NAME, &why) != 0)
		stasis_log_warn("image: a reserve is left in the partial: %s", why.text);
	for (uint32_t i = 0; i < takeover->count; i++)
		file_close(&takeover->files[i]);
	free(takeover->files);
	cleanup_fd(&takeover->dir_fd);
	*takeover = (struct stasis_image_takeover){.dir_fd = -1};
}
