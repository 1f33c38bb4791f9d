/* See memory_dir.h. */

#include "lib/memory_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process.h"
#include "image/image.h"
#include "wire/session.h"

static int directory_path(char ret_path[STASIS_LIB_PATH_BYTES], struct stasis_error *err)
{
	const char *named = secure_getenv("STASIS_MEMORY_DIR");
	int length;

	if (named && named[0] != '\0' && named[0] != '/')
		return stasis_fail(err, STASIS_USAGE, "STASIS_MEMORY_DIR is not absolute: %s",
				   named);
	length = named && named[0] != '\0'
			 ? snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", named)
			 : snprintf(ret_path, STASIS_LIB_PATH_BYTES, "/dev/shm/stasis-%u",
				    (unsigned int)geteuid());
	/* An image's name comes behind it. */
	if (length < 0 || length + 1 + STASIS_ID_TEXT_BYTES > STASIS_LIB_PATH_BYTES)
		return stasis_fail(err, STASIS_USAGE, "STASIS_MEMORY_DIR is too long");
	return 0;
}

/* Ours, 0700 and no link: what lies in it is the memory of programs. */
static int directory_check(const char *path, struct stasis_error *err)
{
	struct stat about;

	if (lstat(path, &about) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "look at the folder '%s'", path);
	if (S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (about.st_mode & 077) == 0)
		return 0;
	return stasis_fail(
		err, STASIS_REFUSED,
		"'%s' is not a folder of ours alone (owner, mode 0700); remove it, or name "
		"another one in STASIS_MEMORY_DIR",
		path);
}

int stasis_lib_memory_image_path(const struct stasis_id *capture,
				 char ret_path[STASIS_LIB_PATH_BYTES], struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];
	size_t length;

	if (directory_path(ret_path, err) != 0)
		return -1;
	if (mkdir(ret_path, 0700) != 0 && errno != EEXIST)
		return stasis_fail_errno(err, STASIS_REFUSED, "make the folder '%s'", ret_path);
	if (directory_check(ret_path, err) != 0)
		return -1;
	length = strlen(ret_path);
	(void)snprintf(ret_path + length, STASIS_LIB_PATH_BYTES - length, "/%s",
		       stasis_id_format(capture, text));
	return 0;
}

bool stasis_lib_memory_image_is(const char *path)
{
	char directory[STASIS_LIB_PATH_BYTES];
	size_t length;

	if (directory_path(directory, NULL) != 0)
		return false;
	length = strlen(directory);
	return strncmp(path, directory, length) == 0 && path[length] == '/' &&
	       !strchr(path + length + 1, '/');
}

void stasis_lib_memory_image_drop(const char *path, const struct stasis_lib_sink *sink)
{
	struct stasis_error failure = STASIS_ERROR_INIT;

	if (!stasis_lib_memory_image_is(path) || access(path, F_OK) != 0)
		return;
	if (stasis_tree_remove(AT_FDCWD, path, &failure) != 0)
		stasis_lib_event(sink, "warning", "%s", failure.text);
}

/* Without the driver only a participant can be known not to need it: one that is not armed. */
static bool may_need(void *context, pid_t pid, uint64_t start_ticks)
{
	CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;
	CLEANUP(free) struct stasis_wire_control *control = calloc(1, sizeof(*control));
	CLEANUP(fd) int door_fd = -1;
	bool is_participant = false;

	(void)context;
	if (!stasis_process_lives(pid, start_ticks))
		return false;
	if (!control || stasis_process_open(pid, &process, NULL) != 0 ||
	    stasis_wire_control_take(pid, process.pidfd, &is_participant, control, &door_fd,
				     NULL) != 0)
		return true;
	return !is_participant || control->journal[0] != '\0';
}

void stasis_lib_memory_partials_drop(const struct stasis_lib_sink *sink)
{
	CLEANUP(free) struct stasis_image_partial *partials = NULL;
	const struct stasis_image_gc_options options = {.is_still_suspended = may_need};
	char directory[STASIS_LIB_PATH_BYTES];
	struct stasis_error failure = STASIS_ERROR_INIT;
	size_t count = 0;

	if (directory_path(directory, NULL) != 0 || directory_check(directory, NULL) != 0)
		return;
	if (stasis_image_gc(directory, &options, &partials, &count, &failure) != 0)
		stasis_lib_event(sink, "warning", "%s", failure.text);
}

static bool is_of_process(const char *path, int32_t pid)
{
	CLEANUP(image) struct stasis_image *image = NULL;
	const struct stasis_image_manifest *manifest;
	uint64_t start_ticks = 0;

	if (stasis_image_open(path, NULL, &image, NULL) != 0 ||
	    !stasis_process_start_ticks(pid, &start_ticks))
		return false;
	manifest = stasis_image_manifest(image);
	for (size_t i = 0; i < manifest->process_count; i++) {
		if (manifest->processes[i].pid == pid &&
		    manifest->processes[i].start_ticks == start_ticks)
			return true;
	}
	return false;
}

void stasis_lib_memory_image_find(int32_t pid, char ret_path[STASIS_LIB_PATH_BYTES])
{
	char directory[STASIS_LIB_PATH_BYTES];
	struct stasis_id id;
	struct dirent *entry;
	bool is_found = false;
	DIR *dir;

	ret_path[0] = '\0';
	if (directory_path(directory, NULL) != 0 || directory_check(directory, NULL) != 0)
		return;
	dir = opendir(directory);
	while (dir && !is_found && (entry = stasis_dir_next(dir)) != NULL) {
		if (!stasis_id_parse(entry->d_name, &id) ||
		    snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s/%s", directory, entry->d_name) >=
			    STASIS_LIB_PATH_BYTES)
			continue;
		is_found = is_of_process(ret_path, pid);
	}
	if (dir)
		(void)closedir(dir);
	if (!is_found)
		ret_path[0] = '\0';
}
