/*
 * Reserves: files allocated ahead, their record, what is found of them, their removal; see reserve.h and
 * image.h. The making is in reserve_make.c, the taking over in takeover.c.
 */

#include "image/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "image/fields.h"

#define RECORD_FORMAT_NAME "stasis-reserve"
#define RECORD_FORMAT_VERSION 1
#define RECORD_BYTES_MAX 4096

/* clang-format off */
static const struct stasis_image_field record_fields[] = {
	{"format",         STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"format_version", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"file_count", STASIS_IMAGE_FIELD_U32, offsetof(struct stasis_image_reserve_record, file_count),
	 1, STASIS_IMAGE_RESERVE_FILES_MAX, NULL},
	{"file_bytes", STASIS_IMAGE_FIELD_U64, offsetof(struct stasis_image_reserve_record, file_bytes),
	 STASIS_STORED_ALIGNMENT, STASIS_IMAGE_BYTES_MAX, NULL},
};
/* clang-format on */

static const struct stasis_image_field_table record_table = {record_fields,
							     ARRAY_COUNT(record_fields)};

int stasis_image_reserve_record_encode(const struct stasis_image_reserve_record *record,
				       char **ret_text, struct stasis_error *err)
{
	CLEANUP(json) json_t *root = stasis_image_fields_encode(&record_table, record);

	*ret_text = NULL;
	if (root && json_object_set_new(root, "format", json_string(RECORD_FORMAT_NAME)) == 0 &&
	    json_object_set_new(root, "format_version", json_integer(RECORD_FORMAT_VERSION)) == 0)
		*ret_text = json_dumps(root, JSON_INDENT(2));
	if (!*ret_text)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "write '%s'",
					STASIS_IMAGE_RESERVE_RECORD_NAME);
	return 0;
}

int stasis_image_reserve_record_decode(const char *text, size_t bytes,
				       struct stasis_image_reserve_record *ret_record,
				       struct stasis_error *err)
{
	CLEANUP(json) json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *version = json_object_get(root, "format_version");

	if (!format || strcmp(format, RECORD_FORMAT_NAME) != 0 || !json_is_integer(version) ||
	    json_integer_value(version) != RECORD_FORMAT_VERSION)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "reserve.json: is not the record of a reserve of version %d",
				   RECORD_FORMAT_VERSION);
	if (stasis_image_fields_decode(&record_table, root, "reserve.json", ret_record, err) != 0)
		return -1;
	if (ret_record->file_bytes % STASIS_STORED_ALIGNMENT != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "reserve.json: field 'file_bytes' is not a multiple of %d",
				   STASIS_STORED_ALIGNMENT);
	return 0;
}

/* How many of its files are there: earlier captures may have taken some. */
static uint32_t files_count(int fd, uint32_t file_count)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < file_count; i++) {
		char name[16];
		struct stat info;

		(void)snprintf(name, sizeof(name), "%u", i);
		count += fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
	}
	return count;
}

static void record_judge(int fd, struct stasis_image_reserve_info *info)
{
	CLEANUP(free) char *text = NULL;
	struct stasis_error why = STASIS_ERROR_INIT;
	struct stasis_image_reserve_record record = {0};
	size_t bytes = 0;

	if (stasis_file_read(fd, STASIS_IMAGE_RESERVE_RECORD_NAME, RECORD_BYTES_MAX,
			     STASIS_BAD_IMAGE, &text, &bytes, &why) != 0 ||
	    stasis_image_reserve_record_decode(text, bytes, &record, &why) != 0) {
		info->state = STASIS_IMAGE_RESERVE_DAMAGED;
		(void)snprintf(info->why, sizeof(info->why), "%.*s", (int)sizeof(info->why) - 1,
			       why.text);
		return;
	}
	info->state = STASIS_IMAGE_RESERVE_READY;
	info->number_end = record.file_count;
	info->file_count = files_count(fd, record.file_count);
	info->file_bytes = record.file_bytes;
}

static void foreign(struct stasis_image_reserve_info *info, const char *why)
{
	info->state = STASIS_IMAGE_RESERVE_FOREIGN;
	(void)snprintf(info->why, sizeof(info->why), "%s", why);
}

void stasis_image_reserve_judge(int parent_fd, struct stasis_image_reserve_info *ret_info,
				int *ret_fd)
{
	CLEANUP(fd) int fd = -1;
	struct stat info;

	*ret_info = (struct stasis_image_reserve_info){.state = STASIS_IMAGE_RESERVE_NONE};
	*ret_fd = -1;
	fd = openat(parent_fd, STASIS_IMAGE_RESERVE_NAME,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		foreign(ret_info, "it is no directory");
	else if (fd < 0 || fstat(fd, &info) != 0)
		foreign(ret_info, "it cannot be opened");
	else if (info.st_uid != geteuid())
		foreign(ret_info, "it belongs to another user");
	else if ((info.st_mode & 077) != 0)
		foreign(ret_info, "it is open to other users");
	else
		record_judge(fd, ret_info);
	*ret_fd = fd_steal(&fd);
}

static int directory_open(const char *path, int *ret_fd, struct stasis_error *err)
{
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open the directory '%.200s'", path);
	return 0;
}

int stasis_image_reserve_look(const char *path, struct stasis_image_reserve_info *ret_info,
			      struct stasis_error *err)
{
	CLEANUP(fd) int parent_fd = -1;
	CLEANUP(fd) int fd = -1;

	if (directory_open(path, &parent_fd, err) != 0)
		return -1;
	stasis_image_reserve_judge(parent_fd, ret_info, &fd);
	return 0;
}

int stasis_image_reserve_remove(const char *path, uint64_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(fd) int parent_fd = -1;
	CLEANUP(fd) int fd = -1;
	struct stasis_image_reserve_info info;
	int code = stasis_fault_point("image_reserve_remove");

	*ret_bytes = 0;
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "remove the reserve in '%.200s'",
					path);
	if (directory_open(path, &parent_fd, err) != 0)
		return -1;
	stasis_image_reserve_judge(parent_fd, &info, &fd);
	if (info.state == STASIS_IMAGE_RESERVE_NONE)
		return 0;
	if (info.state == STASIS_IMAGE_RESERVE_FOREIGN)
		return stasis_fail(err, STASIS_REFUSED, "the reserve in '%.200s' is kept: %s", path,
				   info.why);
	if (stasis_tree_remove(parent_fd, STASIS_IMAGE_RESERVE_NAME, err) != 0)
		return -1;
	*ret_bytes = info.file_count * info.file_bytes;
	return 0;
}

const char *stasis_image_reserve_state_name(enum stasis_image_reserve_state state)
{
	static const char *const names[] = {
		[STASIS_IMAGE_RESERVE_NONE] = "none",
		[STASIS_IMAGE_RESERVE_READY] = "ready",
		[STASIS_IMAGE_RESERVE_FOREIGN] = "foreign",
		[STASIS_IMAGE_RESERVE_DAMAGED] = "damaged",
	};

	return names[state];
}
