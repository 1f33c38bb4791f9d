/* The one state of the simulated driver in this process; see core.h. */

#include "core.h"

#include "address.h"
#include "context.h"
#include "machine.h"

#include <stdlib.h>
#include <string.h>

struct sim_core sim_core = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.progress = PTHREAD_COND_INITIALIZER,
	.next_id = 1,
};

void sim_core_lock(void)
{
	(void)pthread_mutex_lock(&sim_core.lock);
}

void sim_core_unlock(void)
{
	(void)pthread_mutex_unlock(&sim_core.lock);
}

uint64_t sim_core_new_id_locked(void)
{
	return sim_core.next_id++;
}

static __thread bool is_in_host_function;

void sim_core_set_host_function(bool is_inside)
{
	is_in_host_function = is_inside;
}

CUresult sim_core_find_device_locked(int physical, int *ret_device)
{
	for (int i = 0; i < sim_core.device_count; i++) {
		if (sim_core.devices[i].physical != physical)
			continue;
		*ret_device = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_core_admit(enum sim_need need)
{
	CUresult result = CUDA_SUCCESS;

	if (need == SIM_NEEDS_NOTHING)
		return CUDA_SUCCESS;
	if (need == SIM_NEEDS_CONTEXT && is_in_host_function)
		return CUDA_ERROR_NOT_PERMITTED;
	sim_core_lock();
	if (!sim_core.initialized || sim_core.forked)
		result = CUDA_ERROR_NOT_INITIALIZED;
	else if (need == SIM_NEEDS_CONTEXT)
		result = sim_context_check(sim_context_current());
	sim_core_unlock();
	return result;
}

/* The lock is free in a forked child; nothing else of CUDA works there. */
static void after_fork_in_child(void)
{
	sim_core.forked = sim_core.initialized;
	sim_core_unlock();
}

/* CUDA_VISIBLE_DEVICES as a list of numbers: the first that is none ends the list, as with CUDA. */
static int visible_devices(int machine_count, int physical[])
{
	const char *list =
		secure_getenv("CUDA_VISIBLE_DEVICES"); /* NOLINT(concurrency-mt-unsafe) */
	int count = 0;

	if (list == NULL) {
		for (count = 0; count < machine_count; count++)
			physical[count] = count;
		return count;
	}
	while (count < machine_count) {
		char *end = NULL;
		long value = strtol(list, &end, 10);

		if (end == list || value < 0 || value >= machine_count)
			break;
		physical[count++] = (int)value;
		if (*end != ',')
			break;
		list = end + 1;
	}
	return count;
}

CUresult sim_core_initialize_locked(void)
{
	int physical[SIM_DEVICES_MAX];
	int count = visible_devices(sim_config()->device_count, physical);
	CUresult result;

	if (count == 0)
		return CUDA_ERROR_NO_DEVICE;
	result = sim_machine_join();
	if (result == CUDA_SUCCESS)
		result = sim_address_window_reserve();
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < count; i++)
		sim_core.devices[i] = (struct sim_device){.physical = physical[i], .heap_fd = -1};
	sim_core.device_count = count;
	if (pthread_atfork(sim_core_lock, sim_core_unlock, after_fork_in_child) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sim_core.initialized = true;
	return CUDA_SUCCESS;
}
