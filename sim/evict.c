#include "evict.h"

#include <string.h>
#include <sys/mman.h>

#include "address.h"
#include "allocation.h"
#include "machine.h"
#include "memory.h"
#include "storage.h"

/* Of each ordinal, before the latest restore began. */
static int old_physical[SIM_DEVICES_MAX];

static bool stays(const struct sim_memory *memory)
{
	return memory->exported && sim_breaks("open_export_splits");
}

/* Those that have storage; false: the host has no memory for the contents, the rest has its storage. */
static bool evict_all_locked(bool keep_contents)
{
	for (struct sim_memory *memory = sim_memory_first(); memory; memory = memory->next) {
		bool keep = keep_contents || memory->device < 0;

		if (memory->fd < 0 || stays(memory))
			continue;
		if (sim_memory_evict(memory, keep) != CUDA_SUCCESS)
			return false;
	}
	return true;
}

static CUresult revive_all_locked(void)
{
	for (struct sim_memory *memory = sim_memory_first(); memory; memory = memory->next) {
		CUresult result;

		if (memory->fd >= 0)
			continue;
		result = sim_memory_revive(memory);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

static void leave_heaps_locked(void)
{
	if (sim_breaks("checkpoint_closes_descriptors"))
		(void)dup(sim_core.devices[0].heap_fd);
	sim_memory_close_heaps();
}

/* All storage to 'saved' or to nothing, and with it everything that belongs to the machine. */
CUresult sim_evict(bool keep_contents)
{
	CUresult result = CUDA_SUCCESS;

	sim_core_lock();
	sim_address_hide_all();
	if (evict_all_locked(keep_contents)) {
		leave_heaps_locked();
	} else {
		result = CUDA_ERROR_OUT_OF_MEMORY;
		if (revive_all_locked() != CUDA_SUCCESS || sim_address_show_all() != CUDA_SUCCESS)
			sim_die("no host memory, neither for a checkpoint nor to undo it");
	}
	sim_core_unlock();
	if (result == CUDA_SUCCESS)
		sim_machine_leave();
	return result;
}

/* The process's GPUs become others, and what it takes of the machine with them. */
static void move_devices(const int physical[])
{
	int device_of[SIM_DEVICES_MAX] = {0};

	sim_core_lock();
	for (int i = 0; i < sim_core.device_count; i++) {
		device_of[sim_core.devices[i].physical] = physical[i];
		old_physical[i] = sim_core.devices[i].physical;
		sim_core.devices[i].physical = physical[i];
	}
	sim_core_unlock();
	sim_machine_move(device_of);
}

/* Storage that was taken for a restore is given back. */
void sim_revive_undo(void)
{
	int physical[SIM_DEVICES_MAX];

	if (sim_evict(false) != CUDA_SUCCESS)
		sim_die("storage cannot be given back");
	memcpy(physical, old_physical, sizeof(physical));
	move_devices(physical);
}

/* Takes the machine's memory again, on the GPUs that 'physical' says, and puts storage behind it. */
CUresult sim_revive(const int physical[])
{
	CUresult result;

	move_devices(physical);
	result = sim_machine_resume();
	if (result != CUDA_SUCCESS)
		return result;
	sim_core_lock();
	result = revive_all_locked();
	sim_core_unlock();
	if (result != CUDA_SUCCESS)
		sim_revive_undo();
	return result;
}

CUresult sim_revive_show(void)
{
	CUresult result;

	sim_core_lock();
	result = sim_address_show_all();
	sim_core_unlock();
	return result;
}

/* Each for one kind of memory; a damaged byte shows in whatever has memory of that kind. */
static bool breaks_memory(enum sim_memory_kind kind)
{
	static const struct {
		const char *name;
		enum sim_memory_kind kind;
	} rows[] = {
		{"native_survives", SIM_MEMORY_PRIVATE},
		{"private_vmm_survives", SIM_MEMORY_PRIVATE},
		{"exportable_vmm_survives", SIM_MEMORY_EXPORTABLE},
		{"exported_vmm_survives", SIM_MEMORY_EXPORTABLE},
		{"ipc_handle_survives", SIM_MEMORY_PRIVATE},
		{"custom_absent_is_native", SIM_MEMORY_PRIVATE},
		{"custom_round_trip", SIM_MEMORY_PRIVATE},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		if (rows[i].kind == kind && sim_breaks(rows[i].name))
			return true;
	return false;
}

void sim_revive_break(void)
{
	unsigned char byte = 0;
	bool is_done = false;

	sim_core_lock();
	for (struct sim_memory *memory = sim_memory_first(); memory && !is_done;
	     memory = memory->next) {
		if (memory->device < 0 || !breaks_memory(memory->kind) ||
		    sim_storage_read(memory->fd, memory->offset, &byte, 1) != 0)
			continue;
		byte = (unsigned char)~byte;
		is_done = sim_storage_write(memory->fd, memory->offset, &byte, 1) == 0;
	}
	sim_core_unlock();
}

/* Takes host memory from the CPU, where a switch says so. */
void sim_evict_break_host(void)
{
	bool breaks_pinned = sim_breaks("pinned_survives");
	bool breaks_registered = sim_breaks("registered_survives");

	sim_core_lock();
	for (size_t i = 0; i < sim_allocation_count(); i++) {
		const struct sim_allocation *allocation = sim_allocation_at(i);

		if ((allocation->kind == SIM_ALLOCATION_HOST && breaks_pinned) ||
		    (allocation->kind == SIM_ALLOCATION_REGISTERED && breaks_registered))
			(void)mprotect((void *)(uintptr_t)allocation->span.start, /* NOLINT */
				       allocation->span.bytes, PROT_NONE);
	}
	sim_core_unlock();
}
