#ifndef SIM_MODULE_H
#define SIM_MODULE_H

/* Modules and the functions in them. Core lock held. */

#include "kernel.h"

struct sim_module;

struct sim_function {
	struct sim_function *next; /* in the module */
	struct sim_module *module;
	const struct sim_kernel *kernel;
	int max_dynamic_shared_bytes;
};

CUresult sim_function_get(CUfunction handle, struct sim_function **ret_function);
void sim_module_drop_context(const struct sim_context *context);

#endif
