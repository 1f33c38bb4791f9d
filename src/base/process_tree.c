/* See process_tree.h. */

#include "base/process_tree.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process.h"

struct entry {
	int32_t pid;
	int32_t parent;
	bool is_taken;
};

struct table {
	struct entry *entries;
	size_t count;
	size_t room;
};

static void cleanup_table(struct table *table)
{
	free(table->entries);
}

static int table_add(struct table *table, int32_t pid, int32_t parent, struct stasis_error *err)
{
	if (table->count == table->room) {
		size_t room = table->room ? 2 * table->room : 256;
		struct entry *larger = realloc(table->entries, room * sizeof(*larger));

		if (!larger)
			return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "list the processes");
		table->entries = larger;
		table->room = room;
	}
	table->entries[table->count++] = (struct entry){.pid = pid, .parent = parent};
	return 0;
}

static int table_read(struct table *table, struct stasis_error *err)
{
	CLEANUP(dir) DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return stasis_fail_errno(err, STASIS_REFUSED, "list the processes in /proc");
	for (entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		pid_t parent = 0;
		pid_t pid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		pid = (pid_t)strtol(entry->d_name, NULL, 10);
		/* One that has ended since has no parent any more. */
		if (stasis_process_parent(pid, &parent) && table_add(table, pid, parent, err) != 0)
			return -1;
	}
	if (errno != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "list the processes in /proc");
	return 0;
}

/* Appends to `pids`, which has room for all, those that are, or whose parent is, `wanted`, and are not in yet. */
static size_t take(struct table *table, int32_t wanted, bool is_parent, int32_t *pids, size_t count)
{
	for (size_t i = 0; i < table->count; i++) {
		struct entry *entry = &table->entries[i];

		if (entry->is_taken || (is_parent ? entry->parent : entry->pid) != wanted)
			continue;
		entry->is_taken = true;
		pids[count++] = entry->pid;
	}
	return count;
}

static bool is_in(const int32_t *pids, size_t count, int32_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

int stasis_process_tree(const int32_t *roots, size_t root_count, int32_t **ret_pids,
			size_t *ret_count, struct stasis_error *err)
{
	CLEANUP(table) struct table table = {.count = 0};
	CLEANUP(free) int32_t *pids = NULL;
	size_t count = 0;

	if (table_read(&table, err) != 0)
		return -1;
	pids = calloc(table.count + 1, sizeof(*pids));
	if (!pids)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "list the processes");
	for (size_t i = 0; i < root_count; i++) {
		count = take(&table, roots[i], false, pids, count);
		if (!is_in(pids, count, roots[i]))
			return stasis_fail(err, STASIS_REFUSED, "process %d is not there",
					   roots[i]);
	}
	for (size_t i = 0; i < count; i++)
		count = take(&table, pids[i], true, pids, count);
	*ret_pids = pids;
	pids = NULL;
	*ret_count = count;
	return 0;
}
