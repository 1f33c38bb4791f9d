#ifndef STASIS_BASE_CLEANUP_H
#define STASIS_BASE_CLEANUP_H

/*
 * Resources that are released when their variable leaves scope. Declare with the empty value:
 *
 *     CLEANUP(fd) int fd = -1;
 *     CLEANUP(free) char *text = NULL;
 *
 * and let the resource leave by fd_steal() or ptr_steal(). Cleanup functions accept the empty value and
 * keep errno. A type adds its own with a function `static inline void cleanup_NAME(T *)`.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(name) __attribute__((cleanup(cleanup_##name)))

static inline void cleanup_fd(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

static inline void cleanup_free(void *pointer)
{
	void **memory = pointer;
	int saved = errno;

	free(*memory);
	*memory = NULL;
	errno = saved;
}

static inline void cleanup_dir(DIR **dir)
{
	int saved = errno;

	if (*dir)
		(void)closedir(*dir);
	*dir = NULL;
	errno = saved;
}

static inline void cleanup_file(FILE **file)
{
	int saved = errno;

	if (*file)
		(void)fclose(*file);
	*file = NULL;
	errno = saved;
}

static inline int fd_steal(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#define ptr_steal(pointer)                                                                         \
	({                                                                                         \
		__typeof__(*(pointer)) stolen_ = *(pointer);                                       \
		*(pointer) = NULL;                                                                 \
		stolen_;                                                                           \
	})

#endif
