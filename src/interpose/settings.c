/*
 * See settings.h.
 */

#include "interpose/settings.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Longer than any that is accepted: a value that is cut is refused all the same. */
#define VALUE_BYTES 256

static struct {
	atomic_bool is_read;
	char runtime_dir[VALUE_BYTES];
	char xdg_runtime_dir[VALUE_BYTES];
} settings;

static const struct {
	const char *name; /* with its "=" */
	char *value;
} variables[] = {
	{"STASIS_RUNTIME_DIR=", settings.runtime_dir},
	{"XDG_RUNTIME_DIR=", settings.xdg_runtime_dir},
};

static void variable_read(const char *line)
{
	for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
		size_t name_bytes = strlen(variables[i].name);

		if (strncmp(line, variables[i].name, name_bytes) == 0)
			(void)memccpy(variables[i].value, line + name_bytes, '\0', VALUE_BYTES - 1);
	}
}

void stasis_settings_read(char **environment)
{
	if (atomic_load(&settings.is_read))
		return;
	for (char **line = environment; line && *line; line++)
		variable_read(*line);
	atomic_store(&settings.is_read, true);
}

int stasis_settings_directory(char ret_path[STASIS_WIRE_SOCKET_PATH_BYTES],
			      struct stasis_error *err)
{
	/* A constructor of another library was before ours; there is one thread then, mostly. */
	stasis_settings_read(environ);
	return stasis_wire_directory_choose(settings.runtime_dir, settings.xdg_runtime_dir,
					    ret_path, err);
}
