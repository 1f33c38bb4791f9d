/*
 * Directories of file.h: exclusive rename, removal, and the split of a path.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"

/* Images are two levels deep; anything far deeper is not ours to walk. */
#define TREE_DEPTH_MAX 8

static int rename_onto_empty(int old_dir_fd, const char *old_name, int new_dir_fd,
			     const char *new_name)
{
	if (mkdirat(new_dir_fd, new_name, 0700) != 0)
		return errno;
	if (renameat(old_dir_fd, old_name, new_dir_fd, new_name) != 0) {
		int code = errno;

		(void)unlinkat(new_dir_fd, new_name, AT_REMOVEDIR);
		return code;
	}
	return 0;
}

int stasis_dir_rename_exclusive(int old_dir_fd, const char *old_name, int new_dir_fd,
				const char *new_name, struct stasis_error *err)
{
	int code = stasis_fault_point("dir_rename");

	if (!code && renameat2(old_dir_fd, old_name, new_dir_fd, new_name, RENAME_NOREPLACE) != 0) {
		code = errno;
		if (code == EINVAL || code == ENOSYS)
			code = rename_onto_empty(old_dir_fd, old_name, new_dir_fd, new_name);
	}
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "rename '%s' to '%s'", old_name,
					new_name);
	return 0;
}

struct dirent *stasis_dir_next(DIR *dir)
{
	struct dirent *entry;

	do {
		errno = 0;
		/* glibc's readdir is safe for as long as each stream has one reader. */
		entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe) */
	} while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry;
}

static int tree_empty(int dir_fd, unsigned int depth);

static int entry_remove(int dir_fd, const char *name, unsigned int depth)
{
	CLEANUP(fd) int fd = -1;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno;
	if (depth == 0)
		return ELOOP;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (tree_empty(fd, depth - 1) != 0)
		return errno;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

/* Removes all entries; 0, or an errno (also left in errno). */
static int tree_empty(int dir_fd, unsigned int depth)
{
	CLEANUP(dir) DIR *dir = NULL;
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code = 0;

	if (copy < 0)
		return errno;
	dir = fdopendir(copy);
	if (!dir) {
		code = errno;
		(void)close(copy);
		errno = code;
		return code;
	}
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		code = entry_remove(dir_fd, entry->d_name, depth);
		if (code) {
			errno = code;
			return code;
		}
	}
	return errno; /* 0 at the end, else why the directory could not be read on */
}

int stasis_tree_remove(int dir_fd, const char *name, struct stasis_error *err)
{
	int code = entry_remove(dir_fd, name, TREE_DEPTH_MAX);

	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "remove '%s'", name);
	return 0;
}

int stasis_path_open_parent(const char *path, int *ret_dir_fd, char ret_name[256],
			    struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	char copy[PATH_MAX];
	size_t length = strlen(path);
	char *slash;
	const char *name;

	while (length > 1 && path[length - 1] == '/')
		length--;
	if (length == 0 || length >= sizeof(copy))
		return stasis_fail_code(err, STASIS_REFUSED, length ? ENAMETOOLONG : ENOENT,
					"path '%.80s'", path);
	memcpy(copy, path, length);
	copy[length] = '\0';
	slash = strrchr(copy, '/');
	name = slash ? slash + 1 : copy;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return stasis_fail(err, STASIS_REFUSED, "path '%.80s' does not end in a name",
				   path);
	if (strlen(name) > NAME_MAX)
		return stasis_fail_code(err, STASIS_REFUSED, ENAMETOOLONG, "path '%.80s'", path);
	memcpy(ret_name, name, strlen(name) + 1);
	if (slash)
		slash[slash == copy ? 1 : 0] = '\0';
	fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open directory '%.200s'",
					 slash ? copy : ".");
	*ret_dir_fd = fd_steal(&fd);
	return 0;
}
