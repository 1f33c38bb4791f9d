/*
 * stasis_library_run: the calling process becomes a command with the interposer in it. Everything else that the
 * command is given stays byte for byte: arguments, environment, descriptors, signals.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "lib/library.h"
#include "lib/places.h"
#include "lib/program.h"
#include "wire/peer.h"

static const char preload[] = "LD_PRELOAD=";

static int interposer_path(char ret_path[STASIS_LIB_PATH_BYTES], struct stasis_error *err)
{
	if (stasis_lib_interposer_path(ret_path, err) != 0)
		return -1;
	/* The loader takes both for the end of a name, and knows no way to write them. */
	if (strpbrk(ret_path, ": "))
		return stasis_fail(err, STASIS_REFUSED,
				   "the path '%s' has a blank or a colon in it, which LD_PRELOAD "
				   "cannot express; put the interposer elsewhere and name it in "
				   "STASIS_INTERPOSE",
				   ret_path);
	return 0;
}

static bool is_first(const char *list, const char *path)
{
	size_t bytes = strlen(path);

	return strncmp(list, path, bytes) == 0 && (list[bytes] == '\0' || list[bytes] == ':');
}

/* LD_PRELOAD with ours in front of what is there, which stays as it is. */
static char *preload_make(const char *path, const char *present)
{
	char *text = NULL;

	if (present && is_first(present, path))
		return strdup(present - strlen(preload));
	if (asprintf(&text, "%s%s%s%s", preload, path, present && *present ? ":" : "",
		     present ? present : "") < 0)
		return NULL;
	return text;
}

/* The environment with its LD_PRELOAD replaced, at its place; NULL: no memory. */
static char **environment_make(char **present, char *entry)
{
	size_t count = 0;
	size_t at;
	char **made;

	while (present && present[count])
		count++;
	made = calloc(count + 2, sizeof(*made));
	if (!made)
		return NULL;
	if (count > 0)
		memcpy(made, present, count * sizeof(*made));
	for (at = 0; at < count && strncmp(made[at], preload, strlen(preload)) != 0; at++)
		;
	made[at] = entry;
	return made;
}

static int command_become(char *const *arguments, const char *path, struct stasis_error *err)
{
	/* One thread: see stasis.h. NOLINTNEXTLINE(concurrency-mt-unsafe) */
	CLEANUP(free) char *entry = preload_make(path, getenv("LD_PRELOAD"));
	CLEANUP(free) char **environment = entry ? environment_make(environ, entry) : NULL;

	if (!environment)
		return stasis_fail(err, STASIS_REFUSED, "out of memory");
	(void)execvpe(arguments[0], arguments, environment);
	return stasis_fail_errno(err, STASIS_REFUSED, "run '%s'", arguments[0]);
}

/*
 * The folder where programs find each other's sockets: without it the first import of shared memory would fail in the
 * middle of the program.
 */
static int runtime_dir_check(struct stasis_error *err)
{
	char path[STASIS_WIRE_SOCKET_PATH_BYTES];
	CLEANUP(fd) int fd = -1;

	if (stasis_wire_directory_choose(secure_getenv("STASIS_RUNTIME_DIR"),
					 secure_getenv("XDG_RUNTIME_DIR"), path, err) != 0)
		return -1;
	return stasis_wire_directory_open(path, &fd, err);
}

static int run(char *const *arguments, struct stasis_error *err)
{
	char path[STASIS_LIB_PATH_BYTES];

	if (!arguments || !arguments[0])
		return stasis_fail(err, STASIS_USAGE, "the command to run is missing");
	if (stasis_lib_program_check(arguments[0], err) != 0 || interposer_path(path, err) != 0 ||
	    runtime_dir_check(err) != 0)
		return -1;
	return command_become(arguments, path, err);
}

enum stasis_status stasis_library_run(struct stasis_library *library, char *const *arguments)
{
	return stasis_lib_end(library, run(arguments, stasis_lib_begin(library)));
}
