#ifndef STASIS_BASE_FAULT_H
#define STASIS_BASE_FAULT_H

/*
 * Fault points: named places where a test makes us fail. The environment variable STASIS_FAULT holds a
 * list `name[:N]=kind[,…]`: the N-th passage (1 where N is missing, N-M for a run of them, `*` for every
 * one) through the point `name` of this process fails as `kind` says:
 *
 *     ENOSPC EIO EINTR EAGAIN EMFILE ENOMEM EACCES   the call fails with that error
 *     short                                          a read or write moves only part
 *     kill                                           SIGKILL to ourselves
 *     hang                                           sleeps for ever
 *     mark                                           nothing, but it is logged
 *     stop                                           SIGSTOP to ourselves; goes on after SIGCONT
 *
 * With no variable a point costs one call. STASIS_FAULT_LOG names a file to which each fault that was
 * reached appends a line "name:N=kind", so that a test knows that it was. STASIS_FAULT_ONCE: each point acts
 * once, in whichever process is first, which makes a file of that name, a dot and the point's name.
 * STASIS_FAULT_TRACE names a file to which every passage through a point appends a line "PID point name": the
 * list from which tables of faults are made.
 */

#include <stddef.h>

/* Passes through a point: 0, or the errno with which the call is to fail. Kills or hangs by itself. */
int stasis_fault_point(const char *name);

/* As above for a transfer of `bytes`: may shorten it to at least 1 byte through *io_bytes. */
int stasis_fault_point_io(const char *name, size_t *io_bytes);

#endif
