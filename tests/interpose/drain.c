/*
 * Description: the gate is shut on programs that never pause, their work is waited for without touching their captures,
 * and they go on as if nothing had been; where that cannot be, the stream or thread is named and they run on.
 *
 * usage: drain TOPIC
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "coordinator.h"
#include "device.h"
#include "gate.h"

#define THREADS 4ul
#define ROUNDS 3
#define WORDS ((size_t)1024)
#define QUEUED 500
#define SHORT_NS (300 * STASIS_NS_PER_MS)
#define LONG_NS (20 * STASIS_NS_PER_S)

/* ---- participants: threads that count what they have done, and a main thread that tells ---- */

static atomic_ulong counts[THREADS];
static atomic_bool is_over;
static CUcontext context;
static struct t_gate blocked;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned long sum(void)
{
	unsigned long total = 0;

	for (size_t i = 0; i < THREADS; i++)
		total += atomic_load(&counts[i]);
	return total;
}

/* What a thread works with: its memory, and a stream. */
static CUdeviceptr thread_begin(CUstream *ret_stream)
{
	T_OK(cuCtxSetCurrent(context));
	*ret_stream = t_stream(CU_STREAM_NON_BLOCKING);
	return t_alloc(WORDS * 4);
}

/* Writes a value, reads it back, compares. */
static void *launch(void *argument)
{
	atomic_ulong *count = argument;
	CUstream stream;
	CUdeviceptr address = thread_begin(&stream);

	for (uint32_t value = 1; !atomic_load(&is_over); value++) {
		uint32_t seen = 0;

		T_OK(cuMemsetD32Async(address, value, WORDS, stream));
		T_OK(cuMemcpyDtoHAsync_v2(&seen, address + (WORDS - 1) * 4, 4, stream));
		T_OK(cuStreamSynchronize(stream));
		T_EQ(seen, value);
		atomic_fetch_add(count, 1);
	}
	return NULL;
}

static void *allocate(void *argument)
{
	atomic_ulong *count = argument;

	T_OK(cuCtxSetCurrent(context));
	while (!atomic_load(&is_over)) {
		struct t_vmm memory = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
		CUdeviceptr address = t_alloc(4096);

		T_OK(cuMemFree_v2(address));
		t_vmm_release(&memory);
		atomic_fetch_add(count, 1);
	}
	return NULL;
}

/* Captures a graph, runs it, looks at what it did. */
static void *capture(void *argument)
{
	atomic_ulong *count = argument;
	CUstream stream;
	CUdeviceptr address = thread_begin(&stream);

	for (uint32_t value = 1; !atomic_load(&is_over); value++) {
		CUgraphExec exec = NULL;
		CUgraph graph = NULL;
		uint32_t seen = 0;

		T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		for (uint32_t i = 0; i < 20; i++)
			T_OK(cuMemsetD32Async(address, value + i, WORDS, stream));
		T_OK(cuStreamEndCapture(stream, &graph));
		T_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		T_OK(cuGraphLaunch(exec, stream));
		T_OK(cuMemcpyDtoHAsync_v2(&seen, address, 4, stream));
		T_OK(cuStreamSynchronize(stream));
		T_EQ(seen, value + 19);
		T_OK(cuGraphExecDestroy(exec));
		T_OK(cuGraphDestroy(graph));
		atomic_fetch_add(count, 1);
	}
	return NULL;
}

typedef void *routine(void *argument);

/* Answers each letter with the sum of the counts, until it is 'q'. */
static void run_threads(int fd, routine *first, routine *others)
{
	pthread_t threads[THREADS];

	context = t_cuda();
	for (size_t i = 0; i < THREADS; i++)
		T_EQ(pthread_create(&threads[i], NULL, i == 0 ? first : others, &counts[i]), 0);
	while (t_hear_any(fd) != 'q') {
		unsigned long total = sum();

		t_send(fd, &total, sizeof(total));
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < THREADS; i++)
		T_EQ(pthread_join(threads[i], NULL), 0);
}

static void run_launching(int fd)
{
	run_threads(fd, launch, launch);
}

static void run_capturing(int fd)
{
	run_threads(fd, capture, launch);
}

static void run_allocating(int fd)
{
	run_threads(fd, allocate, capture);
}

/* A capture that is begun and not ended until 'e'. */
static void run_abandoned(int fd)
{
	CUgraph graph = NULL;
	CUdeviceptr address;
	CUstream stream;

	context = t_cuda();
	address = t_alloc(4096);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	t_say(fd, 'r');
	while (t_hear_any(fd) != 'e') {
		T_OK(cuMemsetD8Async(address, 1, 4096, stream));
		t_say(fd, 'd');
	}
	T_OK(cuStreamEndCapture(stream, &graph));
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

/* Work that waits until 'o', with more queued behind it, and a thread in a long synchronise. */
static void *synchronize(void *stream)
{
	T_OK(cuCtxSetCurrent(context));
	T_OK(cuStreamSynchronize(stream));
	atomic_fetch_add(&counts[0], 1);
	return NULL;
}

static void run_waiting(int fd, bool has_waiter)
{
	pthread_t thread;
	CUdeviceptr address;
	CUstream stream;

	context = t_cuda();
	address = t_alloc(4096);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&blocked, stream);
	for (int i = 0; i < QUEUED; i++)
		T_OK(cuMemsetD8Async(address, (unsigned char)i, 4096, stream));
	if (has_waiter)
		T_EQ(pthread_create(&thread, NULL, synchronize, stream), 0);
	t_say(fd, 'r');
	t_hear(fd, 'o');
	t_gate_open(&blocked);
	if (has_waiter)
		T_EQ(pthread_join(thread, NULL), 0);
	t_say(fd, 'd');
	t_hear(fd, 'v');
	T_OK(cuStreamSynchronize(stream));
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

static void run_queued(int fd)
{
	run_waiting(fd, false);
}

static void run_synchronizing(int fd)
{
	run_waiting(fd, true);
}

/* A host function that waits for a lock, whose holder is held at the gate. */
static void wait_for_lock(void *unused)
{
	(void)unused;
	(void)pthread_mutex_lock(&held_lock);
	(void)pthread_mutex_unlock(&held_lock);
}

static void run_locked(int fd)
{
	CUdeviceptr address;
	CUstream stream;

	context = t_cuda();
	address = t_alloc(4096);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	T_EQ(pthread_mutex_lock(&held_lock), 0);
	T_OK(cuLaunchHostFunc(stream, wait_for_lock, NULL));
	t_say(fd, 'r');
	t_hear(fd, 'c');
	/* Held while the gate is shut, and the lock with it: the gate that was given up lets it through. */
	T_OK(cuMemsetD8Async(address, 1, 4096, stream));
	T_EQ(pthread_mutex_unlock(&held_lock), 0);
	T_OK(cuStreamSynchronize(stream));
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

static const struct t_mode modes[] = {
	{"launching", run_launching},   {"capturing", run_capturing},
	{"allocating", run_allocating}, {"abandoned", run_abandoned},
	{"queued", run_queued},         {"synchronizing", run_synchronizing},
	{"locked", run_locked},         {NULL, NULL},
};

/* ---- the coordinator ---- */

static struct t_session session;
static struct t_child child;

static int gate(enum stasis_wire_gate_step step, uint64_t limit_ns)
{
	return t_session_gate_within(&session, step, limit_ns);
}

static void shut(void)
{
	t_session_shut(&session, child.pid);
}

static void let_go(void)
{
	t_session_let_go(&session);
}

static unsigned long counted(void)
{
	unsigned long total;

	t_say(child.fd, 'c');
	t_receive(child.fd, &total, sizeof(total));
	return total;
}

static void counted_more_than(unsigned long least)
{
	while (counted() <= least)
		(void)usleep(1000);
}

static void finish(void)
{
	t_say(child.fd, 'q');
	t_child_join(&child);
}

/* Once it is shut, a thread ends at most the round that it is in; opened, all go on. */
static void never_pauses(const char *mode)
{
	child = t_participant_start(mode);
	counted_more_than(THREADS);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned long before;

		shut();
		before = counted();
		(void)usleep(T_BLOCK_MS * 1000);
		T_TRUE(counted() <= before + THREADS);
		let_go();
		counted_more_than(before + 10 * THREADS);
	}
	finish();
}

static void threads_that_launch(void)
{
	never_pauses("launching");
}

static void threads_that_capture(void)
{
	never_pauses("capturing");
}

static void threads_that_allocate(void)
{
	never_pauses("allocating");
}

static void abandoned_capture(void)
{
	char thread[32];

	child = t_participant_start("abandoned");
	t_hear(child.fd, 'r');
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_REFUSED_WITH(&session, gate(STASIS_WIRE_GATE_CAPTURES, SHORT_NS), "is being captured");
	(void)snprintf(thread, sizeof(thread), "thread %d ('", (int)child.pid);
	T_TRUE(strstr(session.error.text, thread) != NULL);
	t_session_close(&session);
	/* The capture is whole. */
	t_say(child.fd, 'c');
	t_hear(child.fd, 'd');
	t_say(child.fd, 'e');
	t_hear(child.fd, 'd');
	shut();
	let_go();
	finish();
}

static void work_that_ends_late(void)
{
	child = t_participant_start("queued");
	t_hear(child.fd, 'r');
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_DONE(&session, gate(STASIS_WIRE_GATE_CAPTURES, LONG_NS));
	T_REFUSED_WITH(&session, gate(STASIS_WIRE_GATE_ALL, SHORT_NS), "the work of stream 0x");
	/* Another try, during which it ends. */
	t_say(child.fd, 'o');
	t_hear(child.fd, 'd');
	T_DONE(&session, gate(STASIS_WIRE_GATE_ALL, LONG_NS));
	let_go();
	t_say(child.fd, 'v');
	t_hear(child.fd, 'd');
	finish();
}

static void thread_that_synchronizes(void)
{
	child = t_participant_start("synchronizing");
	t_hear(child.fd, 'r');
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_DONE(&session, gate(STASIS_WIRE_GATE_CAPTURES, LONG_NS));
	/* It may not have come there yet; then the drain waits for its stream. */
	do
		T_REFUSED_WITH(&session, gate(STASIS_WIRE_GATE_ALL, SHORT_NS), "");
	while (!strstr(session.error.text, "is in cuStreamSynchronize"));
	t_say(child.fd, 'o');
	T_DONE(&session, gate(STASIS_WIRE_GATE_ALL, LONG_NS));
	let_go();
	t_hear(child.fd, 'd');
	t_say(child.fd, 'v');
	t_hear(child.fd, 'd');
	finish();
}

static void host_function_that_waits(void)
{
	child = t_participant_start("locked");
	t_hear(child.fd, 'r');
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
	T_DONE(&session, gate(STASIS_WIRE_GATE_CAPTURES, LONG_NS));
	/* Its holder would be held at its next call. */
	T_REFUSED_WITH(&session, gate(STASIS_WIRE_GATE_ALL, SHORT_NS), "a thread that the gate");
	t_say(child.fd, 'c');
	t_hear(child.fd, 'd');
	let_go();
	shut();
	let_go();
	finish();
}

static const struct t_topic topics[] = {
	{"threads_that_launch", threads_that_launch},
	{"threads_that_capture", threads_that_capture},
	{"threads_that_allocate", threads_that_allocate},
	{"abandoned_capture", abandoned_capture},
	{"work_that_ends_late", work_that_ends_late},
	{"thread_that_synchronizes", thread_that_synchronizes},
	{"host_function_that_waits", host_function_that_waits},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
