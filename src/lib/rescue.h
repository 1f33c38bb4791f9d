#ifndef STASIS_LIB_RESCUE_H
#define STASIS_LIB_RESCUE_H

/*
 * What is done for a workload whose worker was lost: a process of its own reads the driver's state of the
 * workload and brings it back where that is known to be safe. It never repeats a call whose outcome is
 * unknown.
 */

#include "checkpoint/checkpoint.h"
#include "lib/supervise.h"

struct stasis_lib_rescue {
	struct stasis_lib_knowledge knowledge; /* of the worker's time */
	const char *image_path;
	struct stasis_contexts contexts; /* empty until the rescue needs them */
};

/*
 * `argument` is a struct stasis_lib_rescue. Success: the workload runs. Else the error's status says what
 * became of it.
 */
stasis_lib_child_function stasis_lib_rescue_run;

#endif
