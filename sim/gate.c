#include "gate.h"

#include <stdint.h>
#include <time.h>

#include "core.h"
#include "stream.h"

#define NS_PER_MS 1000000ULL
#define INSTANT_NS NS_PER_MS
#define WINDOW_NS (50 * NS_PER_MS) /* a thread that calls this often in it never pauses */
#define WINDOW_CALLS 20
#define RUSH_THREADS 3
#define THREADS_MAX 64 /* whose pace is watched */

/* How often a thread makes held calls. */
struct pace {
	uint64_t window_start_ns;
	uint64_t last_ns;
	unsigned int calls;      /* in this window */
	unsigned int last_calls; /* in the one before it */
};

static struct sim_mutex gate_mutex = SIM_MUTEX_INITIALIZER;
static struct {
	pthread_cond_t changed;
	enum sim_gate_level level GUARDED_BY(gate_mutex);
	bool is_pausing GUARDED_BY(gate_mutex); /* a lock looks for its instant */
	unsigned int inside[SIM_CALL_HELD + 1] GUARDED_BY(gate_mutex);
	struct pace paces[THREADS_MAX] GUARDED_BY(gate_mutex);
	unsigned int pace_count GUARDED_BY(gate_mutex);
} gate;

static pthread_once_t gate_once = PTHREAD_ONCE_INIT;
static _Thread_local unsigned int pace_index = THREADS_MAX;

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

static void init_changed(void)
{
	pthread_condattr_t attributes;

	if (pthread_condattr_init(&attributes) != 0 ||
	    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(&gate.changed, &attributes) != 0)
		sim_die("cannot make a condition variable");
	(void)pthread_condattr_destroy(&attributes);
}

/* The threads that were inside do not exist in the child. */
static void forget_in_child(void) NO_THREAD_SAFETY_ANALYSIS
{
	gate_mutex = (struct sim_mutex)SIM_MUTEX_INITIALIZER;
	init_changed();
	gate.level = SIM_GATE_OPEN;
	gate.is_pausing = false;
	gate.inside[SIM_CALL_PASSES] = 0;
	gate.inside[SIM_CALL_HELD] = 0;
}

static void init_gate(void)
{
	init_changed();
	if (pthread_atfork(NULL, NULL, forget_in_child) != 0)
		sim_die("pthread_atfork failed");
}

static void gate_begin(void) ACQUIRE(gate_mutex) NO_THREAD_SAFETY_ANALYSIS
{
	(void)pthread_once(&gate_once, init_gate);
	sim_mutex_lock(&gate_mutex);
}

static void note_call_locked(void) REQUIRES(gate_mutex)
{
	uint64_t now = now_ns();
	struct pace *pace;

	if (pace_index == THREADS_MAX && gate.pace_count < THREADS_MAX)
		pace_index = gate.pace_count++;
	if (pace_index == THREADS_MAX)
		return;
	pace = &gate.paces[pace_index];
	if (now - pace->window_start_ns >= WINDOW_NS) {
		pace->last_calls = now - pace->last_ns < WINDOW_NS ? pace->calls : 0;
		pace->calls = 0;
		pace->window_start_ns = now;
	}
	pace->calls++;
	pace->last_ns = now;
}

static bool is_rush_locked(void) REQUIRES(gate_mutex)
{
	uint64_t now = now_ns();
	unsigned int threads = 0;

	for (unsigned int i = 0; i < gate.pace_count; i++) {
		const struct pace *pace = &gate.paces[i];

		if (now - pace->last_ns < WINDOW_NS &&
		    pace->calls + pace->last_calls >= WINDOW_CALLS)
			threads++;
	}
	return threads >= RUSH_THREADS;
}

static bool must_wait_locked(enum sim_call_class class) REQUIRES(gate_mutex)
{
	bool is_held = class == SIM_CALL_HELD && !sim_breaks("lock_holds_calls");

	if (class == SIM_CALL_PASSES && sim_breaks("lock_lets_queries_pass"))
		is_held = true;
	if (gate.is_pausing)
		return class == SIM_CALL_HELD;
	return gate.level >= (is_held ? SIM_GATE_LOCKED : SIM_GATE_SHUT);
}

void sim_gate_enter(enum sim_call_class class)
{
	if (class == SIM_CALL_PURE)
		return;
	gate_begin();
	if (class == SIM_CALL_HELD)
		note_call_locked();
	while (must_wait_locked(class))
		sim_cond_wait(&gate.changed, &gate_mutex);
	gate.inside[class]++;
	sim_mutex_unlock(&gate_mutex);
}

void sim_gate_leave(enum sim_call_class class)
{
	if (class == SIM_CALL_PURE)
		return;
	sim_mutex_lock(&gate_mutex);
	gate.inside[class]--;
	if (gate.inside[class] == 0 && (gate.is_pausing || gate.level != SIM_GATE_OPEN))
		(void)pthread_cond_broadcast(&gate.changed);
	sim_mutex_unlock(&gate_mutex);
}

static bool is_instant_locked(void) REQUIRES(gate_mutex)
{
	bool is_idle;

	if (sim_breaks("lock_waits_for_work"))
		return true;
	if (gate.inside[SIM_CALL_HELD] != 0)
		return false;
	sim_core_lock();
	is_idle = sim_stream_all_idle();
	sim_core_unlock();
	return is_idle;
}

/* Nobody wakes us when a stream runs dry: look again, a few times in the millisecond. */
static bool find_instant_locked(void) REQUIRES(gate_mutex)
{
	uint64_t end_ns = now_ns() + INSTANT_NS;

	while (!is_instant_locked()) {
		uint64_t next_ns = now_ns() + INSTANT_NS / 8;
		struct timespec next = {
			.tv_sec = (time_t)(next_ns / (1000 * NS_PER_MS)),
			.tv_nsec = (long)(next_ns % (1000 * NS_PER_MS)),
		};

		if (next_ns > end_ns)
			return false;
		(void)pthread_cond_timedwait(&gate.changed, &gate_mutex.native, &next);
	}
	return true;
}

bool sim_gate_try_lock(void)
{
	bool is_found = false;

	gate_begin();
	if (!is_rush_locked()) {
		gate.is_pausing = true;
		is_found = find_instant_locked();
		gate.is_pausing = false;
		if (is_found)
			gate.level = SIM_GATE_LOCKED;
		(void)pthread_cond_broadcast(&gate.changed);
	}
	sim_mutex_unlock(&gate_mutex);
	return is_found;
}

void sim_gate_shut(void)
{
	gate_begin();
	gate.level = SIM_GATE_SHUT;
	while (gate.inside[SIM_CALL_PASSES] != 0)
		sim_cond_wait(&gate.changed, &gate_mutex);
	sim_mutex_unlock(&gate_mutex);
}

void sim_gate_set(enum sim_gate_level level)
{
	gate_begin();
	gate.level = level;
	(void)pthread_cond_broadcast(&gate.changed);
	sim_mutex_unlock(&gate_mutex);
}
