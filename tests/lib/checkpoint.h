#ifndef TESTS_LIB_CHECKPOINT_H
#define TESTS_LIB_CHECKPOINT_H

/*
 * The driver's checkpoint calls on another process, with the arguments that a test seldom cares about
 * filled in. They return the driver's own result.
 */

#include <stddef.h>
#include <sys/types.h>

#include "driver/abi.h"

#define T_LOCK_MS 10000

CUresult t_lock(pid_t pid);
CUresult t_checkpoint(pid_t pid);
CUresult t_restore(pid_t pid);
CUresult t_unlock(pid_t pid);

/* The state; ends the test where it cannot be read. */
CUprocessState t_state(pid_t pid);

/* Lock and checkpoint; restore and unlock: each must succeed. */
void t_suspend(pid_t pid);
void t_resume(pid_t pid);

/*
 * Open descriptors of a process that lead to the driver: /dev/nvidia*, and on the simulator its memory
 * files and runtime folder.
 */
size_t t_driver_descriptors(pid_t pid);

#endif
