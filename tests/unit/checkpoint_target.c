/*
 * Description: a target is refused, each with its own line, for what it is; its state is read, and a
 * process that ended is noticed before the driver is asked again.
 */

#include "target_fixture.h"

#include <pthread.h>
#include <sys/syscall.h>

struct other_thread {
	pthread_barrier_t barrier;
	pid_t tid;
};

static int open_refused(pid_t pid, struct stasis_error *err)
{
	struct stasis_target refused = STASIS_TARGET_EMPTY;
	int result = stasis_target_open(&driver, pid, &refused, err);

	assert_int_equal(refused.process.pidfd, -1);
	return result;
}

static void numbers_are_refused(void **state)
{
	struct stasis_error zero = STASIS_ERROR_INIT;
	struct stasis_error own = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(open_refused(0, &zero), &zero, STASIS_REFUSED, "pid 0 is not a process id");
	assert_refused(open_refused(getpid(), &own), &own, STASIS_REFUSED, "this program itself");
}

static void *thread_main(void *data)
{
	struct other_thread *other = data;

	other->tid = (pid_t)syscall(SYS_gettid);
	(void)pthread_barrier_wait(&other->barrier);
	(void)pthread_barrier_wait(&other->barrier);
	return NULL;
}

static void thread_is_refused_with_its_leader(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct other_thread other = {.tid = 0};
	pthread_t thread;
	char leader[64];

	(void)state;
	assert_int_equal(pthread_barrier_init(&other.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, thread_main, &other), 0);
	(void)pthread_barrier_wait(&other.barrier);
	(void)snprintf(leader, sizeof(leader), "is a thread of process %d", (int)getpid());
	assert_refused(open_refused(other.tid, &err), &err, STASIS_REFUSED, leader);
	(void)pthread_barrier_wait(&other.barrier);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)pthread_barrier_destroy(&other.barrier);
}

static void dead_process_is_refused(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	pid_t kept = fake.pid;
	pid_t dead = fake_target_start();

	(void)state;
	fake_target_end(dead);
	fake.pid = kept;
	assert_refused(open_refused(dead, &err), &err, STASIS_REFUSED, "No such process");
}

static void process_without_cuda_is_refused(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake_rule("cuCheckpointProcessGetState", 0, CUDA_ERROR_NOT_INITIALIZED, FAKE_KEEP);
	assert_refused(open_refused(fake.pid, &err), &err, STASIS_REFUSED, "it has no CUDA state");
	assert_int_equal(err.cuda_result, CUDA_ERROR_NOT_INITIALIZED);
}

static void missing_right_is_refused_with_advice(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake_rule("cuCheckpointProcessGetState", 0, CUDA_ERROR_OPERATING_SYSTEM, FAKE_KEEP);
	assert_refused(open_refused(fake.pid, &err), &err, STASIS_REFUSED, "CAP_SYS_PTRACE");
	assert_int_equal(err.cuda_result, CUDA_ERROR_OPERATING_SYSTEM);
}

static void driver_without_the_calls_is_refused(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	driver.cuda_version = 12040;
	driver.cuCheckpointProcessLock = NULL;
	assert_refused(open_refused(fake.pid, &err), &err, STASIS_REFUSED,
		       "the driver is of CUDA 12.4; CUDA 12.8 or newer is needed");
}

static void states_are_read_and_named(void **state)
{
	static const char *const names[] = {"RUNNING", "LOCKED",        "CHECKPOINTED",
					    "FAILED",  "CHECKPOINTING", "RESTORING"};
	struct stasis_error err = STASIS_ERROR_INIT;
	CUprocessState read_state;

	(void)state;
	for (int i = 0; i < 6; i++) {
		fake.state = (CUprocessState)i;
		assert_done(stasis_target_state(&target, &read_state, &err), &err);
		assert_int_equal(read_state, i);
		assert_string_equal(stasis_target_state_name(read_state), names[i]);
	}
	assert_string_equal(stasis_target_state_name((CUprocessState)6), "unknown");
	assert_string_equal(stasis_target_state_name((CUprocessState)-1), "unknown");
}

static void ended_target_is_not_asked_about(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	int asked = fake_count("cuCheckpointProcessGetState");
	CUprocessState read_state;

	(void)state;
	fake_target_kill();
	assert_refused(stasis_target_state(&target, &read_state, &err), &err, STASIS_LOST,
		       "has ended");
	assert_int_equal(fake_count("cuCheckpointProcessGetState"), asked);
}

static void another_process_with_the_pid_is_noticed(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_target other = target;
	CUprocessState read_state;

	(void)state;
	other.process.start_ticks++;
	assert_refused(stasis_target_state(&other, &read_state, &err), &err, STASIS_LOST,
		       "has ended");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		FIXTURE_TEST(numbers_are_refused),
		FIXTURE_TEST(thread_is_refused_with_its_leader),
		FIXTURE_TEST(dead_process_is_refused),
		FIXTURE_TEST(process_without_cuda_is_refused),
		FIXTURE_TEST(missing_right_is_refused_with_advice),
		FIXTURE_TEST(driver_without_the_calls_is_refused),
		FIXTURE_TEST(states_are_read_and_named),
		FIXTURE_TEST(ended_target_is_not_asked_about),
		FIXTURE_TEST(another_process_with_the_pid_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
