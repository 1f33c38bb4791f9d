/*
 * Description: a process with many exportable allocations, each a file of its own, goes through
 * CustomStorage; a caller without room for their descriptors is refused, with the target as it was.
 */
#include <sys/resource.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "custom.h"
#include "device.h"
#include "witness.h"

#define ALLOCATIONS 140
#define FEW_DESCRIPTORS 100

static void run_many(int fd, void *argument)
{
	static struct t_vmm all[ALLOCATIONS];
	struct rlimit limit;

	(void)argument;
	T_SYS(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	T_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	(void)t_cuda();
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		all[i] = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
		t_fill(all[i].address, 4096, i);
	}
	t_say(fd, 'R');
	while (t_hear_any(fd) == 'V') {
		for (uint32_t i = 0; i < ALLOCATIONS; i++)
			t_verify(all[i].address, 4096, i);
		t_say(fd, 'O');
	}
}

int main(void)
{
	struct t_child child = t_child_start(run_many, NULL);
	CUcheckpointCustomStorageInfo *info = NULL;
	struct rlimit limit;
	struct rlimit few;
	struct t_store store;

	t_hear(child.fd, 'R');
	t_custom_init();
	T_OK(t_lock(child.pid));
	T_SYS(getrlimit(RLIMIT_NOFILE, &limit));
	few = limit;
	few.rlim_cur = FEW_DESCRIPTORS;
	T_SYS(setrlimit(RLIMIT_NOFILE, &few));
	T_REFUSED(t_custom_begin_checkpoint(child.pid, &info));
	T_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	T_WITNESS(child.pid, "LOCKED");
	T_OK(t_unlock(child.pid));
	t_custom_suspend(child.pid, &store);
	T_SYS(setrlimit(RLIMIT_NOFILE, &few));
	T_REFUSED(t_custom_begin_restore(child.pid, &info));
	T_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	T_WITNESS(child.pid, "CHECKPOINTED");
	T_EQ(t_witness_is_lost(child.pid), 0);
	T_EQ(t_witness_bytes(child.pid, 0), 0);
	t_custom_resume(child.pid, &store);
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	t_child_join(&child);
	t_custom_free(&store);
	return 0;
}
