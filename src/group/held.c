/* See held.h. */

#include "group/held.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "group/foreign.h"

#define LINE_BYTES 4352
#define LIBRARY_BYTES 64

static const char device_path[] = "/dev/nvidia";

/* Of NVIDIA's libraries those that open device files, the likeliest first: the CUDA part has closed its own. */
static const char *const libraries[] = {
	"libnvidia-ml.so",  "libnvidia-encode.so", "libnvcuvid.so",
	"libEGL_nvidia.so", "libGLX_nvidia.so",    "libcuda.so",
};

struct look {
	const struct stasis_group *group;
	const struct stasis_group_process *process;
	char library[LIBRARY_BYTES]; /* "": none of them is loaded */
};

static FILE *maps_open(const struct look *look)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)look->process->target.process.pid);
	return fopen(path, "re");
}

/* The path at the end of a line of /proc/PID/maps, without the line's end; NULL: it has none. */
static const char *path_of(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	return strchr(line, '/');
}

static void library_find(struct look *look)
{
	CLEANUP(file) FILE *file = maps_open(look);
	size_t best = ARRAY_COUNT(libraries);
	char line[LINE_BYTES];

	look->library[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		const char *path = path_of(line);
		const char *name = path ? strrchr(path, '/') + 1 : "";

		for (size_t i = 0; i < best; i++) {
			if (strncmp(name, libraries[i], strlen(libraries[i])) != 0)
				continue;
			(void)snprintf(look->library, sizeof(look->library), "%s", name);
			best = i;
		}
	}
}

static void tell(const struct look *look, const char *path, const char *how)
{
	stasis_group_event(look->group->watch, "still_held", "process %d (%s): %s, %s%s%s",
			   (int)look->process->target.process.pid, look->process->name, path, how,
			   look->library[0] ? ", opened perhaps by " : "", look->library);
}

static void descriptor_tell(void *data, int number, const char *link)
{
	char how[32];

	(void)snprintf(how, sizeof(how), "descriptor %d", number);
	tell(data, link, how);
}

static void mappings_tell(const struct look *look)
{
	CLEANUP(file) FILE *file = maps_open(look);
	char line[LINE_BYTES];
	char last[LINE_BYTES] = "";

	while (file && fgets(line, sizeof(line), file)) {
		const char *path = path_of(line);

		/* Many mappings of one file are one line. */
		if (!path || strncmp(path, device_path, strlen(device_path)) != 0 ||
		    strcmp(path, last) == 0)
			continue;
		(void)snprintf(last, sizeof(last), "%s", path);
		tell(look, path, "mapped");
	}
}

void stasis_held_tell(const struct stasis_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		struct look look = {.group = group, .process = &group->processes[i]};
		struct stasis_error failure = STASIS_ERROR_INIT;

		if (look.process->is_out)
			continue;
		library_find(&look);
		if (stasis_foreign_device_files(&look.process->target.process, descriptor_tell,
						&look, &failure) != 0)
			stasis_group_event(group->watch, "warning", "%s", failure.text);
		mappings_tell(&look);
	}
}
