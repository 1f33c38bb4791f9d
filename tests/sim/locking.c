/*
 * Description: the lock waits for queued work and for calls that are inside, gives up at its time with the
 * process RUNNING, starves while three threads call without pause, succeeds when they pause, and is taken
 * back when its caller dies.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "gate.h"
#include "witness.h"

#define RUSHING_THREADS 4
#define WARM_ROUNDS 100
#define SHORT_MS 60

static CUresult lock_within(pid_t pid, unsigned int milliseconds)
{
	CUcheckpointLockArgs args = {.timeoutMs = milliseconds};

	return cuCheckpointProcessLock(pid, &args);
}

/* Says 'W' with a closed gate on its stream, opens it when told, waits, and says 'D'. */
static void run_busy(int fd, void *argument)
{
	struct t_gate gate;
	CUstream stream;

	(void)argument;
	(void)t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&gate, stream);
	t_say(fd, 'W');
	t_hear(fd, 'o');
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(stream));
	t_say(fd, 'D');
	t_wait_end(fd);
}

static void busy(void)
{
	struct t_child child = t_child_start(run_busy, NULL);

	t_hear(child.fd, 'W');
	T_IS(lock_within(child.pid, SHORT_MS), CUDA_ERROR_NOT_READY);
	T_WITNESS(child.pid, "RUNNING");
	t_say(child.fd, 'o');
	t_hear(child.fd, 'D');
	T_OK(lock_within(child.pid, 0));
	T_OK(t_unlock(child.pid));
	t_child_join(&child);
}

static void lock_for_ever(int fd, void *argument)
{
	const pid_t *pid = argument;

	t_say(fd, 'L');
	(void)lock_within(*pid, 0);
	t_fail("a lock came through that should have waited");
}

/* A lock whose caller is killed while it waits must not be taken later. */
static void caller_dies(void)
{
	struct t_child child = t_child_start(run_busy, NULL);
	struct t_child locker;

	t_hear(child.fd, 'W');
	locker = t_child_start(lock_for_ever, &child.pid);
	t_hear(locker.fd, 'L');
	T_IS(lock_within(child.pid, SHORT_MS), CUDA_ERROR_NOT_READY);
	t_child_kill(&locker);
	t_say(child.fd, 'o');
	t_hear(child.fd, 'D');
	T_WITNESS(child.pid, "RUNNING");
	t_child_join(&child);
}

static atomic_bool is_rushing = true;
static atomic_int warm_threads;
static CUcontext context;

static void *rush(void *argument)
{
	CUdeviceptr address;

	(void)argument;
	T_OK(cuCtxSetCurrent(context));
	address = t_alloc(T_BLOCK_BYTES);
	for (int i = 0; atomic_load(&is_rushing); i++) {
		T_OK(cuMemsetD8Async(address, 1, 4096, NULL));
		T_OK(cuStreamSynchronize(NULL));
		if (i == WARM_ROUNDS)
			(void)atomic_fetch_add(&warm_threads, 1);
	}
	return NULL;
}

static void run_rush(int fd, void *argument)
{
	pthread_t threads[RUSHING_THREADS];

	(void)argument;
	context = t_cuda();
	for (int i = 0; i < RUSHING_THREADS; i++)
		T_EQ(pthread_create(&threads[i], NULL, rush, NULL), 0);
	while (atomic_load(&warm_threads) < RUSHING_THREADS)
		(void)sched_yield();
	t_say(fd, 'W');
	t_hear(fd, 'p');
	atomic_store(&is_rushing, false);
	for (int i = 0; i < RUSHING_THREADS; i++)
		T_EQ(pthread_join(threads[i], NULL), 0);
	t_say(fd, 'P');
	t_wait_end(fd);
}

static void starving(void)
{
	struct t_child child = t_child_start(run_rush, NULL);

	t_hear(child.fd, 'W');
	T_IS(lock_within(child.pid, SHORT_MS), CUDA_ERROR_NOT_READY);
	T_WITNESS(child.pid, "RUNNING");
	t_say(child.fd, 'p');
	t_hear(child.fd, 'P');
	T_OK(lock_within(child.pid, 0));
	T_OK(t_unlock(child.pid));
	t_child_join(&child);
}

int main(void)
{
	busy();
	caller_dies();
	starving();
	return 0;
}
