#ifndef STASIS_INTERPOSE_INSPECT_H
#define STASIS_INTERPOSE_INSPECT_H

/*
 * Pages of INSPECT: the registry's records, then a note for each function that nothing is known of, then what
 * hinders the endpoint itself. Reads only. Control thread.
 */

#include <stdbool.h>

#include "wire/message.h"

void stasis_inspect_page(const struct stasis_wire_inspect_request *request,
			 struct stasis_wire_inspect_page *ret_page, bool *ret_has_more);

#endif
