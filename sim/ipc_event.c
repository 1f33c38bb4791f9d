/* Interprocess events; see ipc_event.h. Who waits looks again every 100 microseconds. */

#include "ipc_event.h"

#include "storage.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Shared by processes: only atomic access. */
struct state {
	uint64_t recorded;
	uint64_t reached;
};

struct sim_ipc_event {
	unsigned references; /* the event, and actions that have not run */
	int fd;
	struct state *state;
};

static size_t open_count;

CUresult sim_ipc_event_open(int fd, struct sim_ipc_event **ret_event)
{
	struct sim_ipc_event *event = malloc(sizeof(*event));
	struct state *state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (event == NULL || state == MAP_FAILED) {
		if (state != MAP_FAILED)
			(void)munmap(state, sizeof(*state));
		(void)close(fd);
		free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*event = (struct sim_ipc_event){.references = 1, .fd = fd, .state = state};
	open_count++;
	*ret_event = event;
	return CUDA_SUCCESS;
}

CUresult sim_ipc_event_new(struct sim_ipc_event **ret_event)
{
	int fd = -1;

	if (sim_storage_open("sim-gpu-event", sizeof(struct state), &fd) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return sim_ipc_event_open(fd, ret_event);
}

int sim_ipc_event_fd(const struct sim_ipc_event *event)
{
	return event->fd;
}

size_t sim_ipc_event_count(void)
{
	return open_count;
}

void sim_ipc_event_drop(struct sim_ipc_event *event)
{
	if (event == NULL || --event->references != 0)
		return;
	open_count--;
	(void)munmap(event->state, sizeof(*event->state));
	(void)close(event->fd);
	free(event);
}

static void drop_unlocked(struct sim_ipc_event *event)
{
	sim_core_lock();
	sim_ipc_event_drop(event);
	sim_core_unlock();
}

static uint64_t newest_record(const struct sim_ipc_event *event)
{
	return __atomic_load_n(&event->state->recorded, __ATOMIC_SEQ_CST);
}

static bool has_reached(const struct sim_ipc_event *event, uint64_t record)
{
	return __atomic_load_n(&event->state->reached, __ATOMIC_SEQ_CST) >= record;
}

bool sim_ipc_event_is_done(const struct sim_ipc_event *event)
{
	return has_reached(event, newest_record(event));
}

static void wait_for(const struct sim_ipc_event *event, uint64_t record)
{
	const struct timespec pause = {.tv_nsec = 100000};

	while (!has_reached(event, record))
		(void)nanosleep(&pause, NULL);
}

void sim_ipc_event_wait(struct sim_ipc_event *event)
{
	uint64_t record = newest_record(event);

	event->references++;
	sim_core_unlock();
	wait_for(event, record);
	sim_core_lock();
	sim_ipc_event_drop(event);
}

/* Records of several processes may be reached in any order: the newest counts. */
static CUresult run_record(const struct sim_action *action)
{
	struct state *state = action->ipc_mark.event->state;
	uint64_t reached = __atomic_load_n(&state->reached, __ATOMIC_SEQ_CST);

	while (reached < action->ipc_mark.record &&
	       !__atomic_compare_exchange_n(&state->reached, &reached, action->ipc_mark.record,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		continue;
	drop_unlocked(action->ipc_mark.event);
	return CUDA_SUCCESS;
}

static CUresult run_wait(const struct sim_action *action)
{
	wait_for(action->ipc_mark.event, action->ipc_mark.record);
	drop_unlocked(action->ipc_mark.event);
	return CUDA_SUCCESS;
}

void sim_ipc_event_make_record(struct sim_ipc_event *event, struct sim_action *action)
{
	event->references++;
	action->run = run_record;
	action->runs_after_error = true;
	action->ipc_mark.event = event;
	action->ipc_mark.record = __atomic_add_fetch(&event->state->recorded, 1, __ATOMIC_SEQ_CST);
}

void sim_ipc_event_make_wait(struct sim_ipc_event *event, struct sim_action *action)
{
	event->references++;
	action->run = run_wait;
	action->runs_after_error = true;
	action->ipc_mark.event = event;
	action->ipc_mark.record = newest_record(event);
}
