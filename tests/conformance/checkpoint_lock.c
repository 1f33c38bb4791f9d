/*
 * Description: what a locked process waits for, and which of its calls wait.
 */
#include <stdio.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "gate.h"

#define BYTES (4 * T_MIB)
#define CALLS_MAX 4

/* What the calls of a target act on. */
static struct {
	CUdeviceptr native;
	CUdeviceptr mapped;
	CUstream stream;
} objects;

/* A call on a thread of its own that was started before the lock and goes ahead when told. */
struct held_call {
	CUresult (*call)(void);
	int go[2];
	struct t_task task;
};

static CUresult wait_then_call(void *argument)
{
	struct held_call *held = argument;
	char letter;

	T_EQ(read(held->go[0], &letter, 1), 1);
	return held->call();
}

static void held_start(struct held_call *held, CUresult (*call)(void))
{
	held->call = call;
	T_SYS(pipe(held->go));
	t_task_start(&held->task, wait_then_call, held);
}

static void held_go(struct held_call *held)
{
	T_EQ(write(held->go[1], "g", 1), 1);
}

static void make_objects(void)
{
	(void)t_cuda();
	objects.native = t_alloc(BYTES);
	objects.mapped = t_vmm(2 * T_BLOCK_BYTES, CU_MEM_HANDLE_TYPE_NONE).address;
	objects.stream = t_stream(CU_STREAM_NON_BLOCKING);
}

/*
 * Starts the calls, says 'r', lets them go ahead at 'g', answers 'p' where all return and 'b' where none
 * does while the process is locked, and ends with all of them done.
 */
static void call_while_locked(int fd, CUresult (*const *calls)(void), size_t count, int ms)
{
	struct held_call held[CALLS_MAX];
	unsigned int returned = 0; /* a bit a call */
	char letter;

	make_objects();
	for (size_t i = 0; i < count; i++)
		held_start(&held[i], calls[i]);
	t_say(fd, 'r');
	t_hear(fd, 'g');
	for (size_t i = 0; i < count; i++)
		held_go(&held[i]);
	for (size_t i = 0; i < count; i++) {
		if (t_task_returns_within(&held[i].task, ms))
			returned |= 1u << i;
		else
			ms = 0; /* the others have had as long */
	}
	letter = 's';
	if (returned == (1u << count) - 1)
		letter = 'p';
	else if (returned == 0)
		letter = 'b';
	else
		(void)fprintf(stderr, "calls that returned, a bit each: 0x%x\n", returned);
	t_say(fd, letter);
	t_hear(fd, 'u');
	for (size_t i = 0; i < count; i++)
		T_OK(t_task_join(&held[i].task));
	t_say(fd, 'k');
	t_wait_end(fd);
}

static CUresult call_memset(void)
{
	return cuMemsetD8Async(objects.native, 1, BYTES, objects.stream);
}

static CUresult call_event_create(void)
{
	CUevent event = NULL;

	return cuEventCreate(&event, CU_EVENT_DEFAULT);
}

static CUresult call_address_range(void)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;

	return cuMemGetAddressRange_v2(&base, &bytes, objects.mapped);
}

static CUresult call_get_info(void)
{
	size_t free_bytes = 0;
	size_t total_bytes = 0;

	return cuMemGetInfo_v2(&free_bytes, &total_bytes);
}

static CUresult call_reserve(void)
{
	CUdeviceptr address = 0;

	return cuMemAddressReserve(&address, T_BLOCK_BYTES, 0, 0, 0);
}

static CUresult call_query(void)
{
	return cuStreamQuery(objects.stream);
}

static CUresult call_attribute(void)
{
	unsigned int type = 0;

	return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, objects.mapped);
}

static void held_calls_target(int fd, void *unused)
{
	CUresult (*const calls[])(void) = {call_memset, call_event_create, call_address_range};

	(void)unused;
	call_while_locked(fd, calls, 3, T_BLOCK_MS);
}

static void passing_calls_target(int fd, void *unused)
{
	CUresult (*const calls[])(void) = {call_get_info, call_reserve, call_query, call_attribute};

	(void)unused;
	call_while_locked(fd, calls, 4, T_PASS_MS);
}

/* Runs such a target through lock, calls and unlock; it must answer with this letter. */
static void demand_answer(void (*target_main)(int fd, void *unused), char answer)
{
	struct t_child target = t_child_start(target_main, NULL);

	t_init_only();
	t_hear(target.fd, 'r');
	T_OK(t_lock(target.pid));
	t_say(target.fd, 'g');
	t_hear(target.fd, answer);
	T_OK(t_unlock(target.pid));
	t_say(target.fd, 'u');
	t_hear(target.fd, 'k');
	t_child_join(&target);
}

static void lock_holds_calls(void)
{
	demand_answer(held_calls_target, 'b');
}

static void lock_lets_queries_pass(void)
{
	demand_answer(passing_calls_target, 'p');
}

/* Work waits at a gate until 'o'; then the target waits for it and answers 'k'. */
static void busy_target(int fd, void *unused)
{
	struct t_gate gate;

	(void)unused;
	make_objects();
	t_gate_close(&gate, objects.stream);
	T_OK(cuMemsetD8Async(objects.native, 1, BYTES, objects.stream));
	t_say(fd, 'r');
	t_hear(fd, 'o');
	t_gate_open(&gate);
	T_OK(cuStreamSynchronize(objects.stream));
	t_say(fd, 'k');
	t_wait_end(fd);
}

static struct t_child start_busy(void)
{
	struct t_child target = t_child_start(busy_target, NULL);

	t_init_only();
	t_hear(target.fd, 'r');
	return target;
}

static void lock_timeout(void)
{
	CUcheckpointLockArgs args = {.timeoutMs = 200};
	struct t_child target = start_busy();

	T_IS(cuCheckpointProcessLock(target.pid, &args), CUDA_ERROR_NOT_READY);
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_RUNNING);
	t_say(target.fd, 'o');
	t_hear(target.fd, 'k');
	T_OK(t_lock(target.pid));
	T_OK(t_unlock(target.pid));
	t_child_join(&target);
}

static CUresult lock_it(void *pid)
{
	return t_lock(*(pid_t *)pid);
}

static void lock_waits_for_work(void)
{
	struct t_child target = start_busy();
	struct t_task task;

	t_task_start(&task, lock_it, &target.pid);
	T_TRUE(!t_task_returns_within(&task, T_BLOCK_MS));
	t_say(target.fd, 'o');
	T_OK(t_task_join(&task));
	T_EQ(t_state(target.pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(target.pid));
	t_hear(target.fd, 'k');
	t_child_join(&target);
}

static const struct t_behaviour behaviours[] = {
	{"lock_holds_calls", T_MEASURED,
	 "while LOCKED memsets, event creation and cuMemGetAddressRange wait for the unlock",
	 lock_holds_calls},
	{"lock_lets_queries_pass", T_MEASURED,
	 "while LOCKED cuMemGetInfo, reservations, stream and pointer queries go through",
	 lock_lets_queries_pass},
	{"lock_timeout", T_MEASURED,
	 "a lock that cannot be had in time is NOT_READY, and the process runs on", lock_timeout},
	{"lock_waits_for_work", T_DOCUMENTED, "a lock waits for work that was queued before",
	 lock_waits_for_work},
};

T_BEHAVIOURS_MAIN(behaviours)
