#ifndef STASIS_TESTS_UNIT_SOCKET_FOLDER_H
#define STASIS_TESTS_UNIT_SOCKET_FOLDER_H

/*
 * A folder for sockets, named by STASIS_RUNTIME_DIR: TMPDIR is too long for their paths. Made and removed as a group's
 * set-up and tear-down.
 */

#include "unit.h"

#include "base/file.h"

static char folder[32];

static inline int folder_make(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/stasis-unit-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	return setenv("STASIS_RUNTIME_DIR", folder, 1);
}

static inline int folder_remove(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	return stasis_tree_remove(AT_FDCWD, folder, &err);
}

#endif
