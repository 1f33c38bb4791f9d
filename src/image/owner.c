/*
 * See owner.h.
 */

#include "image/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/process.h"
#include "image/fields.h"

#define OWNER_FORMAT_NAME "stasis-partial"
#define OWNER_FORMAT_VERSION 1
#define TEXT_MAX (STASIS_IMAGE_TEXT_BYTES - 1)

/* clang-format off */
static const struct stasis_image_field owner_fields[] = {
	{"format",         STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"format_version", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"boot_id",        STASIS_IMAGE_FIELD_TEXT, offsetof(struct stasis_image_owner, boot_id), 1, TEXT_MAX, NULL},
	{"pid_namespace",  STASIS_IMAGE_FIELD_TEXT, offsetof(struct stasis_image_owner, pid_namespace), 1, TEXT_MAX, NULL},
	{"capturer",       STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"processes",      STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
};

static const struct stasis_image_field process_fields[] = {
	{"pid",         STASIS_IMAGE_FIELD_S32, offsetof(struct stasis_image_owner_process, pid), 1, INT32_MAX, NULL},
	{"start_ticks", STASIS_IMAGE_FIELD_U64, offsetof(struct stasis_image_owner_process, start_ticks), 0, INT64_MAX, NULL},
};
/* clang-format on */

static const struct stasis_image_field_table owner_table = {owner_fields,
							    ARRAY_COUNT(owner_fields)};
static const struct stasis_image_field_table process_table = {process_fields,
							      ARRAY_COUNT(process_fields)};

void stasis_image_owner_fini(struct stasis_image_owner *owner)
{
	free(owner->processes);
	*owner = (struct stasis_image_owner){0};
}

static int boot_id_read(char text[STASIS_IMAGE_TEXT_BYTES], struct stasis_error *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, text, TEXT_MAX);

	if (bytes < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "read '%s'", path);
	text[bytes] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int stasis_image_owner_init(struct stasis_image_owner *ret_owner, struct stasis_error *err)
{
	static const char namespace[] = "/proc/self/ns/pid";
	struct stasis_image_owner owner = {.capturer = {.pid = getpid()}};
	ssize_t bytes;

	if (boot_id_read(owner.boot_id, err) != 0)
		return -1;
	bytes = readlink(namespace, owner.pid_namespace, TEXT_MAX);
	if (bytes < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "read '%s'", namespace);
	owner.pid_namespace[bytes] = '\0';
	if (!stasis_process_start_ticks(owner.capturer.pid, &owner.capturer.start_ticks))
		return stasis_fail(err, STASIS_REFUSED, "read '/proc/self/stat'");
	*ret_owner = owner;
	return 0;
}

static json_t *processes_encode(const struct stasis_image_manifest *manifest)
{
	CLEANUP(json) json_t *array = json_array();

	for (size_t i = 0; i < manifest->process_count; i++) {
		const struct stasis_image_owner_process process = {
			manifest->processes[i].pid, manifest->processes[i].start_ticks};

		if (json_array_append_new(
			    array, stasis_image_fields_encode(&process_table, &process)) != 0)
			return NULL;
	}
	return ptr_steal(&array);
}

static char *owner_text(const struct stasis_image_owner *owner,
			const struct stasis_image_manifest *manifest)
{
	CLEANUP(json) json_t *root = stasis_image_fields_encode(&owner_table, owner);

	if (!root || json_object_set_new(root, "format", json_string(OWNER_FORMAT_NAME)) != 0 ||
	    json_object_set_new(root, "format_version", json_integer(OWNER_FORMAT_VERSION)) != 0 ||
	    json_object_set_new(root, "capturer",
				stasis_image_fields_encode(&process_table, &owner->capturer)) !=
		    0 ||
	    json_object_set_new(root, "processes", processes_encode(manifest)) != 0)
		return NULL;
	return json_dumps(root, JSON_INDENT(2));
}

int stasis_image_owner_write(int dir_fd, const struct stasis_image_owner *owner,
			     const struct stasis_image_manifest *manifest, struct stasis_error *err)
{
	CLEANUP(json_text) char *text = owner_text(owner, manifest);
	int code = stasis_fault_point("image_owner_write");

	if (!text)
		code = ENOMEM;
	if (code && code != EINTR)
		return stasis_fail_code(err, STASIS_REFUSED, code, "write '%s'",
					STASIS_IMAGE_OWNER_NAME);
	return stasis_file_write_whole(dir_fd, STASIS_IMAGE_OWNER_NAME, text, strlen(text), err);
}

static int processes_decode(const json_t *array, struct stasis_image_owner *owner,
			    struct stasis_error *err)
{
	size_t count = json_array_size(array);

	if (!json_is_array(array) || count > STASIS_IMAGE_PROCESSES_MAX)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "owner.json: field 'processes' must be a list of at most %d",
				   STASIS_IMAGE_PROCESSES_MAX);
	if (count == 0)
		return 0;
	owner->processes = calloc(count, sizeof(*owner->processes));
	if (!owner->processes)
		return stasis_fail_errno(err, STASIS_REFUSED, "read 'owner.json'");
	owner->process_count = count;
	for (size_t i = 0; i < count; i++) {
		if (stasis_image_fields_decode(&process_table, json_array_get(array, i),
					       "owner.json: processes", &owner->processes[i],
					       err) != 0)
			return -1;
	}
	return 0;
}

int stasis_image_owner_decode(const char *text, size_t bytes, struct stasis_image_owner *ret_owner,
			      struct stasis_error *err)
{
	CLEANUP(image_owner) struct stasis_image_owner owner = {0};
	CLEANUP(json) json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *version = json_object_get(root, "format_version");

	if (!format || strcmp(format, OWNER_FORMAT_NAME) != 0 || !json_is_integer(version) ||
	    json_integer_value(version) != OWNER_FORMAT_VERSION)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "owner.json: is not an owner record of version %d",
				   OWNER_FORMAT_VERSION);
	if (stasis_image_fields_decode(&owner_table, root, "owner.json", &owner, err) != 0 ||
	    stasis_image_fields_decode(&process_table, json_object_get(root, "capturer"),
				       "owner.json: capturer", &owner.capturer, err) != 0 ||
	    processes_decode(json_object_get(root, "processes"), &owner, err) != 0)
		return -1;
	*ret_owner = owner;
	owner = (struct stasis_image_owner){0};
	return 0;
}

bool stasis_image_partial_name_is(const char *name)
{
	const size_t tail = sizeof(STASIS_IMAGE_PARTIAL_MARK) - 1 + STASIS_IMAGE_PARTIAL_DIGITS;
	size_t length = strlen(name);
	const char *mark = length > tail ? name + length - tail : "";

	return strncmp(mark, STASIS_IMAGE_PARTIAL_MARK, sizeof(STASIS_IMAGE_PARTIAL_MARK) - 1) ==
		       0 &&
	       strspn(mark + sizeof(STASIS_IMAGE_PARTIAL_MARK) - 1, "0123456789abcdef") ==
		       STASIS_IMAGE_PARTIAL_DIGITS;
}

bool stasis_image_owner_process_lives(const struct stasis_image_owner_process *process)
{
	CLEANUP(process) struct stasis_process held = STASIS_PROCESS_EMPTY;
	struct stasis_error why = STASIS_ERROR_INIT;
	uint64_t start_ticks = 0;

	/* A process that /proc hides from us may be the one. */
	if (!stasis_process_start_ticks(process->pid, &start_ticks))
		return kill(process->pid, 0) == 0 || errno != ESRCH;
	if (start_ticks != process->start_ticks)
		return false;
	if (process->pid == getpid() || stasis_process_open(process->pid, &held, &why) == 0)
		return true;
	/* Opened not for want of descriptors or rights: it may live. A zombie or nobody: it does not. */
	return why.os_errno != 0 && why.os_errno != ESRCH;
}
