/*
 * The writer of images, up to the extents: the partial directory, what is known of GPUs, processes, options
 * and phases, and its end. See image.h; sealing and publication are in publish.c.
 */

#include "image/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "image/io.h"
#include "image/takeover.h"

/* Copies a text that may be too long for its field: what is cut is of no use to a program. */
static void text_set(char *target, size_t target_bytes, const char *text)
{
	(void)snprintf(target, target_bytes, "%s", text ? text : "");
}

void *stasis_image_list_grow(void *items_pointer, size_t count, size_t item_bytes)
{
	void **items = items_pointer;
	char *grown = reallocarray(*items, count + 1, item_bytes);

	if (!grown)
		return NULL;
	*items = grown;
	memset(grown + count * item_bytes, 0, item_bytes);
	return grown + count * item_bytes;
}

static int origin_set(struct stasis_image_writer *writer, const struct stasis_image_origin *origin,
		      struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;
	time_t now = time(NULL);
	struct utsname system;
	struct tm parts;

	if (origin->capture_id)
		manifest->capture_id = *origin->capture_id;
	else if (stasis_id_random(&manifest->capture_id, err) != 0)
		return -1;
	if (uname(&system) != 0 || !gmtime_r(&now, &parts))
		return stasis_fail_errno(err, STASIS_REFUSED, "ask for kernel and time");
	(void)strftime(manifest->created, sizeof(manifest->created), "%Y-%m-%dT%H:%M:%SZ", &parts);
	text_set(manifest->kernel, sizeof(manifest->kernel), system.release);
	text_set(manifest->tool_version, sizeof(manifest->tool_version), origin->tool_version);
	text_set(manifest->driver_version, sizeof(manifest->driver_version),
		 origin->driver_version);
	manifest->cuda_version = origin->cuda_version;
	manifest->store = origin->store;
	return 0;
}

static int partial_name_make(struct stasis_image_writer *writer, struct stasis_error *err)
{
	size_t parent_bytes;
	char digits[STASIS_ID_TEXT_BYTES];
	struct stasis_id id;

	if (stasis_id_random(&id, err) != 0)
		return -1;
	(void)stasis_id_format(&id, digits);
	/* destination_check has seen that both fit. */
	if (snprintf(writer->partial_name, sizeof(writer->partial_name), "%s%s%.*s", writer->name,
		     STASIS_IMAGE_PARTIAL_MARK, STASIS_IMAGE_PARTIAL_DIGITS,
		     digits) >= (int)sizeof(writer->partial_name))
		return stasis_fail_code(err, STASIS_REFUSED, ENAMETOOLONG, "image '%s'",
					writer->path);
	parent_bytes = strlen(writer->path);
	while (parent_bytes > 0 && writer->path[parent_bytes - 1] == '/')
		parent_bytes--;
	parent_bytes -= strlen(writer->name);
	if (asprintf(&writer->partial_path, "%.*s%s", (int)parent_bytes, writer->path,
		     writer->partial_name) < 0) {
		writer->partial_path = NULL;
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "image '%s'", writer->path);
	}
	return 0;
}

static int partial_make(struct stasis_image_writer *writer, struct stasis_error *err)
{
	int code = stasis_image_io_mkdir(writer->parent_fd, writer->partial_name, &writer->dir_fd);

	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "make the directory '%s'",
					writer->partial_path);
	return stasis_image_owner_write(writer->dir_fd, &writer->owner, &writer->manifest, err);
}

int stasis_image_writer_open(const char *path, const struct stasis_image_origin *origin,
			     struct stasis_image_writer **ret_writer, struct stasis_error *err)
{
	CLEANUP(image_writer) struct stasis_image_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", path);
	writer->parent_fd = -1;
	writer->dir_fd = -1;
	writer->gpu_fd = -1;
	writer->takeover.dir_fd = -1;
	if (stasis_image_destination_check(path, writer, err) != 0)
		return -1;
	writer->path = strdup(path);
	if (!writer->path)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", path);
	if (origin_set(writer, origin, err) != 0 ||
	    stasis_image_owner_init(&writer->owner, err) != 0 ||
	    partial_name_make(writer, err) != 0 || partial_make(writer, err) != 0)
		return -1;
	*ret_writer = ptr_steal(&writer);
	return 0;
}

static void files_close(struct stasis_image_writer *writer)
{
	for (size_t i = 0; i < writer->manifest.extent_count; i++)
		stasis_image_slot_free(writer->slots[i]);
	free(writer->slots);
	writer->slots = NULL;
	writer->manifest.extent_count = 0;
	cleanup_fd(&writer->gpu_fd);
}

int stasis_image_writer_abandon(struct stasis_image_writer *writer, struct stasis_error *err)
{
	if (writer->dir_fd < 0 || writer->is_published)
		return 0;
	stasis_image_takeover_return(writer);
	stasis_image_takeover_end(writer);
	/* Closed first: some network file systems keep the names of open files. */
	files_close(writer);
	cleanup_fd(&writer->dir_fd);
	if (stasis_tree_remove(writer->parent_fd, writer->partial_name, err) != 0) {
		stasis_error_append(err, "; the partial image '%s' is left: `stasis gc` removes it",
				    writer->partial_path);
		return -1;
	}
	return 0;
}

void stasis_image_writer_keep(struct stasis_image_writer *writer, struct stasis_error *err)
{
	writer->is_kept = true;
	stasis_error_append(err, "; '%s' is kept: it is the only copy of the device memory",
			    writer->partial_path);
}

void stasis_image_writer_close(struct stasis_image_writer *writer)
{
	struct stasis_error why = STASIS_ERROR_INIT;
	int saved = errno;

	if (!writer)
		return;
	if (!writer->is_staged && !writer->is_kept &&
	    stasis_image_writer_abandon(writer, &why) != 0)
		stasis_log_warn("image: %s", why.text);
	stasis_image_takeover_end(writer);
	files_close(writer);
	cleanup_fd(&writer->dir_fd);
	cleanup_fd(&writer->parent_fd);
	stasis_image_owner_fini(&writer->owner);
	stasis_image_manifest_fini(&writer->manifest);
	free(writer->path);
	free(writer->partial_path);
	free(writer);
	errno = saved;
}

const char *stasis_image_writer_partial_path(const struct stasis_image_writer *writer)
{
	return writer->partial_path;
}

int stasis_image_writer_room(const struct stasis_image_writer *writer, uint64_t *ret_free_bytes,
			     struct stasis_error *err)
{
	struct statvfs info;
	uint64_t bytes = 0;

	if (fstatvfs(writer->parent_fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "ask for the room at '%s'",
					 writer->path);
	if (!stasis_multiply_u64(info.f_bavail, info.f_frsize, &bytes))
		bytes = UINT64_MAX;
	*ret_free_bytes = bytes;
	return 0;
}

int stasis_image_writer_gpu_add(struct stasis_image_writer *writer,
				const struct stasis_image_gpu *gpu, struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;
	char text[STASIS_UUID_TEXT_BYTES];
	struct stasis_image_gpu *item;
	uint32_t index = 0;

	if (stasis_image_gpu_find(manifest, &gpu->uuid, &index))
		return stasis_fail(err, STASIS_REFUSED, "image '%s': GPU %s is added twice",
				   writer->path, stasis_uuid_format(&gpu->uuid, text));
	if (manifest->gpu_count == STASIS_IMAGE_GPUS_MAX)
		return stasis_fail(err, STASIS_REFUSED, "image '%s': more than %d GPUs",
				   writer->path, STASIS_IMAGE_GPUS_MAX);
	item = stasis_image_list_grow(&manifest->gpus, manifest->gpu_count, sizeof(*item));
	if (!item)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", writer->path);
	*item = *gpu;
	manifest->gpu_count++;
	return 0;
}

int stasis_image_writer_process_add(struct stasis_image_writer *writer,
				    const struct stasis_image_process *process, uint32_t *ret_index,
				    struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;
	struct stasis_image_process *item;

	if (manifest->process_count == STASIS_IMAGE_PROCESSES_MAX)
		return stasis_fail(err, STASIS_REFUSED, "image '%s': more than %d processes",
				   writer->path, STASIS_IMAGE_PROCESSES_MAX);
	item = stasis_image_list_grow(&manifest->processes, manifest->process_count, sizeof(*item));
	if (!item)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", writer->path);
	*item = *process;
	manifest->process_count++;
	if (stasis_image_owner_write(writer->dir_fd, &writer->owner, manifest, err) != 0) {
		manifest->process_count--;
		return -1;
	}
	*ret_index = (uint32_t)manifest->process_count - 1;
	return 0;
}

static struct stasis_image_option *option_find(struct stasis_image_manifest *manifest,
					       const char *name)
{
	for (size_t i = 0; i < manifest->option_count; i++) {
		if (strcmp(manifest->options[i].name, name) == 0)
			return &manifest->options[i];
	}
	return NULL;
}

int stasis_image_writer_option_set(struct stasis_image_writer *writer, const char *name,
				   const char *value, struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;
	struct stasis_image_option *item = option_find(manifest, name);

	if (!item) {
		if (manifest->option_count == STASIS_IMAGE_OPTIONS_MAX)
			return stasis_fail(err, STASIS_REFUSED, "image '%s': more than %d options",
					   writer->path, STASIS_IMAGE_OPTIONS_MAX);
		item = stasis_image_list_grow(&manifest->options, manifest->option_count,
					      sizeof(*item));
		if (!item)
			return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", writer->path);
		manifest->option_count++;
		text_set(item->name, sizeof(item->name), name);
	}
	text_set(item->value, sizeof(item->value), value);
	return 0;
}

int stasis_image_writer_phase_add(struct stasis_image_writer *writer, const char *name,
				  uint64_t duration_ns, uint64_t bytes, struct stasis_error *err)
{
	struct stasis_image_manifest *manifest = &writer->manifest;
	struct stasis_image_phase *item;

	if (manifest->phase_count == STASIS_IMAGE_PHASES_MAX)
		return stasis_fail(err, STASIS_REFUSED, "image '%s': more than %d phases",
				   writer->path, STASIS_IMAGE_PHASES_MAX);
	item = stasis_image_list_grow(&manifest->phases, manifest->phase_count, sizeof(*item));
	if (!item)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", writer->path);
	text_set(item->name, sizeof(item->name), name);
	item->duration_ns = duration_ns;
	item->bytes = bytes;
	manifest->phase_count++;
	return 0;
}
