/*
 * Description: what has ended, or is only held to be open, keeps the gate from shutting no longer than it lasts: captures of
 * streams, contexts and threads that are gone; and what is open is neither lost nor touched, whoever ends beside it.
 *
 * usage: drain_ends TOPIC
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "coordinator.h"
#include "device.h"
#include "gate.h"

#define SHORT_NS (300 * STASIS_NS_PER_MS)
#define BYTES ((size_t)4096)
#define CONTEXTS 300
#define CAPTURES 100
#define FULL_WORKS 3000 /* more than a queue takes */
#define ROUNDS 3
#define CHURNERS 4ul

/* ---- participants: they make something, say so, and do what each letter says ---- */

static CUcontext context;
static CUstream stream;
static CUdeviceptr address;
static struct t_gate blocked;

static void begin_in(CUstream captured)
{
	T_OK(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void end_of(CUstream captured)
{
	CUgraph graph = NULL;

	T_OK(cuStreamEndCapture(captured, &graph));
	T_OK(cuGraphDestroy(graph));
}

/* It runs on: work is done, and right. */
static void work_is_done(void)
{
	CUstream worker = t_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr memory = t_alloc(BYTES);
	uint32_t seen = 0;

	T_OK(cuMemsetD32Async(memory, 4711, BYTES / 4, worker));
	T_OK(cuMemcpyDtoHAsync_v2(&seen, memory, 4, worker));
	T_OK(cuStreamSynchronize(worker));
	T_EQ(seen, 4711);
	T_OK(cuMemFree_v2(memory));
	T_OK(cuStreamDestroy_v2(worker));
}

/* Until the coordinator has shut the gate and opened it. */
static void wait_for_end(int fd)
{
	t_say(fd, 'r');
	t_hear(fd, 'w');
	work_is_done();
	t_say(fd, 'd');
	(void)t_hear_any(fd);
}

static void capture_begin(void)
{
	context = t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	begin_in(stream);
}

static void run_reset(int fd)
{
	capture_begin();
	T_OK(cuDevicePrimaryCtxReset_v2(0));
	(void)t_cuda();
	wait_for_end(fd);
}

static void run_released(int fd)
{
	capture_begin();
	T_OK(cuDevicePrimaryCtxRelease_v2(0));
	(void)t_cuda();
	wait_for_end(fd);
}

/* A primary context that is gone, one of the program's that is there, and work in it. */
static void run_reset_beside(int fd)
{
	CUcontext created = NULL;

	capture_begin();
	T_OK(cuCtxCreate_v2(&created, 0, 0));
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	/* Before there is work: a reset waits for that of other contexts too. */
	T_OK(cuDevicePrimaryCtxReset_v2(0));
	t_gate_close(&blocked, stream);
	t_say(fd, 'r');
	t_hear(fd, 'o');
	t_gate_open(&blocked);
	t_say(fd, 'd');
	wait_for_end(fd);
}

static void run_destroyed(int fd)
{
	CUcontext created = NULL;

	capture_begin();
	T_OK(cuStreamDestroy_v2(stream));
	T_OK(cuCtxCreate_v2(&created, 0, 0));
	begin_in(t_stream(CU_STREAM_NON_BLOCKING));
	begin_in(CU_STREAM_PER_THREAD);
	T_OK(cuCtxDestroy_v2(created));
	wait_for_end(fd);
}

/* The gate is told that it is not known whether the capture has ended. */
static void run_unknown(int fd)
{
	CUgraph graph = NULL;

	capture_begin();
	T_IS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	T_IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	wait_for_end(fd);
}

static void *capture_and_leave(void *unused)
{
	(void)unused;
	T_OK(cuCtxSetCurrent(context));
	begin_in(CU_STREAM_PER_THREAD);
	return NULL;
}

static void run_thread(int fd)
{
	pthread_t thread;

	context = t_cuda();
	T_EQ(pthread_create(&thread, NULL, capture_and_leave, NULL), 0);
	T_EQ(pthread_join(thread, NULL), 0);
	wait_for_end(fd);
}

static void run_invalidated(int fd)
{
	CUgraph graph = NULL;

	capture_begin();
	T_IS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	t_say(fd, 'r');
	t_hear(fd, 'e');
	T_IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	wait_for_end(fd);
}

/* The stream of one context is captured while another is current, which then ends. */
static void run_other_context(int fd)
{
	CUcontext created = NULL;

	context = t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = t_alloc(BYTES);
	T_OK(cuCtxCreate_v2(&created, 0, 0));
	begin_in(stream);
	T_OK(cuCtxDestroy_v2(created));
	t_say(fd, 'r');
	t_hear(fd, 'e');
	T_OK(cuMemsetD8Async(address, 1, BYTES, stream));
	end_of(stream);
	wait_for_end(fd);
}

static void run_to_graph(int fd)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUgraph graph = NULL;
	CUgraph ended = NULL;

	context = t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = t_alloc(BYTES);
	T_OK(cuThreadExchangeStreamCaptureMode(&mode));
	T_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	T_OK(cuGraphCreate(&graph, 0));
	T_OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0,
					 CU_STREAM_CAPTURE_MODE_GLOBAL));
	t_say(fd, 'r');
	t_hear(fd, 'e');
	T_OK(cuMemsetD8Async(address, 1, BYTES, stream));
	T_OK(cuStreamEndCapture(stream, &ended));
	T_TRUE(ended == graph);
	wait_for_end(fd);
	/* The thread's mode is its own, and what it was. */
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	T_OK(cuThreadExchangeStreamCaptureMode(&mode));
	T_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* More contexts and captures than any table begins with; work in the last context. */
static void run_many(int fd)
{
	CUcontext created = NULL;
	CUstream captured[CAPTURES];

	context = t_cuda();
	for (int i = 0; i < CONTEXTS; i++) {
		T_OK(cuCtxCreate_v2(&created, 0, 0));
		T_OK(cuCtxPopCurrent_v2(NULL));
	}
	T_OK(cuCtxSetCurrent(created));
	for (int i = 0; i < CAPTURES; i++) {
		captured[i] = t_stream(CU_STREAM_NON_BLOCKING);
		begin_in(captured[i]);
	}
	t_say(fd, 'r');
	t_hear(fd, 'e');
	for (int i = 0; i < CAPTURES; i++)
		end_of(captured[i]);
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	t_gate_close(&blocked, stream);
	t_say(fd, 'd');
	t_hear(fd, 'o');
	t_gate_open(&blocked);
	wait_for_end(fd);
}

/* Held at the second one, it could not end the first, which is waited for. */
static void run_nested(int fd)
{
	CUstream second;

	capture_begin();
	second = t_stream(CU_STREAM_NON_BLOCKING);
	t_say(fd, 'r');
	t_hear(fd, 'e');
	begin_in(second);
	end_of(stream);
	begin_in(CU_STREAM_PER_THREAD);
	end_of(second);
	end_of(CU_STREAM_PER_THREAD);
	wait_for_end(fd);
}

static CUresult submit_many(void *unused)
{
	CUresult result = CUDA_SUCCESS;

	(void)unused;
	for (int i = 0; i < FULL_WORKS && result == CUDA_SUCCESS; i++)
		result = cuMemsetD8Async(address, (unsigned char)i, BYTES, stream);
	return result;
}

static void run_full(int fd)
{
	struct t_task submitter;

	context = t_cuda();
	stream = t_stream(CU_STREAM_NON_BLOCKING);
	address = t_alloc(BYTES);
	t_gate_close(&blocked, stream);
	t_task_start(&submitter, submit_many, NULL);
	T_TRUE(!t_task_returns_within(&submitter, T_BLOCK_MS));
	t_say(fd, 'r');
	t_hear(fd, 'o');
	t_gate_open(&blocked);
	wait_for_end(fd);
	T_OK(t_task_join(&submitter));
}

/* ---- a participant whose threads make contexts and end them without pause ---- */

static atomic_ulong counts[CHURNERS];
static atomic_bool is_over;

static void *churn(void *argument)
{
	atomic_ulong *count = argument;

	while (!atomic_load(&is_over)) {
		CUcontext created = NULL;

		T_OK(cuCtxCreate_v2(&created, 0, 0));
		begin_in(t_stream(CU_STREAM_NON_BLOCKING));
		if (*count % 2 == 0)
			begin_in(CU_STREAM_PER_THREAD);
		T_OK(cuCtxDestroy_v2(created));
		atomic_fetch_add(count, 1);
	}
	return NULL;
}

static void run_churning(int fd)
{
	pthread_t threads[CHURNERS];

	context = t_cuda();
	for (size_t i = 0; i < CHURNERS; i++)
		T_EQ(pthread_create(&threads[i], NULL, churn, &counts[i]), 0);
	while (t_hear_any(fd) != 'q') {
		unsigned long total = 0;

		for (size_t i = 0; i < CHURNERS; i++)
			total += atomic_load(&counts[i]);
		t_send(fd, &total, sizeof(total));
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < CHURNERS; i++)
		T_EQ(pthread_join(threads[i], NULL), 0);
}

static const struct t_mode modes[] = {
	{"reset", run_reset},
	{"released", run_released},
	{"reset_beside", run_reset_beside},
	{"destroyed", run_destroyed},
	{"unknown", run_unknown},
	{"thread", run_thread},
	{"invalidated", run_invalidated},
	{"other_context", run_other_context},
	{"to_graph", run_to_graph},
	{"many", run_many},
	{"nested", run_nested},
	{"full", run_full},
	{"churning", run_churning},
	{NULL, NULL},
};

/* ---- the coordinator ---- */

static struct t_session session;
static struct t_child child;

static void start(const char *mode)
{
	child = t_participant_start(mode);
	t_hear(child.fd, 'r');
	T_DONE(&session, t_session_open(&session, child.pid, NULL, NULL));
}

static void finish(void)
{
	t_say(child.fd, 'q');
	t_child_join(&child);
}

/* The gate shuts, and opens to a program that runs on. */
static void shuts(void)
{
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_ALL));
	t_session_let_go(&session);
	t_say(child.fd, 'w');
	t_hear(child.fd, 'd');
	finish();
}

static void shuts_on(const char *mode)
{
	start(mode);
	shuts();
}

/* Refused for what is open, which stays whole; once that is ended, not. */
static void refused_until_ended(const char *mode, const char *text)
{
	start(mode);
	T_REFUSED_WITH(&session,
		       t_session_gate_within(&session, STASIS_WIRE_GATE_CAPTURES, SHORT_NS), text);
	t_say(child.fd, 'e');
	t_hear(child.fd, 'r');
	shuts();
}

static void captures_of_a_reset_context(void)
{
	shuts_on("reset");
}

static void captures_of_a_released_context(void)
{
	shuts_on("released");
}

static void context_beside_a_reset_one(void)
{
	start("reset_beside");
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_REFUSED_WITH(&session, t_session_gate_within(&session, STASIS_WIRE_GATE_ALL, SHORT_NS),
		       "the work of stream 0x");
	t_say(child.fd, 'o');
	t_hear(child.fd, 'd');
	t_hear(child.fd, 'r');
	shuts();
}

static void captures_of_destroyed_streams(void)
{
	shuts_on("destroyed");
}

static void capture_of_unknown_end(void)
{
	/* The first who asks is the interposer, behind the end that failed. */
	T_SYS(setenv("STASIS_SIM_FAULT", "cuStreamIsCapturing:1=UNKNOWN", 1));
	shuts_on("unknown");
}

static void thread_that_ends_capturing(void)
{
	shuts_on("thread");
}

static void invalidated_capture(void)
{
	refused_until_ended("invalidated", "in a capture that was invalidated");
}

static void capture_in_another_context(void)
{
	refused_until_ended("other_context", "is being captured");
}

static void capture_into_a_graph(void)
{
	refused_until_ended("to_graph", "is being captured");
}

static void many_contexts_and_captures(void)
{
	T_SYS(setenv("STASIS_SIM_CONTEXT_BYTES", "65536", 1));
	start("many");
	T_REFUSED_WITH(&session,
		       t_session_gate_within(&session, STASIS_WIRE_GATE_CAPTURES, SHORT_NS),
		       "is being captured");
	t_say(child.fd, 'e');
	t_hear(child.fd, 'd');
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_REFUSED_WITH(&session, t_session_gate_within(&session, STASIS_WIRE_GATE_ALL, SHORT_NS),
		       "the work of stream 0x");
	t_say(child.fd, 'o');
	t_hear(child.fd, 'r');
	shuts();
}

static void capture_within_a_capture(void)
{
	start("nested");
	T_REFUSED_WITH(&session,
		       t_session_gate_within(&session, STASIS_WIRE_GATE_CAPTURES, SHORT_NS),
		       "is being captured");
	/* Captures are held from here on. */
	t_say(child.fd, 'e');
	t_hear(child.fd, 'r');
	shuts();
}

static void submitter_in_a_full_queue(void)
{
	start("full");
	T_DONE(&session, t_session_gate(&session, STASIS_WIRE_GATE_CAPTURES));
	T_REFUSED_WITH(&session, t_session_gate_within(&session, STASIS_WIRE_GATE_ALL, SHORT_NS),
		       "is in cuMemsetD8Async");
	t_say(child.fd, 'o');
	t_hear(child.fd, 'r');
	shuts();
}

static unsigned long counted(void)
{
	unsigned long total;

	t_say(child.fd, 'c');
	t_receive(child.fd, &total, sizeof(total));
	return total;
}

static void contexts_without_pause(void)
{
	child = t_participant_start("churning");
	for (int round = 0; round < ROUNDS; round++) {
		unsigned long before = counted();

		while (counted() <= before + CHURNERS)
			(void)usleep(1000);
		t_session_shut(&session, child.pid);
		before = counted();
		(void)usleep(T_BLOCK_MS * 1000);
		T_TRUE(counted() <= before + CHURNERS);
		t_session_let_go(&session);
	}
	finish();
}

static const struct t_topic topics[] = {
	{"captures_of_a_reset_context", captures_of_a_reset_context},
	{"captures_of_a_released_context", captures_of_a_released_context},
	{"context_beside_a_reset_one", context_beside_a_reset_one},
	{"captures_of_destroyed_streams", captures_of_destroyed_streams},
	{"capture_of_unknown_end", capture_of_unknown_end},
	{"thread_that_ends_capturing", thread_that_ends_capturing},
	{"invalidated_capture", invalidated_capture},
	{"capture_in_another_context", capture_in_another_context},
	{"capture_into_a_graph", capture_into_a_graph},
	{"many_contexts_and_captures", many_contexts_and_captures},
	{"capture_within_a_capture", capture_within_a_capture},
	{"submitter_in_a_full_queue", submitter_in_a_full_queue},
	{"contexts_without_pause", contexts_without_pause},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
