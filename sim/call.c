#include "call.h"

#include <string.h>

#include "answers.h"
#include "config.h"
#include "fault.h"
#include "gate.h"
#include "log.h"
#include "result.h"

/* The outermost call of this thread. */
static _Thread_local struct {
	unsigned int depth;
	enum sim_call_class class;
	bool is_failed; /* by a fault, before its work */
} current;

/* Without _v2 and the like, which are no part of the name that cuGetProcAddress is asked for. */
static size_t query_name_bytes(const char *name)
{
	size_t bytes = strlen(name);

	if (bytes > 3 && name[bytes - 3] == '_' && name[bytes - 2] == 'v')
		return bytes - 3;
	return bytes;
}

CUresult sim_call_enter(const char *name, enum sim_call_class class)
{
	CUresult result;

	current.depth++;
	if (current.depth > 1)
		return CUDA_SUCCESS;
	(void)sim_config();
	sim_fault_init();
	current.class = class;
	sim_gate_enter(class);
	result = sim_fault_reach(name, query_name_bytes(name), SIM_FAULT_BEFORE, CUDA_SUCCESS);
	current.is_failed = result != CUDA_SUCCESS;
	return result;
}

CUresult sim_call_leave(const char *name, CUresult result)
{
	size_t name_bytes = query_name_bytes(name);

	current.depth--;
	if (current.depth > 0)
		return result;
	if (!current.is_failed)
		result = sim_fault_reach(name, name_bytes, SIM_FAULT_AFTER, result);
	result = sim_answer(name, name_bytes, result);
	sim_gate_leave(current.class);
	if (sim_log_is_on())
		sim_log_line("%.*s %s", (int)name_bytes, name, sim_result_short_name(result));
	return result;
}
