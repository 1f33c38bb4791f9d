#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

/*
 * The memory of the simulated GPUs, as all processes of one STASIS_SIM_DIR share it, and the list of
 * those that use it. A file holds one slot for each account; a slot counts while somebody holds a lock
 * on it, and the kernel lets go of a lock with the last descriptor of it. So what a killed process had
 * is free again, and what travels with an export descriptor stays taken as long as that is open
 * anywhere. Each process has one account a GPU for what is its own; a claim is an account by itself.
 *
 * Devices are physical ones. Any thread; none of this takes a lock of the core.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "driver/abi.h"

#include "compiler.h"

/*
 * For programs that only look: takes the machine as it finds it, whatever the environment says. Call it
 * before anything else here. False: there is none in that directory.
 */
NODISCARD bool sim_machine_observe(void);
int sim_machine_device_count(void);

/* From cuInit: the process is known to the machine. Safe to call again. */
NODISCARD CUresult sim_machine_join(void);

/* Our own account. Give never fails: more than was taken is a bug of the simulator. */
NODISCARD CUresult sim_machine_take(int device, uint64_t bytes);
void sim_machine_give(int device, uint64_t bytes);

/*
 * An account of its own, held by the descriptor that is returned (close-on-exec) and every duplicate of
 * it: pass it along with exported memory, close it to give the memory back. _claim takes new memory;
 * _claim_own moves bytes of our own account into it, which cannot run out of memory.
 */
NODISCARD CUresult sim_machine_claim(int device, uint64_t bytes, int *ret_claim_fd);
NODISCARD CUresult sim_machine_claim_own(int device, uint64_t bytes, int *ret_claim_fd);

uint64_t sim_machine_total_bytes(int device);
uint64_t sim_machine_free_bytes(int device);

/* What the process's own account on a device says; of another process by its pid. */
uint64_t sim_machine_own_bytes(int device);
uint64_t sim_machine_process_bytes(pid_t pid, int device);

/* Whether a live process has joined and not left. */
bool sim_machine_is_used(void);

/*
 * Checkpoint: leaving closes every descriptor of the machine, which gives all of our own account back;
 * the amounts are remembered. Moving says to which device each device's amount goes. Resuming takes
 * them again, all or none.
 */
void sim_machine_leave(void);
void sim_machine_move(const int device_of[]);
NODISCARD CUresult sim_machine_resume(void);

#endif
