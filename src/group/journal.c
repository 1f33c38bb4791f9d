/* See journal.h. */

#include "group/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process.h"
#include "wire/peer.h"

#define VERSION 1
#define NAME_START "capture-"
#define NAME_END ".json"
#define JOURNAL_BYTES_MAX (1u << 20)
#define PROCESSES_MAX 1024

static int directory_choose(char ret_path[STASIS_WIRE_SOCKET_PATH_BYTES], struct stasis_error *err)
{
	return stasis_wire_directory_choose(secure_getenv("STASIS_RUNTIME_DIR"),
					    secure_getenv("XDG_RUNTIME_DIR"), ret_path, err);
}

int stasis_journal_path(const struct stasis_id *capture, char ret_path[STASIS_JOURNAL_PATH_BYTES],
			struct stasis_error *err)
{
	char directory[STASIS_WIRE_SOCKET_PATH_BYTES];
	char text[STASIS_ID_TEXT_BYTES];

	if (directory_choose(directory, err) != 0)
		return -1;
	(void)snprintf(ret_path, STASIS_JOURNAL_PATH_BYTES, "%s/" NAME_START "%s" NAME_END,
		       directory, stasis_id_format(capture, text));
	return 0;
}

/* ---- writing ---- */

static json_t *process_encode(const struct stasis_journal_process *process)
{
	return json_pack("{s:I, s:I}", "pid", (json_int_t)process->pid, "start_ticks",
			 (json_int_t)process->start_ticks);
}

static char *journal_encode(const struct stasis_journal *journal)
{
	json_t *processes = json_array();
	json_t *root;
	char id[STASIS_ID_TEXT_BYTES];
	char *text;

	for (size_t i = 0; i < journal->process_count; i++)
		(void)json_array_append_new(processes, process_encode(&journal->processes[i]));
	root = json_pack("{s:i, s:s, s:s, s:s, s:s, s:o, s:o}", "version", VERSION, "capture",
			 stasis_id_format(&journal->capture, id), "image", journal->image,
			 "partial", journal->partial, "phase", journal->phase, "coordinator",
			 process_encode(&journal->coordinator), "processes", processes);
	text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	return text;
}

/* Opens the folder, which is ours alone. */
static int directory_open(const char *path, int *ret_fd, char ret_name[256],
			  struct stasis_error *err)
{
	char directory[STASIS_JOURNAL_PATH_BYTES];
	const char *slash = strrchr(path, '/');

	if (!slash || strlen(slash + 1) >= 256)
		return stasis_fail(err, STASIS_REFUSED, "'%s' is no journal", path);
	(void)snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
	(void)snprintf(ret_name, 256, "%s", slash + 1);
	return stasis_wire_directory_open(directory, ret_fd, err);
}

int stasis_journal_write(struct stasis_journal *journal, enum stasis_group_phase phase,
			 struct stasis_error *err)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(fd) int fd = -1;
	char name[256];

	if (journal->path[0] == '\0' &&
	    stasis_journal_path(&journal->capture, journal->path, err) != 0)
		return -1;
	(void)snprintf(journal->phase, sizeof(journal->phase), "%s",
		       stasis_group_phase_name(phase));
	journal->coordinator.pid = getpid();
	if (!stasis_process_start_ticks(getpid(), &journal->coordinator.start_ticks))
		return stasis_fail(err, STASIS_REFUSED, "read the start time of this process");
	text = journal_encode(journal);
	if (!text)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "write the journal");
	if (directory_open(journal->path, &fd, name, err) != 0)
		return -1;
	return stasis_file_write_whole(fd, name, text, strlen(text), err);
}

int stasis_journal_remove(struct stasis_journal *journal, struct stasis_error *err)
{
	if (journal->path[0] == '\0')
		return 0;
	if (unlink(journal->path) != 0 && errno != ENOENT)
		return stasis_fail_errno(err, STASIS_REFUSED, "remove the journal '%s'",
					 journal->path);
	journal->path[0] = '\0';
	return 0;
}

/* ---- reading ---- */

static bool text_take(json_t *root, const char *key, char *ret_text, size_t room)
{
	const char *text = json_string_value(json_object_get(root, key));

	return text && snprintf(ret_text, room, "%s", text) < (int)room;
}

static bool process_take(json_t *value, struct stasis_journal_process *ret_process)
{
	json_t *pid = json_object_get(value, "pid");
	json_t *ticks = json_object_get(value, "start_ticks");

	if (!json_is_integer(pid) || !json_is_integer(ticks) || json_integer_value(pid) <= 0 ||
	    json_integer_value(pid) > INT32_MAX || json_integer_value(ticks) < 0)
		return false;
	ret_process->pid = (pid_t)json_integer_value(pid);
	ret_process->start_ticks = (uint64_t)json_integer_value(ticks);
	return true;
}

static bool processes_take(json_t *values, struct stasis_journal *journal)
{
	size_t count = json_array_size(values);

	if (!json_is_array(values) || count == 0 || count > PROCESSES_MAX)
		return false;
	journal->processes = calloc(count, sizeof(journal->processes[0]));
	if (!journal->processes)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!process_take(json_array_get(values, i), &journal->processes[i]))
			return false;
		journal->process_count++;
	}
	return true;
}

static bool journal_decode(json_t *root, struct stasis_journal *journal)
{
	char id[STASIS_ID_TEXT_BYTES];

	return json_integer_value(json_object_get(root, "version")) == VERSION &&
	       text_take(root, "capture", id, sizeof(id)) &&
	       stasis_id_parse(id, &journal->capture) &&
	       text_take(root, "image", journal->image, sizeof(journal->image)) &&
	       text_take(root, "partial", journal->partial, sizeof(journal->partial)) &&
	       text_take(root, "phase", journal->phase, sizeof(journal->phase)) &&
	       process_take(json_object_get(root, "coordinator"), &journal->coordinator) &&
	       processes_take(json_object_get(root, "processes"), journal);
}

int stasis_journal_read(const char *path, bool *ret_is_there, struct stasis_journal *ret_journal,
			struct stasis_error *err)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(fd) int fd = -1;
	struct stasis_journal journal = STASIS_JOURNAL_EMPTY;
	size_t bytes = 0;
	char name[256];
	json_t *root;
	bool is_good;

	*ret_is_there = access(path, F_OK) == 0;
	if (!*ret_is_there)
		return 0;
	if (directory_open(path, &fd, name, err) != 0 ||
	    stasis_file_read(fd, name, JOURNAL_BYTES_MAX, STASIS_REFUSED, &text, &bytes, err) != 0)
		return -1;
	root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	is_good = root && journal_decode(root, &journal);
	json_decref(root);
	if (!is_good ||
	    snprintf(journal.path, sizeof(journal.path), "%s", path) >= (int)sizeof(journal.path)) {
		stasis_journal_free(&journal);
		return stasis_fail(err, STASIS_REFUSED,
				   "the journal '%s' is damaged; look at the processes with "
				   "'stasis inspect', then remove it",
				   path);
	}
	*ret_journal = journal;
	return 0;
}

void stasis_journal_free(struct stasis_journal *journal)
{
	free(journal->processes);
	journal->processes = NULL;
	journal->process_count = 0;
}

bool stasis_journal_is_busy(const struct stasis_journal *journal)
{
	return stasis_process_lives(journal->coordinator.pid, journal->coordinator.start_ticks);
}

static bool is_journal(const char *name)
{
	size_t bytes = strlen(name);
	size_t end = strlen(NAME_END);

	return strncmp(name, NAME_START, strlen(NAME_START)) == 0 && bytes > end &&
	       strcmp(name + bytes - end, NAME_END) == 0;
}

static int path_add(char ***paths, size_t *count, const char *directory, const char *name,
		    struct stasis_error *err)
{
	char **more = realloc(*paths, (*count + 1) * sizeof(**paths));
	char *path = NULL;

	if (more)
		*paths = more;
	if (!more || asprintf(&path, "%s/%s", directory, name) < 0)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "list the journals");
	(*paths)[(*count)++] = path;
	return 0;
}

void stasis_journal_list_free(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
}

int stasis_journal_list(char ***ret_paths, size_t *ret_count, struct stasis_error *err)
{
	char directory[STASIS_WIRE_SOCKET_PATH_BYTES];
	struct dirent *entry;
	char **paths = NULL;
	size_t count = 0;
	int result = 0;
	DIR *dir;

	*ret_paths = NULL;
	*ret_count = 0;
	if (directory_choose(directory, err) != 0)
		return -1;
	dir = opendir(directory);
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return stasis_fail_errno(err, STASIS_REFUSED, "read the folder '%s'", directory);
	while (result == 0 && (entry = stasis_dir_next(dir)) != NULL) {
		if (is_journal(entry->d_name))
			result = path_add(&paths, &count, directory, entry->d_name, err);
	}
	(void)closedir(dir);
	if (result != 0) {
		stasis_journal_list_free(paths, count);
		return -1;
	}
	*ret_paths = paths;
	*ret_count = count;
	return 0;
}
