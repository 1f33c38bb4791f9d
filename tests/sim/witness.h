#ifndef TESTS_SIM_WITNESS_H
#define TESTS_SIM_WITNESS_H

/*
 * What the program sim-state says of a process and of the machine: a witness that passes by the calls
 * under test, their faults and their log. Each function runs it once and waits for it.
 */

#include <stdint.h>
#include <sys/types.h>

/* RUNNING, LOCKED, CHECKPOINTED, FAILED, OPERATING or NONE, in a buffer of the thread. */
const char *t_witness_state(pid_t pid);

/* The state must be this one. */
#define T_WITNESS(pid, state) t_witness_check(__FILE__, __LINE__, (pid), (state))
void t_witness_check(const char *file, int line, pid_t pid, const char *state);

/* Whether a restore of it failed: nothing can bring it back. */
int t_witness_is_lost(pid_t pid);

/* What a process has of a GPU, and what the GPU has free. */
uint64_t t_witness_bytes(pid_t pid, int device);
uint64_t t_witness_free_bytes(int device);

/* A workload: a process with a context and a filled allocation on each of 'devices' GPUs. */
struct t_load {
	int devices;
	size_t bytes;
};

/*
 * To be run by t_child_start with a struct t_load: says 'R' when ready, answers 'V' with 'O' where all bytes
 * are right and with 'N' where one is not, works on, and ends with the socket.
 */
void t_load_run(int fd, void *argument);

/* The word that such a workload has at 'index' of its memory on a GPU. */
uint32_t t_load_word(int device, size_t index);

#endif
