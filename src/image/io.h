#ifndef STASIS_IMAGE_IO_H
#define STASIS_IMAGE_IO_H

/*
 * System calls of the image module, each behind a fault point of its own name. All return 0 or an errno and
 * repeat a call that a signal interrupted. Internal to the image module.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

/* "image_mkdir": a directory that is 0700 from its first instant, whatever the umask; opened. */
NODISCARD int stasis_image_io_mkdir(int dir_fd, const char *name, int *ret_fd);

/* "image_open": a new file, O_RDWR, 0600 whatever the umask. */
NODISCARD int stasis_image_io_create(int dir_fd, const char *name, int *ret_fd);

/* "image_truncate" */
NODISCARD int stasis_image_io_truncate(int fd, uint64_t bytes);

/* fdatasync, or fsync of a directory, behind the fault point `point`. */
NODISCARD int stasis_image_io_sync(int fd, const char *point);

#endif
