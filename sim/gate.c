#include "gate.h"

#include "core.h"
#include "stream.h"

static struct sim_mutex gate_mutex = SIM_MUTEX_INITIALIZER;
static struct {
	pthread_cond_t changed;
	enum sim_gate_level level GUARDED_BY(gate_mutex);
	unsigned int inside[SIM_CALL_HELD + 1] GUARDED_BY(gate_mutex);
} gate = {
	.changed = PTHREAD_COND_INITIALIZER,
};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* The threads that were inside do not exist in the child. */
static void forget_in_child(void) NO_THREAD_SAFETY_ANALYSIS
{
	gate_mutex = (struct sim_mutex)SIM_MUTEX_INITIALIZER;
	gate.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	gate.level = SIM_GATE_OPEN;
	gate.inside[SIM_CALL_PASSES] = 0;
	gate.inside[SIM_CALL_HELD] = 0;
}

static void watch_forks(void)
{
	if (pthread_atfork(NULL, NULL, forget_in_child) != 0)
		sim_die("pthread_atfork failed");
}

static enum sim_gate_level holding_level(enum sim_call_class class)
{
	if (class == SIM_CALL_HELD && !sim_breaks("lock_lets_held_calls_pass"))
		return SIM_GATE_LOCKED;
	if (class == SIM_CALL_PASSES && sim_breaks("lock_holds_passing_calls"))
		return SIM_GATE_LOCKED;
	return SIM_GATE_SHUT;
}

void sim_gate_enter(enum sim_call_class class)
{
	enum sim_gate_level holding = holding_level(class);

	if (class == SIM_CALL_PURE)
		return;
	(void)pthread_once(&fork_once, watch_forks);
	sim_mutex_lock(&gate_mutex);
	while (gate.level >= holding)
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
	if (gate.inside[class] == 0 && gate.level != SIM_GATE_OPEN)
		(void)pthread_cond_broadcast(&gate.changed);
	sim_mutex_unlock(&gate_mutex);
}

static bool has_work(void)
{
	bool is_idle;

	sim_core_lock();
	is_idle = sim_stream_all_idle();
	sim_core_unlock();
	return !is_idle;
}

bool sim_gate_try_lock(void)
{
	bool is_locked = false;

	sim_mutex_lock(&gate_mutex);
	if (sim_breaks("lock_ignores_work") || (gate.inside[SIM_CALL_HELD] == 0 && !has_work())) {
		gate.level = SIM_GATE_LOCKED;
		is_locked = true;
	}
	sim_mutex_unlock(&gate_mutex);
	return is_locked;
}

void sim_gate_shut(void)
{
	sim_mutex_lock(&gate_mutex);
	gate.level = SIM_GATE_SHUT;
	while (gate.inside[SIM_CALL_PASSES] != 0)
		sim_cond_wait(&gate.changed, &gate_mutex);
	sim_mutex_unlock(&gate_mutex);
}

void sim_gate_lower(enum sim_gate_level level)
{
	sim_mutex_lock(&gate_mutex);
	gate.level = level;
	(void)pthread_cond_broadcast(&gate.changed);
	sim_mutex_unlock(&gate_mutex);
}
