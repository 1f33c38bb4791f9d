#ifndef SIM_CALL_H
#define SIM_CALL_H

/*
 * What every entry of the simulated driver passes on its way in and out: the driver's own lock (calls
 * are held while the process is LOCKED), the fault plan and the call log. An entry looks like this:
 *
 *     SIM_API CUresult cuMemFoo_v2(CUdeviceptr ptr)
 *     {
 *             CUresult result = sim_call_enter(__func__, SIM_CALL_HELD);
 *
 *             if (result == CUDA_SUCCESS)
 *                     result = memory_foo(ptr);
 *             return sim_call_leave(__func__, result);
 *     }
 *
 * Every enter is followed by its leave on the same thread, whatever enter said. No lock of the core may
 * be held around either. An entry that calls another entry nests: only the outermost counts, is held,
 * faulted and logged.
 */

#include <stdbool.h>

#include "driver/abi.h"

#include "compiler.h"

enum sim_call_class {
	SIM_CALL_PURE,   /* touches no state of the GPU: never held */
	SIM_CALL_PASSES, /* goes through while the process is LOCKED; held once it is CHECKPOINTED */
	SIM_CALL_HELD,   /* held from LOCKED on; the lock waits until none is inside */
};

/* 'name' is the ELF name; faults and log drop its suffix _v2 and the like. It must be a literal. */
NODISCARD CUresult sim_call_enter(const char *name, enum sim_call_class class);
CUresult sim_call_leave(const char *name, CUresult result);

#endif
