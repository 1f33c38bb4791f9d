/*
 * Description: the interposer's gate: whom it holds, whom it waits for, and what a forked child makes of it.
 */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose/gate.h"

#define ENTRY 7u
#define NS_PER_MS 1000000u
#define LONG_NS (30000u * (uint64_t)NS_PER_MS)
#define CHURNERS 4
#define CLOSINGS 50

/* A thread that makes one call, which lasts until it is let go. */
struct caller {
	pthread_t thread;
	uint32_t held_at;
	atomic_int tid;
	atomic_bool is_inside;
	atomic_bool may_leave;
	atomic_bool has_nested;
	atomic_bool must_nest;
};

static void *call(void *argument)
{
	struct caller *caller = argument;
	struct stasis_gate_mark *mark;

	atomic_store(&caller->tid, (int)syscall(SYS_gettid));
	mark = stasis_gate_enter(ENTRY, caller->held_at);
	atomic_store(&caller->is_inside, true);
	while (!atomic_load(&caller->may_leave)) {
		if (atomic_load(&caller->must_nest) && !atomic_load(&caller->has_nested)) {
			stasis_gate_leave(stasis_gate_enter(ENTRY + 1, STASIS_GATE_CLOSED));
			atomic_store(&caller->has_nested, true);
		}
		(void)sched_yield();
	}
	stasis_gate_leave(mark);
	return NULL;
}

static void caller_start(struct caller *caller, uint32_t held_at)
{
	*caller = (struct caller){.held_at = held_at};
	assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static void caller_wait_inside(struct caller *caller)
{
	while (!atomic_load(&caller->is_inside))
		(void)sched_yield();
}

static void caller_end(struct caller *caller)
{
	atomic_store(&caller->may_leave, true);
	assert_int_equal(pthread_join(caller->thread, NULL), 0);
}

/* Until the kernel says that the thread sleeps in a futex. */
static void caller_wait_held(struct caller *caller)
{
	char path[64];
	char text[64] = "";

	while (atomic_load(&caller->tid) == 0)
		(void)sched_yield();
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", atomic_load(&caller->tid));
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

		if (fd >= 0)
			(void)close(fd);
		if (got < 0) {
			print_message("needs /proc/PID/task/TID/syscall\n");
			skip();
		}
		text[got] = '\0';
		if (strncmp(text, "202 ", 4) == 0)
			return;
		(void)sched_yield();
	}
}

static int gate_open_again(void **state)
{
	(void)state;
	stasis_gate_open();
	return 0;
}

static void holds_calls_until_it_opens(void **state)
{
	struct stasis_gate_busy busy;
	struct caller caller;

	(void)state;
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
	assert_int_equal(stasis_gate_level(), STASIS_GATE_CLOSED);
	caller_start(&caller, STASIS_GATE_CLOSED);
	caller_wait_held(&caller);
	assert_false(atomic_load(&caller.is_inside));
	/* One that is held is not in the driver. */
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
	stasis_gate_open();
	caller_wait_inside(&caller);
	caller_end(&caller);
}

static void first_step_holds_captures(void **state)
{
	struct stasis_gate_busy busy;
	struct caller other;
	struct caller capture;

	(void)state;
	assert_int_equal(stasis_gate_close(STASIS_GATE_CAPTURES_HELD, LONG_NS, &busy), 0);
	caller_start(&capture, STASIS_GATE_CAPTURES_HELD);
	caller_wait_held(&capture);
	caller_start(&other, STASIS_GATE_CLOSED);
	caller_wait_inside(&other);
	caller_end(&other);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
	assert_false(atomic_load(&capture.is_inside));
	stasis_gate_open();
	caller_wait_inside(&capture);
	caller_end(&capture);
}

static void names_who_is_inside(void **state)
{
	struct stasis_gate_busy busy;
	struct caller caller;

	(void)state;
	caller_start(&caller, STASIS_GATE_CLOSED);
	caller_wait_inside(&caller);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CAPTURES_HELD, LONG_NS, &busy), 0);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, NS_PER_MS, &busy), ETIMEDOUT);
	assert_int_equal(busy.count, 1);
	assert_int_equal(busy.entry, ENTRY);
	assert_int_equal(busy.tid, atomic_load(&caller.tid));
	/* The level is what it was. */
	assert_int_equal(stasis_gate_level(), STASIS_GATE_CAPTURES_HELD);
	caller_end(&caller);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
	assert_int_equal(busy.count, 0);
}

/* What is beginning a capture is not in step 1's account yet. */
static void first_step_waits_for_captures_that_begin(void **state)
{
	struct stasis_gate_busy busy;
	struct caller capture;

	(void)state;
	caller_start(&capture, STASIS_GATE_CAPTURES_HELD);
	caller_wait_inside(&capture);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CAPTURES_HELD, NS_PER_MS, &busy), ETIMEDOUT);
	assert_int_equal(busy.count, 1);
	assert_int_equal(busy.entry, ENTRY);
	assert_int_equal(stasis_gate_level(), STASIS_GATE_OPEN);
	caller_end(&capture);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CAPTURES_HELD, LONG_NS, &busy), 0);
}

static void *close_all(void *argument)
{
	struct stasis_gate_busy busy;

	*(int *)argument = stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy);
	return NULL;
}

static void lets_nested_calls_pass(void **state)
{
	struct caller caller;
	pthread_t closer;
	int result = -1;

	(void)state;
	caller_start(&caller, STASIS_GATE_CLOSED);
	caller_wait_inside(&caller);
	assert_int_equal(pthread_create(&closer, NULL, close_all, &result), 0);
	while (stasis_gate_level() != STASIS_GATE_CLOSED)
		(void)sched_yield();
	atomic_store(&caller.must_nest, true);
	while (!atomic_load(&caller.has_nested))
		(void)sched_yield();
	caller_end(&caller);
	assert_int_equal(pthread_join(closer, NULL), 0);
	assert_int_equal(result, 0);
}

struct churner {
	_Alignas(64) atomic_ulong calls;
	pthread_t thread;
	atomic_bool *must_stop;
	atomic_bool is_inside;
};

static void *churn(void *argument)
{
	struct churner *churner = argument;

	while (!atomic_load_explicit(churner->must_stop, memory_order_relaxed)) {
		struct stasis_gate_mark *mark = stasis_gate_enter(ENTRY, STASIS_GATE_CLOSED);

		atomic_store_explicit(&churner->is_inside, true, memory_order_relaxed);
		atomic_store_explicit(&churner->is_inside, false, memory_order_relaxed);
		stasis_gate_leave(mark);
		atomic_fetch_add_explicit(&churner->calls, 1, memory_order_relaxed);
	}
	return NULL;
}

/* Each closing finds nobody inside, and nobody goes in while it is closed. */
static void close_under_load(void)
{
	atomic_bool must_stop = false;
	struct churner churners[CHURNERS];
	struct stasis_gate_busy busy;

	for (int i = 0; i < CHURNERS; i++) {
		churners[i] = (struct churner){.must_stop = &must_stop};
		assert_int_equal(pthread_create(&churners[i].thread, NULL, churn, &churners[i]), 0);
	}
	for (int closing = 0; closing < CLOSINGS; closing++) {
		unsigned long before[CHURNERS];

		assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
		for (int i = 0; i < CHURNERS; i++)
			before[i] = atomic_load(&churners[i].calls);
		for (int i = 0; i < CHURNERS; i++) {
			assert_false(atomic_load(&churners[i].is_inside));
			/* The call that was inside may still have to be counted. */
			assert_true(atomic_load(&churners[i].calls) <= before[i] + 1);
		}
		stasis_gate_open();
		/* All of them get on. */
		for (int i = 0; i < CHURNERS; i++) {
			while (atomic_load(&churners[i].calls) < before[i] + 2)
				(void)sched_yield();
		}
	}
	atomic_store(&must_stop, true);
	for (int i = 0; i < CHURNERS; i++)
		assert_int_equal(pthread_join(churners[i].thread, NULL), 0);
}

static void closes_under_load(void **state)
{
	(void)state;
	close_under_load();
}

/* As where there is no membarrier. */
static void closes_under_load_with_fences(void **state)
{
	(void)state;
	atomic_fetch_or(&stasis_gate_word, STASIS_GATE_FENCED);
	close_under_load();
	holds_calls_until_it_opens(state);
	atomic_fetch_and(&stasis_gate_word, ~STASIS_GATE_FENCED);
}

static void threads_give_their_marks_back(void **state)
{
	uint32_t before;

	(void)state;
	stasis_gate_leave(stasis_gate_enter(ENTRY, STASIS_GATE_CLOSED));
	before = stasis_gate_thread_count();
	for (int i = 0; i < 1000; i++) {
		struct caller caller;

		caller_start(&caller, STASIS_GATE_CLOSED);
		caller_end(&caller);
	}
	assert_int_equal(stasis_gate_thread_count(), before);
}

static void more_threads_than_a_block_has(void **state)
{
	static struct caller callers[300];
	struct stasis_gate_busy busy;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(callers); i++)
		caller_start(&callers[i], STASIS_GATE_CLOSED);
	for (size_t i = 0; i < ARRAY_COUNT(callers); i++)
		caller_wait_inside(&callers[i]);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, NS_PER_MS, &busy), ETIMEDOUT);
	assert_int_equal(busy.count, ARRAY_COUNT(callers));
	for (size_t i = 0; i < ARRAY_COUNT(callers); i++)
		caller_end(&callers[i]);
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
}

static void keeps_errno(void **state)
{
	(void)state;
	errno = 4711;
	stasis_gate_leave(stasis_gate_enter(ENTRY, STASIS_GATE_CLOSED));
	assert_int_equal(errno, 4711);
}

/* In a child: a failure is an exit status. */
static void child_check(void)
{
	struct stasis_gate_busy busy;

	stasis_gate_leave(stasis_gate_enter(ENTRY, STASIS_GATE_CLOSED));
	if (stasis_gate_level() != STASIS_GATE_OPEN || stasis_gate_thread_count() != 1)
		_exit(2);
	if (stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy) != 0)
		_exit(3);
	stasis_gate_open();
	_exit(0);
}

static void child_wait(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void forked_child_is_not_held(void **state)
{
	struct stasis_gate_busy busy;
	pid_t pid;

	(void)state;
	stasis_gate_leave(stasis_gate_enter(ENTRY, STASIS_GATE_CLOSED));
	assert_int_equal(stasis_gate_close(STASIS_GATE_CLOSED, LONG_NS, &busy), 0);
	pid = fork();
	if (pid == 0)
		child_check();
	child_wait(pid);
	assert_int_equal(stasis_gate_level(), STASIS_GATE_CLOSED);
}

static void forked_child_forgets_other_threads(void **state)
{
	struct caller caller;
	pid_t pid;

	(void)state;
	caller_start(&caller, STASIS_GATE_CLOSED);
	caller_wait_inside(&caller);
	pid = fork();
	if (pid == 0)
		child_check();
	child_wait(pid);
	caller_end(&caller);
}

/* As from a callback that the driver makes on the calling thread. */
static void fork_inside_a_call(void **state)
{
	struct stasis_gate_mark *mark = stasis_gate_enter(ENTRY, STASIS_GATE_CLOSED);
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		stasis_gate_leave(stasis_gate_enter(ENTRY + 1, STASIS_GATE_CLOSED));
		stasis_gate_leave(mark);
		child_check();
	}
	stasis_gate_leave(mark);
	child_wait(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(holds_calls_until_it_opens, gate_open_again),
		cmocka_unit_test_teardown(first_step_holds_captures, gate_open_again),
		cmocka_unit_test_teardown(first_step_waits_for_captures_that_begin,
					  gate_open_again),
		cmocka_unit_test_teardown(names_who_is_inside, gate_open_again),
		cmocka_unit_test_teardown(lets_nested_calls_pass, gate_open_again),
		cmocka_unit_test_teardown(closes_under_load, gate_open_again),
		cmocka_unit_test_teardown(closes_under_load_with_fences, gate_open_again),
		cmocka_unit_test_teardown(threads_give_their_marks_back, gate_open_again),
		cmocka_unit_test_teardown(more_threads_than_a_block_has, gate_open_again),
		cmocka_unit_test_teardown(keeps_errno, gate_open_again),
		cmocka_unit_test_teardown(forked_child_is_not_held, gate_open_again),
		cmocka_unit_test_teardown(forked_child_forgets_other_threads, gate_open_again),
		cmocka_unit_test_teardown(fork_inside_a_call, gate_open_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
