#ifndef STASIS_INTERPOSE_SETTINGS_H
#define STASIS_INTERPOSE_SETTINGS_H

/*
 * What the environment says, read once when the library is loaded: a program may change its environment on
 * one thread while another one calls CUDA, and reading it then is not safe.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "wire/peer.h"

/* By the constructor; the first time counts. */
void stasis_settings_read(char **environment);

/* Where the sockets of peers lie. */
NODISCARD int stasis_settings_directory(char ret_path[STASIS_WIRE_SOCKET_PATH_BYTES],
					struct stasis_error *err);

#endif
