/*
 * Description: a native checkpoint gives all memory back and keeps no descriptor; two round trips keep
 * every byte, also on several GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "witness.h"

#define LOAD_BYTES (24 * T_MIB)

static void check_thread(pid_t pid)
{
	char path[64];
	int thread_id = 0;

	T_OK(cuCheckpointProcessGetRestoreThreadId(pid, &thread_id));
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, thread_id);
	T_SYS(access(path, F_OK));
}

static void round_trip(const struct t_child *child, uint64_t free_before)
{
	uint64_t free_running[2] = {t_witness_free_bytes(0), t_witness_free_bytes(1)};

	T_TRUE(free_running[0] + LOAD_BYTES <= free_before);
	T_OK(t_lock(child->pid));
	T_WITNESS(child->pid, "LOCKED");
	T_OK(t_checkpoint(child->pid));
	T_WITNESS(child->pid, "CHECKPOINTED");
	T_EQ(t_driver_descriptors(child->pid), 0);
	T_EQ(t_witness_bytes(child->pid, 0), 0);
	T_EQ(t_witness_bytes(child->pid, 1), 0);
	T_EQ(t_witness_free_bytes(0), free_before);
	T_EQ(t_witness_free_bytes(1), free_before);
	check_thread(child->pid);
	T_OK(t_restore(child->pid));
	T_WITNESS(child->pid, "LOCKED");
	T_EQ(t_witness_free_bytes(0), free_running[0]);
	T_EQ(t_witness_free_bytes(1), free_running[1]);
	T_OK(t_unlock(child->pid));
	T_WITNESS(child->pid, "RUNNING");
	t_say(child->fd, 'V');
	t_hear(child->fd, 'O');
}

int main(void)
{
	struct t_load load = {.devices = 2, .bytes = LOAD_BYTES};
	struct t_child child;
	uint64_t free_before;

	T_SYS(setenv("STASIS_SIM_DEVICES", "2", 1));
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	free_before = t_witness_free_bytes(0) + t_witness_bytes(child.pid, 0);
	T_EQ(t_witness_free_bytes(1) + t_witness_bytes(child.pid, 1), free_before);
	round_trip(&child, free_before);
	round_trip(&child, free_before);
	t_child_join(&child);
	T_EQ(t_witness_free_bytes(0), free_before);
	return 0;
}
