#ifndef STASIS_INTERPOSE_NAMES_H
#define STASIS_INTERPOSE_NAMES_H

/* The ELF names of the driver's entries. */

#include <stdint.h>

/* "?" for a number that is none. */
const char *stasis_entry_name(uint32_t entry);

#endif
