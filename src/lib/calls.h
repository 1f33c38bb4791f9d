#ifndef STASIS_LIB_CALLS_H
#define STASIS_LIB_CALLS_H

/*
 * Which driver call a process of ours is in, for the supervisor to name when it hangs: one word of memory
 * that both processes see, written by thin wrappers around the calls that can block.
 */

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/error.h"
#include "driver/driver.h"

/* 0: in none. Shared by forks. */
typedef atomic_uint stasis_lib_call_word;

/* NULL: there is no memory; the phase alone is named then. */
stasis_lib_call_word *stasis_lib_call_word_new(void);
void stasis_lib_call_word_free(stasis_lib_call_word *word);

/* Its name, "cuCheckpointProcessLock"; NULL: in none, or `word` is NULL. */
const char *stasis_lib_call_name(const stasis_lib_call_word *word);

/*
 * Puts the wrappers into the table. Once a process; calls of the calling thread only are noted. NULL for
 * `word` changes nothing.
 */
void stasis_lib_calls_note(struct stasis_driver *driver, stasis_lib_call_word *word);

#endif
