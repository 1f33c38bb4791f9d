/*
 * Whether an image can be made at a path: looked at before anything is touched, so that no capture fails at
 * its end for a reason that was there at its start.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "image/writer.h"

static bool is_mount_point(int parent_fd, const char *name, const struct stat *info)
{
	struct stat parent;
	struct statx more;

	if (statx(parent_fd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &more) == 0 &&
	    (more.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
		return (more.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	/* Linux before 5.8 does not say; another device is a mount there. */
	return fstat(parent_fd, &parent) == 0 && parent.st_dev != info->st_dev;
}

static const char *what_is_there(int parent_fd, const char *name, const struct stat *info)
{
	if (S_ISLNK(info->st_mode))
		return "is a symbolic link; name the place itself";
	if (is_mount_point(parent_fd, name, info))
		return "is a mount point; name a new directory below it";
	if (S_ISDIR(info->st_mode))
		return "already exists; name a path that does not exist yet";
	return "already exists and is no directory; name a path that does not exist yet";
}

static int name_check(const char *path, const struct stasis_image_writer *writer,
		      struct stasis_error *err)
{
	const size_t tail = sizeof(STASIS_IMAGE_PARTIAL_MARK) - 1 + STASIS_IMAGE_PARTIAL_DIGITS;

	if (strlen(writer->name) + tail > NAME_MAX || strlen(path) + tail >= PATH_MAX)
		return stasis_fail_code(err, STASIS_REFUSED, ENAMETOOLONG,
					"image '%.80s…': the path leaves no room for '%s' and %d "
					"digits behind it",
					path, STASIS_IMAGE_PARTIAL_MARK,
					STASIS_IMAGE_PARTIAL_DIGITS);
	if (stasis_image_partial_name_is(writer->name))
		return stasis_fail(err, STASIS_REFUSED,
				   "image '%s': the name is that of a partial directory; choose "
				   "another",
				   path);
	return 0;
}

static int parent_check(const char *path, int parent_fd, struct stasis_error *err)
{
	if (faccessat(parent_fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "image '%s': its parent directory is not writable", path);
	return 0;
}

int stasis_image_destination_check(const char *path, struct stasis_image_writer *writer,
				   struct stasis_error *err)
{
	struct stasis_error why = STASIS_ERROR_INIT;
	struct stat info;

	if (stasis_path_open_parent(path, &writer->parent_fd, writer->name, &why) != 0) {
		stasis_error_context(&why, "image '%.200s'", path);
		stasis_error_take(err, &why);
		return -1;
	}
	if (name_check(path, writer, err) != 0)
		return -1;
	if (fstatat(writer->parent_fd, writer->name, &info, AT_SYMLINK_NOFOLLOW) == 0)
		return stasis_fail_code(err, STASIS_REFUSED, 0, "image '%s' %s", path,
					what_is_there(writer->parent_fd, writer->name, &info));
	if (errno != ENOENT)
		return stasis_fail_errno(err, STASIS_REFUSED, "image '%s'", path);
	return parent_check(path, writer->parent_fd, err);
}
