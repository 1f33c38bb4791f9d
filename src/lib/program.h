#ifndef STASIS_LIB_PROGRAM_H
#define STASIS_LIB_PROGRAM_H

/*
 * Whether the dynamic loader would take the interposer into a command: found out from its files, before it is
 * started, because afterwards nothing would say that it runs without. Any thread.
 */

#include "base/compiler.h"
#include "base/error.h"

/*
 * Finds the command as execvp does and follows the interpreters of scripts to a program; what is neither program nor
 * names an interpreter runs under /bin/sh, which is then what is looked at. Refused, with the reason: what is
 * not found or not executable, what cannot be read, a program of another machine, a static one, one that is started with
 * privileges which make the loader ignore LD_PRELOAD, one with another C library than glibc, a glibc
 * older than 2.34.
 */
NODISCARD int stasis_lib_program_check(const char *command, struct stasis_error *err);

#endif
