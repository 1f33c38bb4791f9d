#ifndef STASIS_INTERPOSE_HANDLERS_H
#define STASIS_INTERPOSE_HANDLERS_H

/*
 * The handlers of entries of class HANDLED (symbols.h), with the driver's own types: called inside the gate
 * with the function to go on to, they call it, record what came of it, and return its result. errno is
 * kept. entry.c calls them with words in the place of arguments, as signature.h explains.
 */

#include "driver/abi.h"

/* init.c */
CUresult stasis_handle_cuInit(CUresult (*target)(unsigned int), unsigned int flags);

#endif
