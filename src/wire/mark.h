#ifndef STASIS_WIRE_MARK_H
#define STASIS_WIRE_MARK_H

/*
 * How a coordinator tells the driver's export descriptors that participants made for each other, which are closed
 * before the native checkpoint, from those that a program made past the interposer. They look alike, so ours
 * carry a mark: the signal of F_SETSIG, which belongs to the open file, goes along with every duplicate into
 * every process, and means nothing unless O_ASYNC is set, which it never is here. Any thread.
 */

#include <fcntl.h>
#include <stdbool.h>

/* The last real-time signal of Linux; nobody would choose it for files. */
#define STASIS_WIRE_MARK 64

/* False: it could not be marked, and errno says why. */
static inline bool stasis_wire_mark(int fd)
{
	return fcntl(fd, F_SETSIG, STASIS_WIRE_MARK) == 0;
}

static inline bool stasis_wire_is_marked(int fd)
{
	return fcntl(fd, F_GETSIG) == STASIS_WIRE_MARK;
}

#endif
