/*
 * See host_memory.h. Of cgroups the unified hierarchy (v2) is looked at: memory.max minus memory.current
 * of our own and of every one above it. What a cgroup could reclaim from its page cache counts as in use:
 * the answer is on the safe side.
 */

#include "lib/host_memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/* A small file of /proc or /sys: their sizes read as 0, so it is read to its end. False: not there. */
static bool text_read(const char *path, char *text, size_t text_bytes)
{
	CLEANUP(file) FILE *file = fopen(path, "re");
	size_t count;

	if (!file)
		return false;
	count = fread(text, 1, text_bytes - 1, file);
	text[count] = '\0';
	return count > 0;
}

/* False: there is no limit there, or no such file. */
static bool number_read(const char *folder, const char *name, uint64_t *ret_number)
{
	char path[4352];
	char text[64];
	char *end;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!text_read(path, text, sizeof(text)))
		return false;
	*ret_number = strtoull(text, &end, 10);
	return end != text;
}

/* The line of the unified hierarchy in /proc/self/cgroup is "0::/path". */
static bool cgroup_folder(char *folder, size_t folder_bytes)
{
	char text[8192];
	char *line;
	char *rest = NULL;

	if (!text_read("/proc/self/cgroup", text, sizeof(text)))
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "0::", 3) == 0) {
			(void)snprintf(folder, folder_bytes, "%s%s", CGROUP_ROOT, line + 3);
			return true;
		}
	}
	return false;
}

static uint64_t cgroup_bytes_read(void)
{
	char folder[4200];
	uint64_t least = UINT64_MAX;

	if (!cgroup_folder(folder, sizeof(folder)))
		return least;
	while (strlen(folder) >= strlen(CGROUP_ROOT)) {
		uint64_t limit;
		uint64_t used = 0;

		if (number_read(folder, "memory.max", &limit) &&
		    number_read(folder, "memory.current", &used))
			least = stasis_min_u64(least, limit > used ? limit - used : 0);
		*strrchr(folder, '/') = '\0';
	}
	return least;
}

int stasis_lib_host_memory_read(struct stasis_lib_host_memory *ret_memory, struct stasis_error *err)
{
	static const char key[] = "MemAvailable:";
	char text[8192];
	const char *at;

	if (!text_read("/proc/meminfo", text, sizeof(text)))
		return stasis_fail_errno(err, STASIS_REFUSED, "read /proc/meminfo");
	at = strstr(text, key);
	if (!at)
		return stasis_fail(err, STASIS_REFUSED, "/proc/meminfo has no line %s", key);
	ret_memory->kernel_bytes = strtoull(at + sizeof(key) - 1, NULL, 10) * STASIS_KIB;
	ret_memory->cgroup_bytes = cgroup_bytes_read();
	ret_memory->available_bytes =
		stasis_min_u64(ret_memory->kernel_bytes, ret_memory->cgroup_bytes);
	return 0;
}
